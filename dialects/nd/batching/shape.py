"""Batching of ops that reshape a tensor or move its elements."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from stepwell.core.shapes import DYNAMIC
from stepwell.core.shapes.shape import END
from stepwell.dialects.nd.base import I1
from stepwell.dialects.nd.batching.walk import Batch, numbers
from stepwell.dialects.nd.compare import SelectOp
from stepwell.dialects.nd.creation import FullOp
from stepwell.dialects.nd.shape import (
    BroadcastOp,
    ConcatOp,
    PadOp,
    ReshapeOp,
    ReverseOp,
    SliceOp,
    TransposeOp,
)
from stepwell.dialects.nd.sizes import DimOp, FromIndexOp
from stepwell.dialects.nd.syntax import axes, axes_attr, int_attr, lists, shape_of
from stepwell.dialects.readings import batching

batching.none(FromIndexOp, reason="a size is one for the whole batch")


@batching(DimOp)
def _dim(b: Batch, op: DimOp) -> Sequence[SSAValue]:
    return (b.size(b.lead(op.x), op.axis.value.data + 1),)


@batching(BroadcastOp)
def _broadcast(b: Batch, op: BroadcastOp) -> Sequence[SSAValue]:
    dims = axes_attr([0, *numbers(axes(op.dims))])
    return b.again(op, [b.lead(op.x), *op.sizes], dims=dims)


@batching(ReshapeOp)
def _reshape(b: Batch, op: ReshapeOp) -> Sequence[SSAValue]:
    """Batch a reshape; a `?` without a size operand equals that of x."""
    x = b.lead(op.x)
    dynamic = iter(op.sizes)
    sizes: list[int | SSAValue] = []
    for n in shape_of(op.y):
        if n != DYNAMIC:
            sizes.append(n)
        elif op.sizes:
            sizes.append(next(dynamic))
        else:
            sizes.append(b.size(x, shape_of(op.x).index(DYNAMIC) + 1))
    return (b.shaped(x, [*b.extents, *sizes]),)


@batching(TransposeOp)
def _transpose(b: Batch, op: TransposeOp) -> Sequence[SSAValue]:
    permutation = axes_attr([0, *numbers(axes(op.permutation))])
    return b.again(op, [b.lead(op.x)], permutation=permutation)


@batching(SliceOp)
def _slice(b: Batch, op: SliceOp) -> Sequence[SSAValue]:
    starts, limits, strides = axes(op.starts), axes(op.limits), axes(op.strides)
    whole = lists(starts=(0, *starts), limits=(END, *limits), strides=(1, *strides))
    return b.again(op, [b.lead(op.x)], **whole)


@batching(PadOp)
def _pad(b: Batch, op: PadOp) -> Sequence[SSAValue]:
    """Batch a pad; a batched padding value is selected outside of x."""
    low, high, interior = (axes_attr((0, *each)) for each in op.amounts)
    around = {"low": low, "high": high}
    if op.interior is not None:
        around["interior"] = interior
    x = b.lead(op.x)
    if not b.has(op.value):
        return b.again(op, [x, op.value], **around)
    value = b.lead(op.value)
    amounts = ((0, *each) for each in op.amounts)
    low, high, interior = map(list[int], amounts)
    zero, false = (b.of(FullOp.of(0, TensorType(e, []))) for e in (op.x.type.element_type, I1))  # pyright: ignore
    true = FullOp.of(1, TensorType(I1, shape_of(x)), b.sizes(x))
    inside = b.of(PadOp(b.of(true), false, low, high, interior))
    y = b.of(PadOp(x, zero, low, high, interior))
    return (b.of(SelectOp(inside, y, b.along(value, y, [0]))),)


@batching(ConcatOp)
def _concat(b: Batch, op: ConcatOp) -> Sequence[SSAValue]:
    return b.again(op, [b.lead(x) for x in op.xs], axis=int_attr(op.axis.value.data + 1))


@batching(ReverseOp)
def _reverse(b: Batch, op: ReverseOp) -> Sequence[SSAValue]:
    return b.again(op, [b.lead(op.x)], axes=axes_attr([*numbers(axes(op.axes))]))
