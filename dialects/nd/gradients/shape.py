"""Derivatives of ops that move elements: cotangents move in the opposite direction."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.arith import AddiOp
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from stepwell.core.shapes import DYNAMIC
from stepwell.core.shapes import shape as rules
from stepwell.core.shapes.shape import END
from stepwell.dialects.nd.base import I1
from stepwell.dialects.nd.convert import BitcastOp, CastOp
from stepwell.dialects.nd.creation import FullOp
from stepwell.dialects.nd.gradients.reverse import Reverse
from stepwell.dialects.nd.indexing import DynamicSliceOp, DynamicUpdateSliceOp
from stepwell.dialects.nd.shape import (
    BroadcastOp,
    ConcatOp,
    PadOp,
    ReshapeOp,
    ReverseOp,
    SliceOp,
    TransposeOp,
)
from stepwell.dialects.nd.syntax import axes, element, shape_of
from stepwell.dialects.readings import gradient, moves

gradient.none(BitcastOp, reason="bits have no derivative; stop_gradient takes it for a constant")


@moves(CastOp)
def _cast(r: Reverse, op: CastOp, g: SSAValue) -> SSAValue:
    """Cast the cotangent; a mask is valid for both types."""
    return g if element(g) == I1 else r.cast(g, element(op.x))


@moves(ReshapeOp)
def _reshape(r: Reverse, op: ReshapeOp, g: SSAValue) -> SSAValue:
    x, y = shape_of(op.x), shape_of(op.y)
    needed = rules.reshape_unknown(y, x)
    return r.of(ReshapeOp(g, x, r.sizes(op.x) if needed else []))


@moves(TransposeOp)
def _transpose(r: Reverse, op: TransposeOp, g: SSAValue) -> SSAValue:
    order = axes(op.permutation)
    return r.of(TransposeOp(g, sorted(range(len(order)), key=order.__getitem__)))


@moves(ReverseOp)
def _reverse(r: Reverse, op: ReverseOp, g: SSAValue) -> SSAValue:
    return r.of(ReverseOp(g, axes(op.axes)))


@gradient(BroadcastOp)
def _broadcast(r: Reverse, op: BroadcastOp, cotangents: Sequence[SSAValue | None]) -> None:
    """Sum over the new axes, and over those along which x has one element."""
    (g,) = cotangents
    assert g is not None
    dims, x, y = axes(op.dims), shape_of(op.x), shape_of(op.y)
    kept = [to for axis, to in enumerate(dims) if x[axis] != 1 or y[to] == 1]
    summed = [a for a in range(len(y)) if a not in kept]
    total = r.sum_over(g, summed) if summed else g
    order = sorted(kept)
    if kept != order:
        total = r.of(TransposeOp(total, [order.index(to) for to in kept]))
    if len(kept) != len(x):
        needed = rules.reshape_unknown(shape_of(total), x)
        total = r.of(ReshapeOp(total, x, r.sizes(op.x) if needed else []))
    r.accumulate(op.x, total)


@moves(SliceOp)
def _slice(r: Reverse, op: SliceOp, g: SSAValue) -> SSAValue:
    """Pad the cotangent with zeros, which are false in a mask."""
    x = shape_of(op.x)
    zero = r.of(FullOp.of(0, TensorType(element(g), [])))
    if any(n == DYNAMIC and e != (0, END, 1) for n, e in zip(x, op.ranges, strict=True)):
        return _into_zeros(r, op, g)
    low: list[int] = []
    high: list[int] = []
    inside: list[int] = []
    for n, (start, limit, stride) in zip(x, op.ranges, strict=True):
        taken = range(max(n, 0))[start:limit:stride]
        first = taken.start if taken else max(n, 0)
        low.append(first)
        inside.append(stride - 1 if len(taken) > 1 else 0)
        high.append(max(n, 0) - (taken[-1] + 1) if taken else 0)
    return r.of(PadOp(g, zero, low, high, inside))


def _into_zeros(r: Reverse, op: SliceOp, g: SSAValue) -> SSAValue:
    """Write the cotangent of axes of unknown size into zeros at the slice's position."""
    x = shape_of(op.x)
    starts: list[SSAValue] = []
    for axis, (start, _, _) in enumerate(op.ranges):
        begin = r.index(start)
        if start < 0:
            begin = r.builder.insert(AddiOp(r.size(op.x, axis), begin)).result
        starts.append(begin)
    type = TensorType(element(g), x)
    zeros = r.of(FullOp.of(0, type, r.sizes(op.x)))
    strides = axes(op.strides)
    steps = strides if any(s != 1 for s in strides) else ()
    return r.of(DynamicUpdateSliceOp(zeros, g, starts, range(len(x)), steps))


@gradient(PadOp)
def _pad(r: Reverse, op: PadOp, cotangents: Sequence[SSAValue | None]) -> None:
    """Slice the cotangent of x out; the padding value gets the sum of the rest."""
    (g,) = cotangents
    assert g is not None
    low, high, interior = op.amounts
    part = r.of(SliceOp(g, low, [-h or END for h in high], [c + 1 for c in interior]))
    r.accumulate(op.x, part)
    if r.wants(op.value):
        every = range(len(low))
        r.accumulate(op.value, r.sub(r.sum_over(g, every), r.sum_over(part, every)))


@gradient(ConcatOp)
def _concat(r: Reverse, op: ConcatOp, cotangents: Sequence[SSAValue | None]) -> None:
    """Slice the cotangent of each part out."""
    (g,) = cotangents
    assert g is not None
    axis, shape = op.axis.value.data, shape_of(op.y)
    if DYNAMIC in shape:
        first = r.index(0)
        for x in op.xs:
            n = shape_of(x)[axis]
            size = r.size(x, axis)
            part = DynamicSliceOp(g, [first], [axis], [size if n == DYNAMIC else n])
            r.accumulate(x, r.of(part))
            first = r.builder.insert(AddiOp(first, size)).result
        return
    begin = 0
    for x in op.xs:
        starts, limits = [0] * len(shape), list(shape)
        starts[axis], limits[axis] = begin, begin + shape_of(x)[axis]
        r.accumulate(x, r.of(SliceOp(g, starts, limits)))
        begin += shape_of(x)[axis]
