"""Every copy that a host function asks for: with all of them, each tensor has a buffer of its own.

Where a tensor goes on as another there is a copy: before an op that updates its destination, of
what is inserted, at the end of a branch, before a loop, for its next iteration and behind it, and
for what is returned. The function is right so, whatever else it does. `coalescing` then removes
copies, by letting both ends of one be in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import arith, func, scf, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from stepwell.analysis.sizes import Shape, Sizes
from stepwell.dialects import kernel
from stepwell.lowering.bufferize.assignment import (
    Assignment,
    Storage,
    rows_of,
    slice_of,
    step_of,
)
from stepwell.lowering.bufferize.copies import Copy, Edges, Kind, Loop
from stepwell.lowering.bufferize.edges import surrounded
from stepwell.lowering.bufferize.facts import Facts
from stepwell.lowering.bufferize.intervals import BEFORE, RUN, WRITTEN, Positions, Variable
from stepwell.lowering.bufferize.returns import updated_arguments
from stepwell.lowering.bufferize.views import Slice, Steps, buffer_of, disjoint, join, part
from stepwell.transforms.passes import fail


class Copies:
    """The tensors of a host function and the copies between them."""

    def __init__(self, function: func.FuncOp, facts: Callable[[kernel.LaunchOp], Facts]) -> None:
        block = function.body.block
        self.facts = facts
        self.sizes = Sizes(block.args)
        self.positions = Positions(block)
        self.assigned = Assignment(self.sizes)
        self.all: list[Copy] = []
        self.of: dict[Operation, list[Copy]] = {}
        """By the op at which they are."""
        self.loops: dict[Operation, Loop] = {}
        self.extras: dict[Operation, list[Storage]] = {}
        """Temporaries of launches."""
        self.variables: dict[SSAValue, Variable] = {}
        self._views: dict[SSAValue, tuple[SSAValue, Steps]] = {}
        self.undefined: set[SSAValue] = set()
        """Tensors whose elements nobody has set."""
        self.updated: dict[int, Storage] = {}
        """The memory of arguments that results replace, by number of the result."""
        updated = updated_arguments(function)
        for number, argument in enumerate(block.args):
            if isinstance(argument.type, TensorType):
                resource = _has_resource(function, number)
                kind = "constant" if resource else "updated" if number in updated else "input"
                storage = self.assigned.new(self._new(argument, -1), kind)
                if kind == "updated":
                    self.updated[updated[number]] = storage
        self._visit(block)

    # -- what is written and read

    def _new(self, value: SSAValue, made: int) -> Variable:
        variable = self.variables[value] = Variable(value, made, made)
        return variable

    def _make(self, value: SSAValue, op: Operation, position: int) -> Variable:
        """Give a tensor a buffer of its own, which ``op`` writes."""
        variable = self._new(value, position)
        self.assigned.new(variable)
        return variable

    def seen(self, value: SSAValue) -> tuple[SSAValue, Steps]:
        """Return the tensor of which ``value`` is a view, and the view."""
        return self._views.get(value, (value, ()))

    def read(
        self,
        value: SSAValue,
        op: Operation,
        when: int,
        but: Sequence[Slice] = (),
        operand: int = -1,
    ) -> None:
        """Note that ``op`` reads ``value``, but for some parts of it."""
        root, steps = self.seen(value)
        if root in self.undefined:
            return
        variable, position = self.variables[root], self.positions.start(op) + when
        made = variable.start
        if isinstance(root.owner, scf.IfOp):
            made = self.positions.end(root.owner)
        around = self.positions.outermost(made, op)
        holes = tuple(join(steps, (box,)) for box in but if self._is_there(box, around))
        spans = self.positions.spans(made, op, position)
        reads = variable.live(spans, steps, holes)
        if operand >= 0:
            reads.operands.setdefault(position, []).append(operand)

    def _is_there(self, box: Slice, loop: Operation | None) -> bool:
        """Whether a box is the same in all iterations of a loop."""
        if loop is None:
            return True
        unknown = [
            v for n in (*box.offsets, *box.sizes, *box.strides) for v in self.sizes.unknowns(n)
        ]
        return all(self.positions.dominates(v, loop) for v in unknown)

    def _copy(
        self, kind: Kind, at: Operation, value: SSAValue, into: SSAValue, steps: Steps = ()
    ) -> Copy:
        copy = Copy(kind, at, value, into, steps)
        self.all.append(copy)
        self.of.setdefault(at, []).append(copy)
        return copy

    def _writes(self, copy: Copy, position: int) -> None:
        """Note what a copy writes, if there is something to copy."""
        if self.seen(copy.value)[0] not in self.undefined:
            self.variables[copy.into].write(position, copy.steps, copy)

    # -- ops

    def _visit(self, block: Block) -> None:
        for op in block.ops:
            if (rule := _VISIT.get(type(op))) is not None:
                rule(self, op)
            elif any(isinstance(v.type, TensorType) for v in (*op.operands, *op.results)):
                first = {"func.call": "inline-calls", "linalg.generic": "outline-kernels"}.get(
                    op.name
                )
                help = f"run {first} first" if first else ""
                fail(op, f"bufferize does not know {op.name} on the host", help)

    def empty(self, op: tensor.EmptyOp) -> None:
        """An empty tensor: memory that nobody has set."""
        self._make(op.tensor, op, self.positions.start(op) + RUN)
        self.undefined.add(op.tensor)

    def constant(self, op: arith.ConstantOp) -> None:
        """A dense constant: a global of the module."""
        if isinstance(op.result.type, TensorType):
            self.assigned.new(self._new(op.result, -1), "constant")

    def view(self, op: Operation) -> None:
        """A slice or reshape: a view, or a copy where the elements do not lie as they must."""
        source, result = op.operands[0], op.results[0]
        step = step_of(self.sizes, op)
        root, steps = self.seen(source)
        if root in self.undefined:
            self.undefined.add(result)
        elif isinstance(op, tensor.ExtractSliceOp) and self._is_late(op):
            self._copied(op)
            return
        if self.assigned.view(result, source, (step,)):
            self._views[result] = root, join(steps, (step,))
            return
        variable = self._new(result, self.positions.start(op) + RUN)
        self.assigned.assign(variable, self.assigned.storage(source), (step,))
        self._copied(op, False)

    def _copied(self, op: Operation, new: bool = True) -> None:
        source, result = op.operands[0], op.results[0]
        position = self.positions.start(op) + RUN
        if new:
            self._make(result, op, position)
        self.read(source, op, RUN)
        copy = self._copy("slice", op, source, result)
        copy.seen = (step_of(self.sizes, op),)
        self._writes(copy, position)

    def _is_late(self, op: tensor.ExtractSliceOp) -> bool:
        """Whether a slice may keep what it is a slice of, which is larger, from being updated."""
        last = max((self.positions.start(u.operation) for u in op.result.uses), default=-1)
        small = count(self.sizes.shape(op.result))
        root, _ = self.seen(op.source)
        box = part((slice_of(self.sizes, op),))
        large = count(self.sizes.shape(root))
        if 2 * small > large:
            return False
        for use in op.source.uses:
            by = use.operation
            if isinstance(by, tensor.InsertSliceOp) and use.index == 1:
                if disjoint(self.sizes, box, part((slice_of(self.sizes, by),))):
                    continue
            elif not isinstance(by, kernel.LaunchOp | tensor.InsertOp | scf.ForOp | scf.WhileOp):
                continue
            elif isinstance(by, kernel.LaunchOp):
                number = use.index - len(by.inputs)
                if number < 0 or not self.facts(by).reads_destination[number]:
                    continue
            elif isinstance(by, tensor.InsertOp) and use.index != 1:
                continue
            same = self.positions.depth(op) <= self.positions.depth(by)
            if same and self.positions.start(op) < self.positions.start(by) < last:
                return True
        return False

    def launch(self, op: kernel.LaunchOp) -> None:
        """A launch: each result is written, where the kernel wishes over its destination."""
        facts, inputs, at = self.facts(op), len(op.inputs), self.positions.start(op)
        for number, value in enumerate(op.inputs):
            if isinstance(value.type, TensorType) and facts.reads_input[number]:
                self.read(value, op, RUN, operand=number)
        for number, (into, result) in enumerate(zip(op.outputs, op.results, strict=True)):
            variable = self._make(result, op, at + RUN)
            if facts.reads_destination[number]:
                self.read(into, op, BEFORE)
                self._writes(self._copy("update", op, into, result), at + WRITTEN)
            variable.write(at + RUN, (), number)
        assert inputs == len(facts.reads_input)
        self.extras[op] = [
            Storage("local", buffer_of(c.type), _outside(self.sizes, op, facts, shape), beside=op)
            for c, shape in zip(facts.extras, facts.extra_shapes, strict=True)
        ]

    def insert_slice(self, op: tensor.InsertSliceOp) -> None:
        """An insertion: the destination goes on as the result, the source as a slice of it."""
        at, box = self.positions.start(op), slice_of(self.sizes, op)
        steps = () if box.is_all_of(self.sizes.shape(op.result)) else (box,)
        self._make(op.result, op, at + RUN)
        if steps:
            self.read(op.dest, op, BEFORE, self._overwritten(op))
            self._writes(self._copy("update", op, op.dest, op.result), at + WRITTEN)
        self.read(op.source, op, RUN)
        self._writes(self._copy("insert", op, op.source, op.result, steps), at + RUN)

    def _overwritten(self, op: tensor.InsertSliceOp) -> list[Slice]:
        """Return parts of a destination that this and the next insertions replace unread."""
        found = [slice_of(self.sizes, op)]
        use = op.result.get_user_of_unique_use() if op.result.has_one_use() else None
        if isinstance(use, tensor.InsertSliceOp) and use.parent is op.parent:
            found += self._overwritten(use) if use.dest is op.result else []
        return found

    def stack(self, op: kernel.StackOp) -> None:
        """A stack: each part goes on as the beginning of a row."""
        at = self.positions.start(op)
        self._make(op.result, op, at + RUN)
        for value, (row, seen) in zip(op.parts, rows_of(self.sizes, op.parts), strict=True):
            self.read(value, op, WRITTEN)
            self._writes(self._copy("insert", op, value, op.result, (row, *seen)), at + RUN)

    def insert(self, op: tensor.InsertOp) -> None:
        """One element replaced: the destination goes on as the result."""
        at = self.positions.start(op)
        variable = self._make(op.result, op, at + RUN)
        self.read(op.dest, op, BEFORE)
        self._writes(self._copy("update", op, op.dest, op.result), at + WRITTEN)
        variable.write(at + RUN, (), None)

    def made(self, op: Operation) -> None:
        """A tensor made of scalars, or by a function of the host."""
        for value in op.operands:
            self.extract_from(op, value)
        for result in op.results:
            at = self.positions.start(op) + RUN
            self._make(result, op, at).write(at, (), None)

    def extract(self, op: tensor.ExtractOp) -> None:
        """One element is read."""
        self.extract_from(op, op.tensor)

    def extract_from(self, op: Operation, value: SSAValue) -> None:
        """An op reads a tensor when it runs."""
        if isinstance(value.type, TensorType):
            self.read(value, op, RUN)

    def branch(self, op: scf.IfOp) -> None:
        """A branch: what either side yields goes on as the result."""
        for result in op.output:
            if isinstance(result.type, TensorType):
                self._make(result, op, self.positions.end(op))
        for region in op.regions:
            self._visit(region.block)
            last = region.block.last_op
            assert last is not None
            end = self.positions.start(last)
            for value, result in zip(last.operands, op.output, strict=True):
                if isinstance(result.type, TensorType) and result.first_use is not None:
                    self.read(value, last, BEFORE)
                    self._writes(self._copy("branch", last, value, result), end + WRITTEN)
                    # until the end of its side; where both join it is live until the last read
                    stop = self.positions.end(op) if region is op.regions[-1] else end + RUN
                    self.variables[result].live([(end + WRITTEN, stop)], (), ())

    def for_loop(self, op: scf.ForOp) -> None:
        """A loop: what it carries begins as its operand and ends as its result."""
        block = op.body.block
        last = block.last_op
        assert isinstance(last, scf.YieldOp)
        loop = self.loops[op] = Loop(op, block.args[1:], last)
        self._inits(loop, op.iter_args)
        self._visit(block)
        self._nexts(loop)
        for slot, result in zip(loop.slots, op.res, strict=True):
            self._exit(loop, slot, result)

    def while_loop(self, op: scf.WhileOp) -> None:
        """A while: its first region hands to its second, which hands to the next iteration."""
        before, after = op.before_region.block, op.after_region.block
        condition, last = before.last_op, after.last_op
        assert isinstance(condition, scf.ConditionOp) and isinstance(last, scf.YieldOp)
        loop = self.loops[op] = Loop(op, before.args, last)
        self._inits(loop, op.arguments)
        self._visit(before)
        for value, argument in zip(condition.args, after.args, strict=True):
            if not isinstance(value.type, TensorType):
                continue
            if value in loop.slots:
                self.assigned.view(argument, value, ())
                self._views[argument] = value, ()
            else:
                at = self.positions.start(condition) + WRITTEN
                self._make(argument, condition, at)
                self.read(value, condition, BEFORE)
                self._writes(self._copy("hand", condition, value, argument), at)
        self._visit(after)
        self._nexts(loop)
        for value, argument, result in zip(condition.args, after.args, op.res, strict=True):
            self._exit(loop, value if value in loop.slots else argument, result, condition)

    def _inits(self, loop: Loop, inits: Sequence[SSAValue]) -> None:
        at = self.positions.start(loop.op)
        for init, slot in zip(inits, loop.slots, strict=True):
            if isinstance(slot.type, TensorType):
                self._make(slot, loop.op, at + WRITTEN)
                self.read(init, loop.op, BEFORE)
                self._writes(self._copy("init", loop.op, init, slot), at + WRITTEN)

    def _nexts(self, loop: Loop) -> None:
        at, end = self.positions.start(loop.yields), self.positions.end(loop.op)
        self.undefined |= self._unread(loop)
        for value, slot in zip(loop.yields.operands, loop.slots, strict=True):
            if isinstance(slot.type, TensorType):
                if self.sizes.shape(value) != self.sizes.shape(slot):
                    fail(loop.op, "a tensor changes its size from one iteration to the next")
                if slot in self.undefined:
                    continue
                self.read(value, loop.yields, BEFORE)
                copy = self._copy("next", loop.yields, value, slot)
                loop.nexts.append(copy)
                self._writes(copy, at + WRITTEN)
                self.variables[slot].live([(at + WRITTEN, end)], (), ())
                self._surrounded(loop, value, slot)

    def _unread(self, loop: Loop) -> set[SSAValue]:
        """Return the slots of which nobody reads what they hold, in the loop or behind it."""
        handed: Sequence[SSAValue] = loop.slots
        if isinstance(loop.op, scf.WhileOp):
            test = loop.op.before_region.block.last_op
            assert isinstance(test, scf.ConditionOp)
            handed = test.args
        kept = {v for v, r in zip(handed, loop.op.results, strict=True) if r.first_use is not None}
        unread = (s for s in loop.slots if s in self.variables and not self.variables[s].reads)
        found = set[SSAValue](unread)
        rows = list(zip(loop.yields.operands, loop.slots, strict=True))
        while read := {self.seen(v)[0] for v, slot in rows if slot not in found} | kept:
            if not found & read:
                break
            found -= read
        return found

    def _surrounded(self, loop: Loop, value: SSAValue, slot: BlockArgument) -> None:
        """Note where a loop only inserts into what it carries."""
        block = loop.yields.parent_block()
        assert block is not None
        stops = {a for a in (slot, *block.args) if self.seen(a) == (slot, ())}
        found = surrounded(self.sizes, value, slot, stops)
        if found and found[0].parent is block:
            copy = next(c for c in self.of[found[0]] if c.kind == "update")
            boxes = [slice_of(self.sizes, op) for op in found]
            loop.surrounded.append(Edges(copy, slot, value, boxes, [op.result for op in found]))

    def _exit(
        self, loop: Loop, value: SSAValue, result: SSAValue, test: Operation | None = None
    ) -> None:
        """What a loop ends with goes on as its result.

        test : the condition of a while, from where it is left
        """
        if not isinstance(result.type, TensorType):
            return
        end = self.positions.end(loop.op)
        self._make(result, loop.op, end + WRITTEN)
        if result.first_use is None:
            return
        root, steps = self.seen(value)
        variable = self.variables[root]
        spans = [(end, end)]
        if test is not None:
            spans.append((variable.start, self.positions.start(test) + WRITTEN))
        else:  # it may not run at all
            spans.append((variable.start, variable.start))
        variable.live(spans, steps, ())
        self._writes(self._copy("exit", loop.op, value, result), end + WRITTEN)


def count(sizes: Shape) -> int:
    """Return how many elements there are, an unknown size taken to be large."""
    total = 1
    for n in sizes:
        total *= LIKELY if n.number is None else n.number
    return total


LIKELY = 256
"""What a size that only the run knows is taken to be, where costs are compared."""


def _has_resource(function: func.FuncOp, number: int) -> bool:
    return function.arg_attrs is not None and "nd.resource" in function.arg_attrs.data[number].data


def _outside(sizes: Sizes, op: kernel.LaunchOp, facts: Facts, shape: Shape) -> Shape:
    """Return sizes told by a kernel's arguments as sizes told by those of the host function."""
    return tuple(facts.sizes.told(n, op.operands, sizes) for n in shape)


def _returned(copies: Copies, op: func.ReturnOp) -> None:
    for value in op.operands:
        if isinstance(value.type, TensorType):
            copies.read(value, op, BEFORE)


def _nothing(copies: Copies, op: Operation) -> None:
    """An op that makes no tensor."""


_VISIT: dict[type[Operation], Callable[[Copies, Any], None]] = {
    tensor.EmptyOp: Copies.empty,
    arith.ConstantOp: Copies.constant,
    tensor.ExtractSliceOp: Copies.view,
    tensor.ExpandShapeOp: Copies.view,
    tensor.CollapseShapeOp: Copies.view,
    tensor.CastOp: Copies.view,
    kernel.LaunchOp: Copies.launch,
    tensor.InsertSliceOp: Copies.insert_slice,
    kernel.StackOp: Copies.stack,
    tensor.InsertOp: Copies.insert,
    tensor.FromElementsOp: Copies.made,
    tensor.SplatOp: Copies.made,
    kernel.CallbackOp: Copies.made,
    scf.IfOp: Copies.branch,
    scf.ForOp: Copies.for_loop,
    scf.WhileOp: Copies.while_loop,
    tensor.ExtractOp: Copies.extract,
    func.ReturnOp: _returned,
    tensor.DimOp: _nothing,
    scf.YieldOp: _nothing,
    scf.ConditionOp: _nothing,
}
