"""Batching of products: batch axes, or free axes if only one operand is batched."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.nd.batching.effects import each_alone
from stepwell.dialects.nd.batching.walk import Batch, numbers
from stepwell.dialects.nd.contraction import ConvolutionOp, DotGeneralOp
from stepwell.dialects.nd.syntax import axes, shape_of
from stepwell.dialects.readings import batching


@batching(DotGeneralOp)
def _dot_general(b: Batch, op: DotGeneralOp) -> Sequence[SSAValue]:
    """Batch a product; if only one operand is batched, the batch becomes rows or columns.

    Batch axes come first in a result: if there are some already, the batch is one more and the
    unbatched operand is broadcast, which avoids a transpose of the result.
    """
    (bx, bw), (cx, cw) = op.batch, op.contract
    x, w = op.x, op.w
    only_x, only_w = b.has(x) and not b.has(w), b.has(w) and not b.has(x)
    if only_x and not bx:
        contract = list(numbers(cx)), cw
        return (b.of(DotGeneralOp(b.lead(x), w, ((), ()), contract, op.dtype)),)
    if only_w and not bw and len(cw) == len(shape_of(w)):  # w has no free axes: it goes first
        contract = list(numbers(cw)), cx
        return (b.of(DotGeneralOp(b.lead(w), x, ((), ()), contract, op.dtype)),)
    if only_w and not bw:
        y = b.of(DotGeneralOp(x, b.lead(w), ((), ()), (cx, list(numbers(cw))), op.dtype))
        return (b.moved(y, len(shape_of(x)) - len(cx), 0),)
    batch = (0, *numbers(bx)), (0, *numbers(bw))
    contract = list(numbers(cx)), list(numbers(cw))
    return (b.of(DotGeneralOp(b.lead(x), b.lead(w), batch, contract, op.dtype)),)


@batching(ConvolutionOp)
def _convolution(b: Batch, op: ConvolutionOp) -> Sequence[SSAValue]:
    """Merge examples into the images, the output features of one image, or groups if both vary."""
    _, groups, layout = op.how
    x, w = op.x, op.w
    if op.parts > 1:
        return _parts(b, op)
    if b.has(x) and not b.has(w):
        many = b.lead(x)
        y = _like(b, op, _merged(b, many, layout.x[0]), w, groups)
        return (_parted(b, y, layout.y[0], b.extent(many, layout.x[0] + 1)),)
    if not b.has(x) and groups == 1:
        many = b.lead(w)
        y = _like(b, op, x, _merged(b, many, layout.w[0]), groups)
        return (_parted(b, y, layout.y[1], b.extent(many, layout.w[0] + 1)),)
    if b.has(x) and (b.lanes is not None or b.length == 0):  # groups must be static
        return each_alone(b, op)
    if not b.has(x):
        return (_in_groups(b, op),)
    many = b.lead(w)
    left, right = _merged(b, b.lead(x), layout.x[1]), _merged(b, many, layout.w[0])
    y = _like(b, op, left, right, groups * b.length)
    return (_parted(b, y, layout.y[1], b.extent(many, layout.w[0] + 1)),)


def _in_groups(b: Batch, op: ConvolutionOp) -> SSAValue:
    """Batch weights of a grouped convolution of one image: examples of a group are adjacent."""
    _, groups, layout = op.how
    groups, features = max(groups, op.parts), layout.y[1]
    merged, each = _behind_groups(b, op.w, layout.w[0], groups)
    y = _like(b, op, op.x, merged, op.how[1], op.parts)
    sizes = [b.extent(y, a) for a in range(len(shape_of(y)))]
    split = b.shaped(y, [*sizes[:features], groups, *b.extents, each, *sizes[features + 1 :]])
    first = b.moved(split, features + 1, 0)
    return b.shaped(first, [*b.extents, *sizes[:features], groups * each, *sizes[features + 1 :]])


def _behind_groups(b: Batch, x: SSAValue, axis: int, groups: int) -> tuple[SSAValue, int]:
    """Return ``x`` with all examples inside each group of ``axis``, and the size of a group."""
    each = shape_of(x)[axis] // groups
    many = b.lead(x)
    sizes = [b.extent(many, a) for a in range(len(shape_of(many)))]
    split = b.shaped(many, [*sizes[: axis + 1], groups, each, *sizes[axis + 2 :]])
    beside = b.moved(split, 0, axis + 1)
    count = b.product(b.extents[0], groups * each)
    return b.shaped(beside, [*sizes[1 : axis + 1], count, *sizes[axis + 2 :]]), each


def _parts(b: Batch, op: ConvolutionOp) -> Sequence[SSAValue]:
    """Merge examples into the images of each group, its output features, or more groups."""
    layout = op.how[2]
    x, w = op.x, op.w
    if DYNAMIC in (shape_of(x)[layout.x[0]], shape_of(w)[layout.w[0]]):
        return each_alone(b, op)
    if not b.has(x):
        return (_in_groups(b, op),)
    if not b.has(w):
        many, each = _behind_groups(b, x, layout.x[0], op.parts)
        return (_parted(b, _like(b, op, many, w, 1, op.parts), layout.y[0], each),)
    if b.lanes is not None or b.length == 0:  # groups must be static
        return each_alone(b, op)
    left, right = _merged(b, b.lead(x), layout.x[0]), _merged(b, b.lead(w), layout.w[0])
    y = _like(b, op, left, right, 1, op.parts * b.length)
    return (_parted(b, y, layout.y[1], shape_of(w)[layout.w[0]]),)


def _like(
    b: Batch, op: ConvolutionOp, x: SSAValue, w: SSAValue, groups: int, parts: int = 1
) -> SSAValue:
    """Return the same convolution of other operands."""
    fields = ("strides", "low", "high", "lhs_dilation", "rhs_dilation")
    layouts = ("x_layout", "w_layout", "y_layout")
    lists = {name: axes(getattr(op, name)) for name in (*fields, *layouts)}
    y = ConvolutionOp(x, w, groups=groups, batch_groups=parts, dtype=op.dtype, **lists)
    return b.of(y)


def _merged(b: Batch, x: SSAValue, axis: int) -> SSAValue:
    """Return ``x`` with the batch axis merged into another axis."""
    beside = b.moved(x, 0, axis)
    sizes = [b.extent(beside, a) for a in range(len(shape_of(beside)))]
    many = b.product(sizes[axis], sizes[axis + 1])
    return b.shaped(beside, [*sizes[:axis], many, *sizes[axis + 2 :]])


def _parted(b: Batch, y: SSAValue, axis: int, size: int | SSAValue) -> SSAValue:
    """Return ``y`` with the batch axis split off an axis and moved to the front."""
    sizes = [b.extent(y, a) for a in range(len(shape_of(y)))]
    split = b.shaped(y, [*sizes[:axis], *b.extents, size, *sizes[axis + 1 :]])
    return b.moved(split, axis, 0)
