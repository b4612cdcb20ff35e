"""Prove of a host function on buffers that every read finds the tensor the program says.

The function on tensors and the one on buffers are walked side by side. What is known at a point is
which region of which buffer holds which tensor (`contents`): a launch makes its destination hold
its result, a copy makes one region hold what another does, and each write takes from all that
overlaps it. Nothing of the analysis that chose the buffers is asked. A branch holds what both of
its sides hold; a loop is walked until what holds at its head holds there again at its end. Buffers
that a loop exchanges are known by their names in the loop, and may then be any of those it began
with. Kernels are believed: what they read, and which input may share a destination's memory.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import func, memref, scf, tensor
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase
from xdsl.ir import Attribute, Block, Operation, SSAValue

from stepwell.analysis.sizes import Sizes
from stepwell.dialects import kernel
from stepwell.lowering.bufferize.assignment import is_view, rows_of
from stepwell.lowering.bufferize.checking.contents import Contents, Region, Tensors, element
from stepwell.lowering.bufferize.checking.loops import Fault, Loop, Walked, arrays, is_array
from stepwell.lowering.bufferize.checking.memory import Memory
from stepwell.lowering.bufferize.facts import Facts
from stepwell.lowering.bufferize.returns import updated_arguments
from stepwell.transforms.passes import fail


@dataclass(frozen=True)
class Given:
    """What the checker takes for granted: the kernels and constants of the module."""

    facts: Callable[[str], Facts]
    """What is known of the kernel of a name, on tensors or on buffers."""
    on_buffers: Callable[[str], kernel.FuncOp]
    constant: Callable[[str], Attribute]
    """The elements of a global."""


def check_buffers(before: func.FuncOp, after: func.FuncOp, kernels: Given) -> None:
    """Fail where ``after``, on buffers, does not read what ``before`` says, on tensors."""
    checker = _Checker(before, after, kernels)
    checker.run()
    for op, message in checker.faults[:1]:
        fail(op, f"compiler bug: after bufferize {message}")


class _Checker:
    def __init__(self, before: func.FuncOp, after: func.FuncOp, kernels: Given) -> None:
        self.before, self.after, self.kernels = before, after, kernels
        self.sizes = Sizes(before.args)
        self.tensors = Tensors(self.sizes)
        self.faults: list[Fault] = []
        self.scalars: dict[Hashable, SSAValue] = {}
        """Results of ops on scalars, by what they are made of."""
        self.inserted: dict[SSAValue, None] = {}
        """What is made by insertion, and seen in part."""
        given = len(before.args)
        outputs = after.args[given:]
        updated = updated_arguments(before)
        shared: dict[Hashable, Hashable] = {outputs[n]: after.args[k] for k, n in updated.items()}
        self.memory = Memory(self.sizes, shared, set(after.args[:given]))

    def run(self) -> None:
        """Walk the function, and check what it returns."""
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
        """Note what is wrong; what a loop's first rounds find counts only if it stays."""
        self.faults.append((op, message))

    def block(self, old: Block, new: Block, state: Contents) -> tuple[Operation, Operation]:
        """Walk two blocks side by side; return their last ops."""
        rest, op, now = iter(new.ops), None, None
        for op in old.ops:
            if isinstance(op, tensor.InsertSliceOp | tensor.InsertOp | kernel.StackOp) and any(
                is_view(use.operation) for use in op.result.uses
            ):
                self.inserted[op.result] = None
            if type(op) not in _EVENTS:
                self._scalar(op, None)
                continue
            stores = len(op.operands) if isinstance(op, _MADE) else 1
            for number in range(stores):
                now = self._advance(rest, state)
                if now is None or type(now) not in _EVENTS[type(op)][0]:
                    fail(now or self.after, f"compiler bug: bufferize made this of {op.name}")
                self._note_insertions(state, done=True)
                _EVENTS[type(op)][1](self, op, now, state, number)
        assert op is not None and now is not None
        return op, now

    def _advance(self, rest: Iterator[Operation], state: Contents) -> Operation | None:
        """Walk what only buffers have, to the next op that stands for one on tensors."""
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
        """Note an op on tensors, or find out which of these one on buffers stands for."""
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

    # -- what ops do

    def read(self, op: Operation, buffer: SSAValue, value: SSAValue, state: Contents) -> None:
        """Check that a buffer holds ``value``."""
        region = self.memory.region(buffer)
        if state.gaps(region, value) != ():
            name = f"%{value.name_hint}" if value.name_hint else "a tensor"
            self.fault(op, f"{op.name} reads what is not {name}")

    def write(self, op: Operation, buffer: SSAValue, state: Contents, part: Any = ()) -> Region:
        """Note that part of a buffer is overwritten; return the region."""
        home, path = self.memory.region(buffer)
        region = home, (*path, *part)
        if self.memory.is_constant(region):
            self.fault(op, f"{op.name} writes an argument or a constant")
        self.memory.overwrite(region, state)
        return region

    def equal(self, op: Operation, old: Sequence[SSAValue], new: Sequence[SSAValue]) -> None:
        """Check that scalars are the same."""
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
        if self.memory.overlap(source, target):  # if they are one, it still holds what it held
            state.put(source, rows)

    def _note_insertions(self, state: Contents, done: bool = False) -> None:
        """Note which regions hold what is made by insertion, of which a part may be copied."""
        for value in list(self.inserted):
            if rows := state.named([value], [value]):
                state.add(rows)
                if done:
                    del self.inserted[value]

    def launch(self, op: Any, new: Any, state: Contents, number: int) -> None:
        """A launch reads inputs and some destinations, and writes all of these."""
        name = new.callee.root_reference.data
        facts = self.kernels.facts(name)
        if facts.function.sym_name.data != op.callee.root_reference.data:
            self.fault(new, "another kernel is launched")
        for old, now, read in zip(op.inputs, new.inputs, facts.reads_input, strict=True):
            if read and is_array(old):
                self.read(new, now, old, state)
        for old, now, read in zip(op.outputs, new.outputs, facts.reads_destination, strict=False):
            if read:
                self.read(new, now, old, state)
        self.equal(new, op.inputs, new.inputs)
        self._check_apart(new, [*facts.reads_input, *[True] * len(new.outputs)])
        if len(new.outputs) == len(op.results) + len(facts.extras):
            self._give(new, new.outputs, op.results, state)
            return
        whole, *_ = [self.write(new, buffer, state) for buffer in new.outputs]
        rows = rows_of(self.sizes, op.results)  # of one stack, which the kernel is given as a whole
        for (row, seen), result in zip(rows, op.results, strict=True):
            state.put((whole[0], (*whole[1], row, *seen)), [(((), result, ()), ())])

    def _check_apart(self, new: kernel.LaunchOp, reads: Sequence[bool]) -> None:
        """Check that a launch writes over nothing that it reads, but where its kernel may."""
        name = new.callee.root_reference.data
        may = self.kernels.on_buffers(name).attributes.get("kernel.in_place")
        pairs: set[Any] = set()
        if isinstance(may, ArrayAttr):
            pairs = {tuple(p.get_values()) for p in may if isinstance(p, DenseArrayBase)}
        for j in range(len(new.inputs), len(new.operands)):
            for i in (i for i in range(j) if reads[i] and is_array(new.operands[i])):
                a, b = (self.memory.region(new.operands[k]) for k in (i, j))
                shared = (i, j) in pairs and self.memory.same_or_apart(a, b)
                if not shared and self.memory.overlap(a, b):
                    self.fault(new, f"a launch writes operand {j} over operand {i}")

    def _give(
        self, op: Operation, into: Sequence[SSAValue], made: Sequence[SSAValue], state: Contents
    ) -> None:
        regions = [self.write(op, buffer, state) for buffer in into]
        for region, result in zip(regions, made, strict=False):
            state.put(region, [(((), result, ()), ())])

    def callback(self, op: Any, new: Any, state: Contents, number: int) -> None:
        """A function of the host reads its inputs and writes its outputs."""
        for old, now in zip(op.inputs, new.inputs, strict=True):
            self.read(new, now, old, state)
            for out in new.outputs:
                if self.memory.overlap(self.memory.region(now), self.memory.region(out)):
                    self.fault(new, "a callback writes over what it reads")
        self._give(new, new.outputs, op.results, state)

    def load(self, op: Any, new: Any, state: Contents, number: int) -> None:
        """One element is read."""
        self.equal(new, op.indices, new.indices)
        buffer, path = self.memory.region(new.memref)
        at = element(tuple(self.sizes.of(v) for v in op.indices))
        if state.gaps((buffer, (*path, *at)), op.tensor, at) != ():
            self.fault(new, "an element is read that is not that of the tensor")
        self.sizes.equate(new.results[0], op.result)

    def store(self, op: Any, new: Any, state: Contents, number: int) -> None:
        """One element is written; elsewhere the buffer is what it was."""
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
        """An op on scalars alone, or the end of a block."""
        self.equal(new, op.operands, new.operands)

    # -- branches and loops

    def branch(self, op: Any, new: Any, state: Contents, number: int) -> None:
        """What both sides hold; what they yield is the result."""
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
            self._blank(result, [one, other])
            for region in {**a.regions(one), **b.regions(other)}:
                ours, theirs = a.gaps(region, one), b.gaps(region, other)
                if ours is not None and theirs is not None:
                    found.add([(region, result, (*ours, *theirs))])
        state.held = found.held
        self._carry(op.results, new.results)

    def _carry(self, old: Sequence[SSAValue], new: Sequence[SSAValue]) -> None:
        """Note which scalars those of a block or loop are."""
        for was, now in zip([v for v in old if not is_array(v)], new, strict=False):
            self.sizes.equate(now, was)

    def for_loop(self, op: Any, new: Any, state: Contents, number: int) -> None:
        """A loop from one number to another."""
        self.equal(new, op.operands, new.operands)
        old, now = op.body.block, new.body.block
        self._carry(old.args, now.args)

        def walk(inside: Contents) -> Walked:
            head = inside.copy()
            end, last = self.block(old, now, inside)
            self.equal(last, end.operands, last.operands)
            carried = arrays(old.args), arrays(now.args)
            return Walked(inside, arrays(end.operands), arrays(last.operands), head, *carried)

        self._loop(op, new, state, op.iter_args, old, new.iter_args, now, walk)

    def while_loop(self, op: Any, new: Any, state: Contents, number: int) -> None:
        """A loop with a test, which hands on to its body, or to what comes after."""
        self.equal(new, op.operands, new.operands)
        test, test_now = op.before_region.block, new.before_region.block
        old, now = op.after_region.block, new.after_region.block
        self._carry(test.args, test_now.args)
        self._carry(old.args, now.args)

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
        self._carry(op.results, new.results)

    def _blank(self, result: SSAValue, given: Sequence[SSAValue]) -> None:
        """Note whether nobody has set an element of what a branch or loop gives."""
        blank = self.tensors.blank
        (blank.add if all(map(self.tensors.is_blank, given)) else blank.discard)(result)


_MADE = tensor.FromElementsOp | tensor.SplatOp
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
"""What an op on tensors is on buffers, and how both are walked; all others are scalars or views."""
_ON_BUFFERS = {kind for kinds, _ in _EVENTS.values() for kind in kinds}
