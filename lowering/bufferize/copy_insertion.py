"""Copy insertion: give each tensor of a host function its own buffer, with every copy this needs.

A copy is inserted wherever one tensor continues as another: before an op that updates its
destination, for the source of an insertion, at the end of a branch, before a loop, at its yield,
after it, and for returned values. The function is correct with all of them. `coalescing` then
removes copies by assigning both ends of a copy to the same buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue, Use

from stepwell.analysis.sizes import Shape, Sizes
from stepwell.dialects import kernel
from stepwell.lowering.bufferize.assignment import VIEWS, Storage, rows_of, slice_of, step_of
from stepwell.lowering.bufferize.control_copies import CONTROL, LOOPS
from stepwell.lowering.bufferize.copies import Copies
from stepwell.lowering.bufferize.intervals import BEFORE, RUN, WRITTEN
from stepwell.lowering.bufferize.kernel_summary import KernelSummary
from stepwell.lowering.bufferize.returns import updated_arguments
from stepwell.lowering.bufferize.views import Slice, Steps, buffer_of, disjoint, outside, part


def insert_copies(
    function: func.FuncOp, summary: Callable[[kernel.LaunchOp], KernelSummary]
) -> Copies:
    """Return the tensors of ``function``, each in its own buffer, and every copy this needs."""
    copies = Copies(function, summary, _RULES)
    updated = updated_arguments(function)
    for number, argument in enumerate(function.body.block.args):
        if isinstance(argument.type, TensorType):
            resource = _has_resource(function, number)
            kind = "constant" if resource else "updated" if number in updated else "input"
            storage = copies.assigned.storage(argument, kind)
            copies.new(argument, -1, storage)
            if kind == "updated":
                copies.updated[updated[number]] = storage
    copies.visit(function.body.block)
    return copies


def _has_resource(function: func.FuncOp, number: int) -> bool:
    return function.arg_attrs is not None and "nd.resource" in function.arg_attrs.data[number].data


def _empty(copies: Copies, op: tensor.EmptyOp) -> None:
    """Visit an empty tensor: its memory is undefined."""
    copies.new(op.tensor, copies.positions.start(op) + RUN)
    copies.undefined.add(op.tensor)


def _constant(copies: Copies, op: arith.ConstantOp) -> None:
    """Visit a dense constant: it becomes a global of the module."""
    if isinstance(op.result.type, TensorType):
        copies.new(op.result, -1, copies.assigned.storage(op.result, "constant"))


def _read(copies: Copies, op: Operation) -> None:
    """Visit an op that reads its operands."""
    for value in op.operands:
        if isinstance(value.type, TensorType):
            copies.read(value, op, RUN)


def _create(copies: Copies, op: Operation) -> None:
    """Visit an op that makes a tensor from scalars, or a callback to the host."""
    _read(copies, op)
    at = copies.positions.start(op) + RUN
    for result in op.results:
        copies.new(result, at).write(at, (), None)


# -- views


def _view(copies: Copies, op: Operation) -> None:
    """Visit a slice or reshape: an alias, or a copy where the layout permits no view."""
    source, result = op.operands[0], op.results[0]
    step, at = step_of(copies.sizes, op), copies.positions.start(op) + RUN
    if copies.seen(source)[0] in copies.undefined:
        copies.undefined.add(result)
    elif isinstance(op, tensor.ExtractSliceOp) and _blocks_update(copies, op):
        copies.new(result, at)
    if result not in copies.variables:
        if copies.alias(result, source, (step,)):
            return
        copies.new(result, at, copies.assigned.storage(source), (step,))
    copies.read(source, op, RUN)
    copies.copy("slice", op, source, result, at, seen=(step,))


def _blocks_update(copies: Copies, op: tensor.ExtractSliceOp) -> bool:
    """Whether a view of a small slice would keep its larger source from in-place updates."""
    positions = copies.positions
    last = max((positions.start(u.operation) for u in op.result.uses), default=-1)
    root, _ = copies.seen(op.source)
    if 2 * count(copies.sizes.shape(op.result)) > count(copies.sizes.shape(root)):
        return False
    return any(
        positions.start(op) < positions.start(use.operation) <= last
        and positions.depth(op) <= positions.depth(use.operation)
        and _updates(copies, use, slice_of(copies.sizes, op))
        for use in op.source.uses
    )


def _updates(copies: Copies, use: Use, box: Slice) -> bool:
    """Whether an op may update the slice ``box`` of its operand in place."""
    match op := use.operation:
        case tensor.InsertSliceOp():
            over = slice_of(copies.sizes, op)
            return use.index == 1 and not disjoint(copies.sizes, part((box,)), part((over,)))
        case tensor.InsertOp():
            return use.index == 1
        case kernel.LaunchOp():
            number = use.index - len(op.inputs)
            return number >= 0 and copies.summary(op).reads_destination[number]
        case _:
            return isinstance(op, LOOPS)


# -- launches and insertions


def _launch(copies: Copies, op: kernel.LaunchOp) -> None:
    """Visit a launch: each result is written, over its destination if the kernel reads that.

    While the kernel runs, each of its results has a buffer of its own, used later or not.
    """
    summary, at = copies.summary(op), copies.positions.start(op)
    for number, (value, read) in enumerate(zip(op.inputs, summary.reads_input, strict=True)):
        if isinstance(value.type, TensorType) and read:
            copies.read(value, op, RUN, operand=number)
    for number, (into, result) in enumerate(zip(op.outputs, op.results, strict=True)):
        variable = copies.new(result, at + RUN)
        if summary.reads_destination[number]:
            copies.read(into, op, BEFORE)
            copies.copy("update", op, into, result, at + WRITTEN)
        variable.write(at + RUN, (), number)
        variable.live([(at + RUN, at + RUN)], (), ())
    copies.extras[op] = [
        Storage("local", buffer_of(c.type), _host_shape(copies.sizes, op, summary, s), beside=op)
        for c, s in zip(summary.extras, summary.extra_shapes, strict=True)
    ]


def _host_shape(sizes: Sizes, op: kernel.LaunchOp, summary: KernelSummary, shape: Shape) -> Shape:
    """Return a shape in terms of a kernel's arguments in terms of the host function's."""
    return tuple(summary.sizes.in_caller(n, op.operands, sizes) for n in shape)


def _insert_slice(copies: Copies, op: tensor.InsertSliceOp) -> None:
    """Visit an insertion: the result starts as the destination, the source as a slice of it."""
    at, box = copies.positions.start(op), slice_of(copies.sizes, op)
    steps = () if box.is_all_of(copies.sizes.shape(op.result)) else (box,)
    copies.new(op.result, at + RUN)
    if steps:
        boxes, last = _replaced(copies, op)
        copies.read(op.dest, op, BEFORE, boxes)
        for kept in _kept(copies, op, boxes, last):
            copies.copy("update", op, op.dest, op.result, at + WRITTEN, kept, kept)
    copies.read(op.source, op, RUN)
    copies.copy("insert", op, op.source, op.result, at + RUN, steps)


def _replaced(copies: Copies, op: tensor.InsertSliceOp) -> tuple[Sequence[Slice], SSAValue]:
    """Return the slices that this and the following insertions replace, and the last result.

    They are found once for each chain: one that assembles a tensor may have thousands.
    """
    chain, boxes = copies.chains.pop(op, ([], []))
    if not chain:
        chain = _replacing(op)
        boxes = [slice_of(copies.sizes, each) for each in chain]
    if len(chain) > 1:
        copies.chains[chain[1]] = chain[1:], boxes[1:]
    return boxes, chain[-1].result


def _replacing(op: tensor.InsertSliceOp) -> list[tensor.InsertSliceOp]:
    """Return this and the following insertions: no part that they replace is read before."""
    found = [op]
    while found[-1].result.has_one_use():
        use = found[-1].result.get_user_of_unique_use()
        if not isinstance(use, tensor.InsertSliceOp) or use.parent is not op.parent:
            break
        if use.dest is not found[-1].result:
            break
        found.append(use)
    return found


def _kept(
    copies: Copies, op: tensor.InsertSliceOp, boxes: Sequence[Slice], last: SSAValue
) -> Sequence[Steps]:
    """Return the parts of its destination that an insertion's result starts with.

    boxes : what this and the following insertions replace, to make ``last``

    That is all of it, so that there is no copy if both are in one place. Where a loop replaces
    at least half of a slot, the rest alone is copied, so that insertions can be made in place.
    """
    loop, whole = copies.loops.get(op.parent_op() or op), copies.sizes.shape(op.dest)
    slot, steps = copies.seen(op.dest)
    if loop is None or steps or slot not in loop.slots or loop.yields.parent is not op.parent:
        return [()]
    if loop.yields.operands[loop.slots.index(slot)] is not last:
        return [()]
    invariant = copies.is_invariant(tuple(boxes), loop.op)
    if not invariant or 2 * sum(count(box.sizes) for box in boxes) < count(whole):
        return [()]
    rest = [Slice.all_of(whole)]
    for box in boxes:
        pieces = [outside(copies.sizes, box, each) for each in rest]
        rest = [piece for found in pieces for piece in found or ()]
        if None in pieces:
            return [()]
    return [(box,) for box in rest]


def count(sizes: Shape) -> int:
    """Return the number of elements of a shape, with `LIKELY` for each dynamic size."""
    total = 1
    for n in sizes:
        total *= LIKELY if n.number is None else n.number
    return total


LIKELY = 256
"""The assumed extent of an axis of dynamic size, in elements, where copies are weighed."""


def _stack(copies: Copies, op: kernel.StackOp) -> None:
    """Visit a stack: each part is copied to the beginning of a row."""
    at = copies.positions.start(op)
    copies.new(op.result, at + RUN)
    for value, (row, seen) in zip(op.parts, rows_of(copies.sizes, op.parts), strict=True):
        copies.read(value, op, WRITTEN)
        copies.copy("insert", op, value, op.result, at + RUN, (row, *seen))


def _insert(copies: Copies, op: tensor.InsertOp) -> None:
    """Visit the insertion of one element: the result starts as the destination."""
    at = copies.positions.start(op)
    variable = copies.new(op.result, at + RUN)
    copies.read(op.dest, op, BEFORE)
    copies.copy("update", op, op.dest, op.result, at + WRITTEN)
    variable.write(at + RUN, (), None)


_RULES: Mapping[type[Operation], Callable[[Copies, Any], None]] = {
    **CONTROL,
    **dict.fromkeys(VIEWS, _view),
    tensor.EmptyOp: _empty,
    arith.ConstantOp: _constant,
    kernel.LaunchOp: _launch,
    tensor.InsertSliceOp: _insert_slice,
    kernel.StackOp: _stack,
    tensor.InsertOp: _insert,
    tensor.FromElementsOp: _create,
    tensor.SplatOp: _create,
    kernel.CallbackOp: _create,
    tensor.ExtractOp: _read,
    func.ReturnOp: _read,
    tensor.DimOp: lambda copies, op: None,
}
