"""Copy insertion: give each tensor of a host function its own buffer, with every copy this needs.

A copy is inserted wherever one tensor continues as another: before an op that updates its
destination, for the source of an insertion, at the end of a branch, before a loop, at its yield,
after it, and for returned values. The function is correct with all of them. `coalescing` then
removes copies by assigning both ends of a copy to the same buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import arith, func, scf, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue

from stepwell.analysis.sizes import Shape, Sizes
from stepwell.dialects import kernel
from stepwell.lowering.bufferize.assignment import (
    Assignment,
    Storage,
    rows_of,
    slice_of,
    step_of,
)
from stepwell.lowering.bufferize.copies import Copy, Kind, Loop
from stepwell.lowering.bufferize.intervals import BEFORE, RUN, WRITTEN, Positions, Variable
from stepwell.lowering.bufferize.kernel_summary import KernelSummary
from stepwell.lowering.bufferize.returns import updated_arguments
from stepwell.lowering.bufferize.views import (
    Slice,
    Steps,
    buffer_of,
    disjoint,
    join,
    outside,
    part,
    run_time_values,
)
from stepwell.transforms.passes import fail


class Copies:
    """The tensors of a host function and the copies between them."""

    def __init__(
        self, function: func.FuncOp, summary: Callable[[kernel.LaunchOp], KernelSummary]
    ) -> None:
        block = function.body.block
        self.summary = summary
        self.sizes = Sizes(block.args)
        self.positions = Positions(block)
        self.assigned = Assignment(self.sizes)
        self.all: list[Copy] = []
        self.of: dict[Operation, list[Copy]] = {}
        """The copies at each op."""
        self.loops: dict[Operation, Loop] = {}
        self.extras: dict[Operation, list[Storage]] = {}
        """The temporaries that each launch needs from the host."""
        self.variables: dict[SSAValue, Variable] = {}
        self._views: dict[SSAValue, tuple[SSAValue, Steps]] = {}
        self.undefined: set[SSAValue] = set()
        """Tensors without a defined element: nothing has written them."""
        self.updated: dict[int, Storage] = {}
        """The memory of each argument that a result replaces, by number of the result."""
        updated = updated_arguments(function)
        for number, argument in enumerate(block.args):
            if isinstance(argument.type, TensorType):
                resource = _has_resource(function, number)
                kind = "constant" if resource else "updated" if number in updated else "input"
                storage = self.assigned.new(self._new(argument, -1), kind)
                if kind == "updated":
                    self.updated[updated[number]] = storage
        self._visit(block)

    # -- definitions and uses

    def _new(self, value: SSAValue, made: int) -> Variable:
        variable = self.variables[value] = Variable(value, made, made)
        return variable

    def _make(self, value: SSAValue, op: Operation, position: int) -> Variable:
        """Assign a new buffer, written by ``op``, to a tensor."""
        variable = self._new(value, position)
        self.assigned.new(variable)
        return variable

    def seen(self, value: SSAValue) -> tuple[SSAValue, Steps]:
        """Return the tensor that ``value`` is a view of, and the view."""
        return self._views.get(value, (value, ()))

    def read(
        self,
        value: SSAValue,
        op: Operation,
        when: int,
        but: Sequence[Slice] = (),
        operand: int = -1,
    ) -> None:
        """Extend the live range of ``value`` to its read by ``op``, except the slices ``but``."""
        root, steps = self.seen(value)
        if root in self.undefined:
            return
        variable, position = self.variables[root], self.positions.start(op) + when
        made = variable.start
        if isinstance(root.owner, scf.IfOp):
            made = self.positions.end(root.owner)
        around = self.positions.outermost(made, op)
        holes = tuple(join(steps, (box,)) for box in but if self.is_invariant((box,), around))
        spans = self.positions.spans(made, op, position)
        reads = variable.live(spans, steps, holes)
        if operand >= 0:
            reads.operands.setdefault(position, []).append(operand)

    def is_invariant(self, steps: Steps, loop: Operation | None) -> bool:
        """Whether a view is loop-invariant: the same in all iterations of ``loop``."""
        return loop is None or all(
            self.positions.dominates(v, loop) for v in run_time_values(self.sizes, steps)
        )

    def copy(
        self, kind: Kind, at: Operation, value: SSAValue, into: SSAValue, steps: Steps = ()
    ) -> Copy:
        """Insert a copy of ``value`` at an op, to the part ``steps`` of ``into``."""
        copy = Copy(kind, at, value, into, steps)
        self.all.append(copy)
        self.of.setdefault(at, []).append(copy)
        return copy

    def write(self, copy: Copy, position: int) -> None:
        """Record the write of a copy, unless its source is undefined."""
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
        """Visit an empty tensor: its memory is undefined."""
        self._make(op.tensor, op, self.positions.start(op) + RUN)
        self.undefined.add(op.tensor)

    def constant(self, op: arith.ConstantOp) -> None:
        """Visit a dense constant: it becomes a global of the module."""
        if isinstance(op.result.type, TensorType):
            self.assigned.new(self._new(op.result, -1), "constant")

    def view(self, op: Operation) -> None:
        """Visit a slice or reshape: an alias, or a copy where the layout permits no view."""
        source, result = op.operands[0], op.results[0]
        step = step_of(self.sizes, op)
        root, steps = self.seen(source)
        if root in self.undefined:
            self.undefined.add(result)
        elif isinstance(op, tensor.ExtractSliceOp) and self._blocks_update(op):
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
        copy = self.copy("slice", op, source, result)
        copy.seen = (step_of(self.sizes, op),)
        self.write(copy, position)

    def _blocks_update(self, op: tensor.ExtractSliceOp) -> bool:
        """Whether a view of a small slice would keep its larger source from in-place updates."""
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
                if number < 0 or not self.summary(by).reads_destination[number]:
                    continue
            elif isinstance(by, tensor.InsertOp) and use.index != 1:
                continue
            same = self.positions.depth(op) <= self.positions.depth(by)
            if same and self.positions.start(op) < self.positions.start(by) <= last:
                return True
        return False

    def launch(self, op: kernel.LaunchOp) -> None:
        """Visit a launch: each result is written, over its destination if the kernel reads that."""
        summary, inputs, at = self.summary(op), len(op.inputs), self.positions.start(op)
        for number, value in enumerate(op.inputs):
            if isinstance(value.type, TensorType) and summary.reads_input[number]:
                self.read(value, op, RUN, operand=number)
        for number, (into, result) in enumerate(zip(op.outputs, op.results, strict=True)):
            variable = self._make(result, op, at + RUN)
            if summary.reads_destination[number]:
                self.read(into, op, BEFORE)
                self.write(self.copy("update", op, into, result), at + WRITTEN)
            variable.write(at + RUN, (), number)
        assert inputs == len(summary.reads_input)
        self.extras[op] = [
            Storage(
                "local", buffer_of(c.type), _host_shape(self.sizes, op, summary, shape), beside=op
            )
            for c, shape in zip(summary.extras, summary.extra_shapes, strict=True)
        ]

    def insert_slice(self, op: tensor.InsertSliceOp) -> None:
        """Visit an insertion: the result starts as the destination, the source as a slice of it."""
        at, box = self.positions.start(op), slice_of(self.sizes, op)
        steps = () if box.is_all_of(self.sizes.shape(op.result)) else (box,)
        self._make(op.result, op, at + RUN)
        if steps:
            chain = self._replacing(op)
            boxes = [slice_of(self.sizes, each) for each in chain]
            self.read(op.dest, op, BEFORE, boxes)
            for kept in self._kept(op, boxes, chain[-1].result):
                copy = self.copy("update", op, op.dest, op.result, kept)
                copy.seen = kept
                self.write(copy, at + WRITTEN)
        self.read(op.source, op, RUN)
        self.write(self.copy("insert", op, op.source, op.result, steps), at + RUN)

    def _replacing(self, op: tensor.InsertSliceOp) -> list[tensor.InsertSliceOp]:
        """Return this and the following insertions: no part that they replace is read before."""
        use = op.result.get_user_of_unique_use() if op.result.has_one_use() else None
        if not isinstance(use, tensor.InsertSliceOp) or use.parent is not op.parent:
            return [op]
        return [op, *(self._replacing(use) if use.dest is op.result else ())]

    def _kept(
        self, op: tensor.InsertSliceOp, boxes: Sequence[Slice], last: SSAValue
    ) -> Sequence[Steps]:
        """Return the parts of its destination that an insertion's result starts with.

        boxes : what this and the following insertions replace, to make ``last``

        That is all of it, so that there is no copy if both are in one place. Where a loop replaces
        at least half of a slot, the rest alone is copied, so that insertions can be made in place.
        """
        loop, whole = self.loops.get(op.parent_op() or op), self.sizes.shape(op.dest)
        slot, steps = self.seen(op.dest)
        if loop is None or steps or slot not in loop.slots or loop.yields.parent is not op.parent:
            return [()]
        if loop.yields.operands[loop.slots.index(slot)] is not last:
            return [()]
        invariant = self.is_invariant(tuple(boxes), loop.op)
        if not invariant or 2 * sum(count(box.sizes) for box in boxes) < count(whole):
            return [()]
        rest = [Slice.all_of(whole)]
        for box in boxes:
            pieces = [outside(self.sizes, box, each) for each in rest]
            rest = [piece for found in pieces for piece in found or ()]
            if None in pieces:
                return [()]
        return [(box,) for box in rest]

    def stack(self, op: kernel.StackOp) -> None:
        """Visit a stack: each part is copied to the beginning of a row."""
        at = self.positions.start(op)
        self._make(op.result, op, at + RUN)
        for value, (row, seen) in zip(op.parts, rows_of(self.sizes, op.parts), strict=True):
            self.read(value, op, WRITTEN)
            self.write(self.copy("insert", op, value, op.result, (row, *seen)), at + RUN)

    def insert(self, op: tensor.InsertOp) -> None:
        """Visit the insertion of one element: the result starts as the destination."""
        at = self.positions.start(op)
        variable = self._make(op.result, op, at + RUN)
        self.read(op.dest, op, BEFORE)
        self.write(self.copy("update", op, op.dest, op.result), at + WRITTEN)
        variable.write(at + RUN, (), None)

    def create(self, op: Operation) -> None:
        """Visit an op that makes a tensor from scalars, or a callback to the host."""
        for value in op.operands:
            self.extract_from(op, value)
        for result in op.results:
            at = self.positions.start(op) + RUN
            self._make(result, op, at).write(at, (), None)

    def extract(self, op: tensor.ExtractOp) -> None:
        """Visit the read of one element."""
        self.extract_from(op, op.tensor)

    def extract_from(self, op: Operation, value: SSAValue) -> None:
        """Record that ``op`` reads ``value`` when it runs, if ``value`` is a tensor."""
        if isinstance(value.type, TensorType):
            self.read(value, op, RUN)

    def branch(self, op: scf.IfOp) -> None:
        """Visit a branch: the tensors that each side yields are copied to the results."""
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
                    self.write(self.copy("branch", last, value, result), end + WRITTEN)
                    # live to the end of its side; from the join it is live to its last read
                    stop = self.positions.end(op) if region is op.regions[-1] else end + RUN
                    self.variables[result].live([(end + WRITTEN, stop)], (), ())

    def for_loop(self, op: scf.ForOp) -> None:
        """Visit a for loop: each slot starts as its init and ends as its result."""
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
        """Visit a while loop: its test passes values to its body, that to the next iteration."""
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
                self.write(self.copy("hand", condition, value, argument), at)
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
                self.write(self.copy("init", loop.op, init, slot), at + WRITTEN)

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
                copy = self.copy("next", loop.yields, value, slot)
                loop.nexts.append(copy)
                self.write(copy, at + WRITTEN)
                self.variables[slot].live([(at + WRITTEN, end)], (), ())

    def _unread(self, loop: Loop) -> set[SSAValue]:
        """Return the dead slots: no op in or after the loop reads their tensors."""
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

    def _exit(
        self, loop: Loop, value: SSAValue, result: SSAValue, test: Operation | None = None
    ) -> None:
        """Copy the final value of a slot to the loop's result.

        test : the condition of a while loop, at which it exits
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
        else:  # the loop may run zero times
            spans.append((variable.start, variable.start))
        variable.live(spans, steps, ())
        self.write(self.copy("exit", loop.op, value, result), end + WRITTEN)


def count(sizes: Shape) -> int:
    """Return the number of elements of a shape, with `LIKELY` for each dynamic size."""
    total = 1
    for n in sizes:
        total *= LIKELY if n.number is None else n.number
    return total


LIKELY = 256
"""The assumed extent of an axis of dynamic size, in elements, where copies are weighed."""


def _has_resource(function: func.FuncOp, number: int) -> bool:
    return function.arg_attrs is not None and "nd.resource" in function.arg_attrs.data[number].data


def _host_shape(sizes: Sizes, op: kernel.LaunchOp, summary: KernelSummary, shape: Shape) -> Shape:
    """Return a shape in terms of a kernel's arguments in terms of the host function's."""
    return tuple(summary.sizes.in_caller(n, op.operands, sizes) for n in shape)


def _return(copies: Copies, op: func.ReturnOp) -> None:
    for value in op.operands:
        if isinstance(value.type, TensorType):
            copies.read(value, op, BEFORE)


def _ignore(copies: Copies, op: Operation) -> None:
    """Visit an op that neither defines nor reads a tensor."""


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
    tensor.FromElementsOp: Copies.create,
    tensor.SplatOp: Copies.create,
    kernel.CallbackOp: Copies.create,
    scf.IfOp: Copies.branch,
    scf.ForOp: Copies.for_loop,
    scf.WhileOp: Copies.while_loop,
    tensor.ExtractOp: Copies.extract,
    func.ReturnOp: _return,
    tensor.DimOp: _ignore,
    scf.YieldOp: _ignore,
    scf.ConditionOp: _ignore,
}
