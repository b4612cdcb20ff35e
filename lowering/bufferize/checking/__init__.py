"""Prove that every read in a host function on buffers has the tensor of the program as its value.

The proof is independent of the analysis that assigned the buffers. The functions on tensors and on
buffers are walked side by side, once. Each write makes a new version of its buffer (`versions`),
which says what was written over which version; what is read is proved afterwards, backwards from
the version that is read. A buffer that a loop exchanges has its own name in the loop, and may alias
any buffer of its cycle (`memory`). Summaries of kernels are trusted: the operands that are read,
and the inputs that may alias a destination.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import func, memref, scf, tensor
from xdsl.ir import Attribute, Block, Operation, SSAValue

from stepwell.analysis.sizes import Sizes
from stepwell.dialects import kernel
from stepwell.dialects.kernel import choices
from stepwell.lowering.bufferize.assignment import rows_of
from stepwell.lowering.bufferize.checking.memory import Memory
from stepwell.lowering.bufferize.checking.scalars import Scalars, arrays, is_array
from stepwell.lowering.bufferize.checking.tensors import Key, Tensors, element
from stepwell.lowering.bufferize.checking.versions import (
    After,
    Blank,
    Both,
    Contents,
    Either,
    Fact,
    Head,
    Iterations,
    Proof,
    Region,
    Version,
    Whole,
    Write,
)
from stepwell.lowering.bufferize.exchanges import cycle, trip_count
from stepwell.lowering.bufferize.kernel_summary import KernelSummary
from stepwell.lowering.bufferize.returns import updated_arguments
from stepwell.lowering.bufferize.views import Steps
from stepwell.transforms.passes import fail

State = dict[Hashable, Version]
"""The version of each buffer."""
_NOTHING: Contents = (Blank(), ())


@dataclass(frozen=True)
class Assumptions:
    """The assumptions of the checker: the kernels and constants of the module."""

    summary: Callable[[str], KernelSummary]
    """Returns the summary of the kernel of a name, on tensors or on buffers."""
    on_buffers: Callable[[str], kernel.FuncOp]
    constant: Callable[[str], Attribute]
    """Returns the elements of a global."""


def check_buffers(before: func.FuncOp, after: func.FuncOp, kernels: Assumptions) -> None:
    """Fail if an op of ``after``, on buffers, reads another tensor than its op in ``before``."""
    _Checker(before, after, kernels).run()


class _Checker:
    def __init__(self, before: func.FuncOp, after: func.FuncOp, kernels: Assumptions) -> None:
        self.before, self.after, self.kernels = before, after, kernels
        self.sizes = Sizes(before.args)
        self.tensors = Tensors(self.sizes)
        self.proof = Proof(self.tensors)
        self.reads: list[tuple[Operation, Fact]] = []
        """The facts to prove, with the op that relies on each."""
        self.scalars = Scalars(self.sizes)
        given = len(before.args)
        outputs = after.args[given:]
        updated = updated_arguments(before)
        shared: dict[Hashable, Hashable] = {outputs[n]: after.args[k] for k, n in updated.items()}
        self.memory = Memory(self.proof, shared, set(after.args[:given]))

    def run(self) -> None:
        """Walk the function; `CompileError` at the first read that cannot be proved."""
        given = len(self.before.args)
        state: State = {a: Blank() for a in self.after.args[given:]}
        for old, new in zip(self.before.args, self.after.args, strict=False):
            self.sizes.equate(new, old)
            state[new] = Whole(old)
        for argument in self.after.args:
            self.memory.bind(argument, (argument, ()))
        returned = self.before.body.block.last_op
        assert returned is not None
        for output, value in zip(self.after.args[given:], returned.operands, strict=True):
            self.sizes.equate(output, value)
        end, last = self.block(self.before.body.block, self.after.body.block, state)
        for value, output in zip(end.operands, self.after.args[given:], strict=True):
            self.read(last, output, value, state)
        for op, fact in self.reads:
            if not self.proof.holds(fact):
                hint = fact.value.name_hint if isinstance(fact.value, SSAValue) else None
                self.fault(op, f"{op.name} reads what is not {f'%{hint}' if hint else 'a tensor'}")

    def fault(self, op: Operation, message: str) -> None:
        """Fail at an op."""
        fail(op, f"compiler bug: after bufferize {message}")

    def block(self, old: Block, new: Block, state: State) -> tuple[Operation, Operation]:
        """Walk two blocks side by side; return their terminators."""
        rest, op, now = iter(new.ops), None, None
        for op in old.ops:
            if type(op) not in _EVENTS:
                self.scalars.record(op)
                continue
            stores = len(op.operands) if isinstance(op, _FROM_SCALARS) else 1
            for number in range(stores):
                now = self._advance(rest, state)
                if now is None or type(now) is not _EVENTS[type(op)][0]:
                    fail(now or self.after, f"compiler bug: bufferize made this of {op.name}")
                _EVENTS[type(op)][1](self, op, now, state, number)
        assert op is not None and now is not None
        return op, now

    def _advance(self, rest: Iterator[Operation], state: State) -> Operation | None:
        """Walk ops that exist only on buffers, to the next one with an op on tensors."""
        for op in rest:
            match op:
                case memref.CopyOp():
                    self._copy(op, state)
                case memref.AllocOp():
                    self.memory.bind(op.memref, (op.memref, ()))
                    state[op.memref] = Blank()
                case memref.GetGlobalOp():
                    name = op.name_.string_value()
                    self.memory.bind(op.memref, (name, ()))
                    self.memory.constant.add(name)
                    state[name] = Whole(self.kernels.constant(name))
                case _ if self.memory.view(op):
                    pass
                case _ if type(op) in _ON_BUFFERS:
                    return op
                case _:
                    self.scalars.match(op)
        return None

    # -- reads and writes

    def read(
        self, op: Operation, buffer: SSAValue, value: SSAValue, state: State, at: Steps = ()
    ) -> None:
        """Note that ``op`` expects part ``at`` of a tensor in that part of a buffer."""
        home, path = self.memory.region(buffer)
        self.reads.append((op, Fact(state[home], (*path, *at), value, at)))

    def write(self, op: Operation, region: Region, value: Contents, state: State) -> None:
        """Overwrite a region, under all the names that its buffer may have."""
        buffer, path = region
        if self.memory.is_constant(region):
            self.fault(op, f"{op.name} writes an argument or a constant")
        for other in self.memory.others(region, state):
            part = self.memory.seen_in(region, other)
            part, held = ((), _NOTHING) if part is None else (part, value)
            state[other] = Either((Write(state[other], part, held), state[other]))
        state[buffer] = Write(state[buffer], path, value)

    def _set(
        self, op: Operation, buffers: Sequence[SSAValue], made: Sequence[SSAValue], state: State
    ) -> None:
        for number, buffer in enumerate(buffers):
            held: Contents = (Whole(made[number]), ()) if number < len(made) else _NOTHING
            self.write(op, self.memory.region(buffer), held, state)

    def equal(self, op: Operation, old: Sequence[SSAValue], new: Sequence[SSAValue]) -> None:
        """Check that scalar operands are the same."""
        if self.scalars.numbers(old) != self.scalars.numbers(new):
            self.fault(op, f"{op.name} has other scalars")

    def _copy(self, op: memref.CopyOp, state: State) -> None:
        source, target = (self.memory.region(v) for v in (op.source, op.destination))
        if not self.memory.same_or_apart(source, target):
            self.fault(op, "a copy writes over what it reads")
        self.write(op, target, (state[source[0]], source[1]), state)

    def launch(self, op: Any, new: Any, state: State, number: int) -> None:
        """Walk a launch: it reads inputs and some destinations, and writes all destinations."""
        summary = self.kernels.summary(new.callee.root_reference.data)
        if summary.function.sym_name.data != op.callee.root_reference.data:
            self.fault(new, "another kernel is launched")
        reads = (*summary.reads_input, *summary.reads_destination)
        for old, now, read in zip(op.operands, new.operands, reads, strict=False):
            if read and is_array(old):
                self.read(new, now, old, state)
        self.equal(new, op.inputs, new.inputs)
        self._check_aliasing(new, [*summary.reads_input, *[True] * len(new.outputs)])
        if len(new.outputs) == len(op.results) + len(summary.extras):
            self._set(new, new.outputs, op.results, state)
            return
        self._set(new, new.outputs, (), state)
        buffer, path = self.memory.region(new.outputs[0])
        rows = rows_of(self.sizes, op.results)  # of a stack, the only destination of the kernel
        for (row, seen), result in zip(rows, op.results, strict=True):
            self.write(new, (buffer, (*path, row, *seen)), (Whole(result), ()), state)

    def _check_aliasing(self, new: kernel.LaunchOp, reads: Sequence[bool]) -> None:
        """Check that destinations of a launch alias only inputs that its kernel allows."""
        name = new.callee.root_reference.data
        pairs = choices.aliases(self.kernels.on_buffers(name))
        for j in range(len(new.inputs), len(new.operands)):
            for i in (i for i in range(j) if reads[i] and is_array(new.operands[i])):
                a, b = (self.memory.region(new.operands[k]) for k in (i, j))
                shared = (i, j) in pairs and self.memory.same_or_apart(a, b)
                if not shared and self.memory.overlap(a, b):
                    self.fault(new, f"a launch writes operand {j} over operand {i}")

    def callback(self, op: Any, new: Any, state: State, number: int) -> None:
        """Walk a callback: it reads its inputs and writes its outputs."""
        for old, now in zip(op.inputs, new.inputs, strict=True):
            self.read(new, now, old, state)
            for out in new.outputs:
                if self.memory.overlap(self.memory.region(now), self.memory.region(out)):
                    self.fault(new, "a callback writes over what it reads")
        self._set(new, new.outputs, op.results, state)

    def load(self, op: Any, new: Any, state: State, number: int) -> None:
        """Walk the read of one element."""
        self.equal(new, op.indices, new.indices)
        self.read(new, new.memref, op.tensor, state, element(self.scalars.numbers(op.indices)))
        self.sizes.equate(new.results[0], op.result)

    def store(self, op: Any, new: Any, state: State, number: int) -> None:
        """Walk the write of one element; the rest of the buffer keeps its contents."""
        at, key = self.tensors.pieces(op.results[0])[0][number]
        if element(self.scalars.numbers(new.indices)) != at:
            self.fault(new, "an element is stored elsewhere")
        scalar = op.scalar if isinstance(op, tensor.InsertOp) else op.operands[number]
        self.equal(new, [scalar], [new.value])
        buffer, path = self.memory.region(new.memref)
        self.write(new, (buffer, (*path, *at)), (Whole(key), ()), state)

    def scalar(self, op: Operation, new: Operation, state: State, number: int) -> None:
        """Walk an op on scalars alone, or a terminator."""
        self.equal(new, op.operands, new.operands)

    # -- branches and loops

    def branch(self, op: Any, new: Any, state: State, number: int) -> None:
        """Walk a branch: afterwards either side's versions, with what that side yields."""
        self.equal(new, [op.cond], [new.cond])
        sides: list[State] = []
        yields: list[dict[Key, SSAValue]] = []
        for old, now in zip(op.regions, new.regions, strict=True):
            sides.append(dict(state))
            end = self.block(old.block, now.block, sides[-1])[0] if old.blocks else None
            yields.append(dict(zip(op.results, end.operands, strict=True)) if end else {})
        for buffer in state:
            versions = sides[0][buffer], sides[1][buffer]
            state[buffer] = Either(versions, (yields[0], yields[1]))
        self.scalars.equate(op.results, new.results)

    def for_loop(self, op: Any, new: Any, state: State, number: int) -> None:
        """Walk a for loop: it is left at the head of the iteration that is not run."""
        self.equal(new, op.operands, new.operands)
        old, now = op.body.block, new.body.block
        loop, heads = self._enter((op, new), op.iter_args, new.iter_args, (old, now), state)
        left: State = dict(heads)
        inside: State = dict(heads)
        end, last = self.block(old, now, inside)
        self._close(loop, heads, inside, end, last)
        self._leave(loop, left, old.args, now.args, last, state)

    def while_loop(self, op: Any, new: Any, state: State, number: int) -> None:
        """Walk a while loop: its test passes values to the body, or to the results."""
        self.equal(new, op.operands, new.operands)
        test, test_now = op.before_region.block, new.before_region.block
        old, now = op.after_region.block, new.after_region.block
        loop, heads = self._enter((op, new), op.arguments, new.arguments, (test, test_now), state)
        self.scalars.equate(old.args, now.args)
        inside: State = dict(heads)
        condition, handed = self.block(test, test_now, inside)
        left = dict(inside)
        for value, argument in zip(arrays(handed.operands), arrays(now.args), strict=True):
            self.memory.bind(argument, self.memory.region(value))
        end, last = self.block(old, now, inside)
        self._close(loop, heads, inside, end, last)
        self._leave(loop, left, condition.operands, handed.operands, last, state)

    def _enter(
        self,
        ops: tuple[Operation, Operation],
        inits: Sequence[SSAValue],
        given: Sequence[SSAValue],
        blocks: tuple[Block, Block],
        state: State,
    ) -> tuple[Iterations, dict[Hashable, Head]]:
        """Return a loop, and the version of each buffer at its head."""
        old, now = blocks
        self.scalars.equate(old.args, now.args)
        arguments, regions = arrays(now.args), [self.memory.region(v) for v in arrays(given)]
        starts: dict[Key, SSAValue] = dict(zip(arrays(old.args), arrays(inits), strict=True))
        loop = Iterations(ops, starts, arguments, regions)
        heads = {buffer: Head(loop, (version, ())) for buffer, version in state.items()}
        following = _following(ops[1], arguments)
        for number, argument in enumerate(arguments):
            among = [regions[n] for n in cycle(following, number)] if following else regions
            self.memory.choose(ops[1], argument, among)
            buffer, path = regions[number]
            heads[argument] = Head(loop, (state[buffer], path))
        return loop, heads

    def _close(
        self,
        loop: Iterations,
        heads: dict[Hashable, Head],
        state: State,
        end: Operation,
        last: Operation,
    ) -> None:
        """Let a loop go on with what its body yields."""
        loop.nexts = dict(zip(loop.starts, arrays(end.operands), strict=True))
        regions = [self.memory.region(v) for v in arrays(last.operands)]
        ours = [*loop.given, *((a, ()) for a in loop.arguments)]
        for number, (buffer, path) in enumerate(regions):
            taken = any(self.memory.overlap((buffer, path), other) for other in regions[:number])
            if taken or not self.memory.within((buffer, path), ours):
                self.fault(loop.ops[1], "a loop goes on with other buffers")
            heads[loop.arguments[number]].end = state[buffer], path
        for buffer, head in heads.items():
            head.end = head.end or (state[buffer], ())

    def _leave(
        self,
        loop: Iterations,
        left: State,
        values: Sequence[SSAValue],
        buffers: Sequence[SSAValue],
        last: Operation,
        state: State,
    ) -> None:
        """Leave a loop with these values, on tensors and on buffers, as its results."""
        op, new = loop.ops
        loop.results = dict(zip(arrays(op.results), arrays(values), strict=True))
        for buffer in state:
            state[buffer] = After(loop, left[buffer])
        for result, value in zip(arrays(new.results), arrays(buffers), strict=True):
            buffer, path = self.memory.region(value)
            held = After(loop, left[buffer]), path
            ends = self._ends(loop, last, (buffer, path))
            if len(ends) == 1:
                home, at = ends[0]
                self.memory.bind(result, ends[0])
                state[home] = Both((Write(state[home], at, held), state[home]))
            else:
                self.memory.choose(new, result, ends)
                state[result] = Write(Blank(), (), held)
        self.scalars.equate(op.results, new.results)

    def _ends(self, loop: Iterations, last: Operation, region: Region) -> Sequence[Region]:
        """Return the buffers before a loop that ``region`` may be after it."""
        arguments: list[Region] = [(a, ()) for a in loop.arguments]
        ends = [self.memory.region(v) for v in arrays(last.operands)]
        if region not in arguments or not all(end in arguments for end in ends):
            return loop.given
        numbers = cycle([arguments.index(end) for end in ends], arguments.index(region))
        turns = trip_count(self.sizes, loop.ops[0])
        last_numbers = numbers if turns is None else [numbers[turns % len(numbers)]]
        return [loop.given[n] for n in last_numbers]


def _following(loop: Operation, arguments: Sequence[SSAValue]) -> list[int]:
    """Return the permutation of a loop's buffers per iteration, empty if there is none."""
    block = loop.regions[-1].block
    names, last = arrays(block.args), block.last_op
    if isinstance(loop, scf.WhileOp):
        test = loop.before_region.block.last_op
        if test is None or arrays(test.operands) != arguments:
            return []
    ends = arrays(last.operands) if last is not None else []
    found = [names.index(end) for end in ends if end in names]
    return found if sorted(found) == list(range(len(names))) else []


_FROM_SCALARS = tensor.FromElementsOp | tensor.SplatOp
_EVENTS: dict[type[Operation], tuple[type[Operation], Any]] = {
    kernel.LaunchOp: (kernel.LaunchOp, _Checker.launch),
    kernel.CallbackOp: (kernel.CallbackOp, _Checker.callback),
    kernel.CheckOp: (kernel.CheckOp, _Checker.scalar),
    tensor.ExtractOp: (memref.LoadOp, _Checker.load),
    tensor.InsertOp: (memref.StoreOp, _Checker.store),
    tensor.FromElementsOp: (memref.StoreOp, _Checker.store),
    tensor.SplatOp: (memref.StoreOp, _Checker.store),
    scf.IfOp: (scf.IfOp, _Checker.branch),
    scf.ForOp: (scf.ForOp, _Checker.for_loop),
    scf.WhileOp: (scf.WhileOp, _Checker.while_loop),
    scf.YieldOp: (scf.YieldOp, _Checker.scalar),
    scf.ConditionOp: (scf.ConditionOp, _Checker.scalar),
    func.ReturnOp: (func.ReturnOp, _Checker.scalar),
}
"""For each op on tensors, its op on buffers and the walk over both; others are scalars or views."""
_ON_BUFFERS = {kind for kind, _ in _EVENTS.values()}
