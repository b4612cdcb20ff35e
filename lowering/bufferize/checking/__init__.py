"""Prove that every read in a host function on buffers has the tensor of the program as its value.

This is a forward dataflow analysis, independent of the analysis that assigned the buffers. The
functions on tensors and on buffers are traversed side by side. The state at a point says which
region of which buffer holds which tensor (`contents`): a launch sets its destination to its result,
a copy sets one region to the contents of another, and each write invalidates all regions that
overlap it. The state after a branch is the meet of its sides; a loop is traversed to a fixpoint. A
buffer that a loop exchanges has its own name in the loop, and may alias any buffer of its cycle.
Summaries of kernels are trusted: the operands read, and the inputs that may alias a destination.
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
from stepwell.lowering.bufferize.assignment import is_view, rows_of
from stepwell.lowering.bufferize.checking.contents import Contents, Region, Tensors, element
from stepwell.lowering.bufferize.checking.loops import Fault, Loop, Walked, arrays, is_array
from stepwell.lowering.bufferize.checking.memory import Memory
from stepwell.lowering.bufferize.kernel_summary import KernelSummary
from stepwell.lowering.bufferize.returns import updated_arguments
from stepwell.transforms.passes import fail


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
    checker = _Checker(before, after, kernels)
    checker.run()
    for op, message in checker.faults[:1]:
        fail(op, f"compiler bug: after bufferize {message}")


class _Checker:
    def __init__(self, before: func.FuncOp, after: func.FuncOp, kernels: Assumptions) -> None:
        self.before, self.after, self.kernels = before, after, kernels
        self.sizes = Sizes(before.args)
        self.tensors = Tensors(self.sizes)
        self.faults: list[Fault] = []
        self.scalars: dict[Hashable, SSAValue] = {}
        """Results of scalar ops on tensors by value number: op, attributes and operands."""
        self.inserted: dict[SSAValue, None] = {}
        """Results of insertions that have views, and no region recorded yet."""
        given = len(before.args)
        outputs = after.args[given:]
        updated = updated_arguments(before)
        shared: dict[Hashable, Hashable] = {outputs[n]: after.args[k] for k, n in updated.items()}
        self.memory = Memory(self.sizes, shared, set(after.args[:given]))

    def run(self) -> None:
        """Traverse the function, and check its returned values."""
        state = Contents(self.tensors)
        for old, new in zip(self.before.args, self.after.args, strict=False):
            self.sizes.equate(new, old)
            state.put((new, ()), [(((), old, ()), ())])
        for argument in self.after.args:
            self.memory.bind(argument, (argument, ()))
        outputs = self.after.args[len(self.before.args) :]
        returned = self.before.body.block.last_op
        assert returned is not None
        for output, value in zip(outputs, returned.operands, strict=True):
            self.sizes.equate(output, value)
        end, last = self.block(self.before.body.block, self.after.body.block, state)
        for value, output in zip(end.operands, outputs, strict=True):
            self.read(last, output, value, state)

    def fault(self, op: Operation, message: str) -> None:
        """Record a fault; a loop discards the faults of every round before its fixpoint."""
        self.faults.append((op, message))

    def block(self, old: Block, new: Block, state: Contents) -> tuple[Operation, Operation]:
        """Traverse two blocks side by side; return their terminators."""
        rest, op, now = iter(new.ops), None, None
        for op in old.ops:
            if isinstance(op, tensor.InsertSliceOp | tensor.InsertOp | kernel.StackOp) and any(
                is_view(use.operation) for use in op.result.uses
            ):
                self.inserted[op.result] = None
            if type(op) not in _EVENTS:
                self._scalar(op, None)
                continue
            stores = len(op.operands) if isinstance(op, _FROM_SCALARS) else 1
            for number in range(stores):
                now = self._advance(rest, state)
                if now is None or type(now) not in _EVENTS[type(op)][0]:
                    fail(now or self.after, f"compiler bug: bufferize made this of {op.name}")
                self._note_insertions(state, done=True)
                _EVENTS[type(op)][1](self, op, now, state, number)
        assert op is not None and now is not None
        return op, now

    def _advance(self, rest: Iterator[Operation], state: Contents) -> Operation | None:
        """Traverse ops that exist only on buffers, to the next one with an op on tensors."""
        for op in rest:
            match op:
                case memref.CopyOp():
                    self._copy(op, state)
                case memref.AllocOp():
                    self.memory.bind(op.memref, (op.memref, ()))
                    state.held.pop(op.memref, None)
                case memref.GetGlobalOp():
                    name = op.name_.string_value()
                    self.memory.bind(op.memref, (name, ()))
                    self.memory.constant.add(name)
                    held = self.kernels.constant(name)
                    state.put((name, ()), [(((), held, ()), ())])
                case _ if self.memory.view(op):
                    pass
                case _ if type(op) in _ON_BUFFERS:
                    return op
                case _:
                    self._scalar(op, self.scalars)
        return None

    def _scalar(self, op: Operation, known: dict[Hashable, SSAValue] | None) -> None:
        """Equate a scalar op on buffers with its equal in ``known``; if None, record the op."""
        if op.regions or not op.results or any(is_array(v) for v in op.operands):
            return
        made = tuple(self.sizes.of(v) for v in op.operands)
        of = (*sorted(op.properties.items()), *sorted(op.attributes.items()))
        for number, result in enumerate(op.results):
            key = type(op), of, made, result.type, number
            if known is None:
                self.scalars.setdefault(key, result)
            elif key in known:
                self.sizes.equate(result, known[key])

    # -- transfer functions

    def read(self, op: Operation, buffer: SSAValue, value: SSAValue, state: Contents) -> None:
        """Check that a buffer holds ``value`` without gaps."""
        region = self.memory.region(buffer)
        if state.gaps(region, value) != ():
            name = f"%{value.name_hint}" if value.name_hint else "a tensor"
            self.fault(op, f"{op.name} reads what is not {name}")

    def write(self, op: Operation, buffer: SSAValue, state: Contents, part: Any = ()) -> Region:
        """Invalidate the contents of part of a buffer; return the region."""
        home, path = self.memory.region(buffer)
        region = home, (*path, *part)
        if self.memory.is_constant(region):
            self.fault(op, f"{op.name} writes an argument or a constant")
        self.memory.overwrite(region, state)
        return region

    def equal(self, op: Operation, old: Sequence[SSAValue], new: Sequence[SSAValue]) -> None:
        """Check that scalar operands are the same."""
        scalars = [v for v in old if not is_array(v)], [v for v in new if not is_array(v)]
        if [self.sizes.of(v) for v in scalars[0]] != [self.sizes.of(v) for v in scalars[1]]:
            self.fault(op, f"{op.name} has other scalars")

    def _copy(self, op: memref.CopyOp, state: Contents) -> None:
        source, target = (self.memory.region(v) for v in (op.source, op.destination))
        self._note_insertions(state)
        rows = state.seen(source)
        if not self.memory.same_or_apart(source, target):
            self.fault(op, "a copy writes over what it reads")
        agreeing = state.agreeing(target, rows)
        self.write(op, op.destination, state)
        state.held.setdefault(target[0], {}).update(agreeing)
        state.put(target, rows)
        if self.memory.overlap(source, target):  # both are one region: it keeps its contents
            state.put(source, rows)

    def _note_insertions(self, state: Contents, done: bool = False) -> None:
        """Record the regions that hold results of insertions, before a part of one is copied."""
        for value in list(self.inserted):
            if rows := state.named([value], [value]):
                state.add(rows)
                if done:
                    del self.inserted[value]

    def launch(self, op: Any, new: Any, state: Contents, number: int) -> None:
        """Transfer a launch: it reads inputs and some destinations, and writes all destinations."""
        name = new.callee.root_reference.data
        summary = self.kernels.summary(name)
        if summary.function.sym_name.data != op.callee.root_reference.data:
            self.fault(new, "another kernel is launched")
        for old, now, read in zip(op.inputs, new.inputs, summary.reads_input, strict=True):
            if read and is_array(old):
                self.read(new, now, old, state)
        for old, now, read in zip(op.outputs, new.outputs, summary.reads_destination, strict=False):
            if read:
                self.read(new, now, old, state)
        self.equal(new, op.inputs, new.inputs)
        self._check_aliasing(new, [*summary.reads_input, *[True] * len(new.outputs)])
        if len(new.outputs) == len(op.results) + len(summary.extras):
            self._set_results(new, new.outputs, op.results, state)
            return
        whole, *_ = [self.write(new, buffer, state) for buffer in new.outputs]
        rows = rows_of(self.sizes, op.results)  # of a stack, the only destination of the kernel
        for (row, seen), result in zip(rows, op.results, strict=True):
            state.put((whole[0], (*whole[1], row, *seen)), [(((), result, ()), ())])

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

    def _set_results(
        self, op: Operation, into: Sequence[SSAValue], made: Sequence[SSAValue], state: Contents
    ) -> None:
        regions = [self.write(op, buffer, state) for buffer in into]
        for region, result in zip(regions, made, strict=False):
            state.put(region, [(((), result, ()), ())])

    def callback(self, op: Any, new: Any, state: Contents, number: int) -> None:
        """Transfer a callback: it reads its inputs and writes its outputs."""
        for old, now in zip(op.inputs, new.inputs, strict=True):
            self.read(new, now, old, state)
            for out in new.outputs:
                if self.memory.overlap(self.memory.region(now), self.memory.region(out)):
                    self.fault(new, "a callback writes over what it reads")
        self._set_results(new, new.outputs, op.results, state)

    def load(self, op: Any, new: Any, state: Contents, number: int) -> None:
        """Transfer the read of one element."""
        self.equal(new, op.indices, new.indices)
        buffer, path = self.memory.region(new.memref)
        at = element(tuple(self.sizes.of(v) for v in op.indices))
        if state.gaps((buffer, (*path, *at)), op.tensor, at) != ():
            self.fault(new, "an element is read that is not that of the tensor")
        self.sizes.equate(new.results[0], op.result)

    def store(self, op: Any, new: Any, state: Contents, number: int) -> None:
        """Transfer the write of one element; the rest of the buffer keeps its contents."""
        result = op.results[0]
        pieces, _ = self.tensors.pieces(result)
        at, key = pieces[number]
        if element(tuple(self.sizes.of(v) for v in new.indices)) != at:
            self.fault(new, "an element is stored elsewhere")
        scalar = op.scalar if isinstance(op, tensor.InsertOp) else op.operands[number]
        self.equal(new, [scalar], [new.value])
        region = self.write(new, new.memref, state, at)
        state.put(region, [(((), key, ()), ())])

    def scalar(self, op: Operation, new: Operation, state: Contents, number: int) -> None:
        """Transfer an op on scalars alone, or a terminator."""
        self.equal(new, op.operands, new.operands)

    # -- branches and loops

    def branch(self, op: Any, new: Any, state: Contents, number: int) -> None:
        """Transfer a branch: the meet of its sides, in which yielded tensors become the results."""
        self.equal(new, [op.cond], [new.cond])
        sides: list[tuple[Contents, Sequence[SSAValue]]] = []
        for old, now in zip(op.regions, new.regions, strict=True):
            side = state.copy()
            given = ()
            if old.blocks:
                given = self.block(old.block, now.block, side)[0].operands
            sides.append((side, given))
        (a, first), (b, second) = sides
        found = a.meet(b)
        for one, other, result in zip(first, second, op.results, strict=True):
            if not is_array(result):
                continue
            self._mark_blank(result, [one, other])
            for region in {**a.regions(one), **b.regions(other)}:
                ours, theirs = a.gaps(region, one), b.gaps(region, other)
                if ours is not None and theirs is not None:
                    found.add([(region, result, (*ours, *theirs))])
        state.held = found.held
        self._equate_scalars(op.results, new.results)

    def _equate_scalars(self, old: Sequence[SSAValue], new: Sequence[SSAValue]) -> None:
        """Equate the scalars among block arguments or results, on tensors and on buffers."""
        for was, now in zip([v for v in old if not is_array(v)], new, strict=False):
            self.sizes.equate(now, was)

    def for_loop(self, op: Any, new: Any, state: Contents, number: int) -> None:
        """Transfer a for loop."""
        self.equal(new, op.operands, new.operands)
        old, now = op.body.block, new.body.block
        self._equate_scalars(old.args, now.args)

        def walk(inside: Contents) -> Walked:
            head = inside.copy()
            end, last = self.block(old, now, inside)
            self.equal(last, end.operands, last.operands)
            carried = arrays(old.args), arrays(now.args)
            return Walked(inside, arrays(end.operands), arrays(last.operands), head, *carried)

        self._loop(op, new, state, op.iter_args, old, new.iter_args, now, walk)

    def while_loop(self, op: Any, new: Any, state: Contents, number: int) -> None:
        """Transfer a while loop: its test passes values to the body, or to the results."""
        self.equal(new, op.operands, new.operands)
        test, test_now = op.before_region.block, new.before_region.block
        old, now = op.after_region.block, new.after_region.block
        self._equate_scalars(test.args, test_now.args)
        self._equate_scalars(old.args, now.args)

        def walk(inside: Contents) -> Walked:
            end, last = self.block(test, test_now, inside)
            left, given, handed = inside.copy(), arrays(end.operands), arrays(last.operands)
            inside.add(inside.named(given, arrays(old.args)))
            for value, argument in zip(handed, arrays(now.args), strict=True):
                self.memory.bind(argument, self.memory.region(value))
            end, last = self.block(old, now, inside)
            ends = arrays(end.operands), arrays(last.operands)
            return Walked(inside, *ends, left, given, handed)

        self._loop(op, new, state, op.arguments, test, new.arguments, test_now, walk)

    def _loop(
        self,
        op: Operation,
        new: Operation,
        state: Contents,
        inits: Sequence[SSAValue],
        old: Block,
        given: Sequence[SSAValue],
        now: Block,
        walk: Callable[[Contents], Walked],
    ) -> None:
        slots, arguments = arrays(old.args), arrays(now.args)
        regions = [self.memory.region(v) for v in arrays(given)]
        loop = Loop(op, new, self.memory, self.faults, arrays(inits), slots, regions, arguments)
        state.held = loop.walk(state.copy(), walk).held
        self._equate_scalars(op.results, new.results)

    def _mark_blank(self, result: SSAValue, given: Sequence[SSAValue]) -> None:
        """Mark a result of a branch or loop as blank if all of its sources are undefined."""
        blank = self.tensors.blank
        (blank.add if all(map(self.tensors.is_blank, given)) else blank.discard)(result)


_FROM_SCALARS = tensor.FromElementsOp | tensor.SplatOp
_EVENTS: dict[type[Operation], tuple[tuple[type[Operation], ...], Any]] = {
    kernel.LaunchOp: ((kernel.LaunchOp,), _Checker.launch),
    kernel.CallbackOp: ((kernel.CallbackOp,), _Checker.callback),
    kernel.CheckOp: ((kernel.CheckOp,), _Checker.scalar),
    tensor.ExtractOp: ((memref.LoadOp,), _Checker.load),
    tensor.InsertOp: ((memref.StoreOp,), _Checker.store),
    tensor.FromElementsOp: ((memref.StoreOp,), _Checker.store),
    tensor.SplatOp: ((memref.StoreOp,), _Checker.store),
    scf.IfOp: ((scf.IfOp,), _Checker.branch),
    scf.ForOp: ((scf.ForOp,), _Checker.for_loop),
    scf.WhileOp: ((scf.WhileOp,), _Checker.while_loop),
    scf.YieldOp: ((scf.YieldOp,), _Checker.scalar),
    scf.ConditionOp: ((scf.ConditionOp,), _Checker.scalar),
    func.ReturnOp: ((func.ReturnOp,), _Checker.scalar),
}
"""For each op on tensors, its ops on buffers and transfer function; others are scalars or views."""
_ON_BUFFERS = {kind for kinds, _ in _EVENTS.values() for kind in kinds}
