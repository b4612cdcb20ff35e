"""Gather is tensor.extract inside a generic; scatter is a loop nest; slices are slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import IndexType, TensorType, i64
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from stepwell.core.dtypes import DTYPES, DType
from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.nd.indexing import (
    DynamicSliceOp,
    DynamicUpdateSliceOp,
    GatherOp,
)
from stepwell.dialects.nd.syntax import axes, element, shape_of
from stepwell.dialects.types import dtype, tensor_type
from stepwell.lowering.nd_to_linalg.body import INDEX, Body
from stepwell.lowering.nd_to_linalg.covering import leave_out_covered
from stepwell.lowering.nd_to_linalg.generic import generic
from stepwell.lowering.nd_to_linalg.shape import inserted, iterators, result_type
from stepwell.lowering.nd_to_linalg.sizes import Size, Sizes
from stepwell.lowering.nd_to_linalg.starts import known_start
from stepwell.lowering.nd_to_linalg.table import Lowering, lower

Operands = Sequence[SSAValue]


@lower(GatherOp)
def _gather(lowering: Lowering, op: GatherOp, operands: Operands) -> Operands:
    x, *indices = operands
    along, sizes, type = axes(op.axes), Sizes(lowering), result_type(op)
    rank, first = len(shape_of(op.indices[0])), along[0]
    kept = [axis for axis in range(len(shape_of(op.x))) if axis not in along]
    result: list[Size] = [sizes.of(x, axis) for axis in kept]
    result[first:first] = sizes.all_of(indices[0])
    if 0 in type.get_shape():
        return (sizes.empty_as(result, type),)
    lasts = [_last(sizes, x, axis) for axis in along]
    kinds = [dtype(element(i)) for i in op.indices]

    def body(b: Body, *scalars: SSAValue) -> SSAValue:
        places: dict[int, SSAValue] = {
            axis: b.index(k if k < first else k + rank) for k, axis in enumerate(kept)
        }
        for axis, scalar, kind, last in zip(along, scalars[:-1], kinds, lasts, strict=True):
            places[axis] = clamped_index(b.of(kind), scalar, last)
        at = [places[axis] for axis in range(len(places))]
        return b.emit(tensor.ExtractOp(x, at, type.element_type))

    n = len(result)
    read = AffineMap(n, 0, tuple(AffineExpr.dimension(first + k) for k in range(rank)))
    maps = [*(read for _ in indices), AffineMap.identity(n)]
    into = sizes.empty(result, type.element_type)
    kind = dtype(type.element_type)
    return generic(lowering, indices, [into], maps, iterators(n), body, kind)


def _last(sizes: Sizes, x: SSAValue, axis: int) -> Size:
    """Return the last index of an axis, as i64 if it is dynamic."""
    last = sizes.sub(sizes.of(x, axis), 1)
    if isinstance(last, int):
        return last
    return sizes.lowering.insert(arith.IndexCastOp(last, i64)).result


def clamped_index(b: Body, i: SSAValue, last: Size) -> SSAValue:
    """Return ``i`` as an index clamped to 0..last."""
    if isinstance(last, int):
        if not _reaches(b.dtype, last):  # the type has no larger index
            i = _lower_bounded(b, i)
        else:
            i = b.min(_lower_bounded(b, i), b.number(last))
        return b.emit(arith.IndexCastOp(extended(b, i), INDEX))
    if b.dtype.name == "ui64":
        return b.emit(arith.IndexCastOp(b.min(i, last), INDEX))
    wide = b.of(DTYPES["i64"])
    i = wide.min(extended(b, _lower_bounded(b, i)), last)
    return b.emit(arith.IndexCastOp(i, INDEX))


def _lower_bounded(b: Body, i: SSAValue) -> SSAValue:
    return b.max(i, b.number(0)) if b.dtype.kind == "signed" else i


def _reaches(kind: DType, last: int) -> bool:
    bits = 8 * kind.bytes - (kind.kind == "signed")
    return last < (1 << bits) - 1


def extended(b: Body, i: SSAValue) -> SSAValue:
    """Return ``i`` extended to i64, by the signedness of its dtype."""
    if b.dtype.bytes == 8:
        return i
    return b.emit((arith.ExtSIOp if b.dtype.kind == "signed" else arith.ExtUIOp)(i, i64))


@lower(DynamicSliceOp)
def _dynamic_slice(lowering: Lowering, op: DynamicSliceOp, operands: Operands) -> Operands:
    x, *given = operands
    along, sizes = axes(op.axes), Sizes(lowering)
    starts, dynamic = given[: len(along)], iter(given[len(along) :])
    result = sizes.all_of(x)
    for axis, n in zip(along, axes(op.lengths), strict=True):
        result[axis] = next(dynamic) if n == DYNAMIC else n
    offsets = _offsets(lowering, op, x, starts, [result[axis] for axis in along])
    strides = [1] * len(result)
    part = tensor.ExtractSliceOp(x, offsets, result, strides, result_type(op))
    return (lowering.insert(part).result,)


@lower(DynamicUpdateSliceOp)
def _dynamic_update_slice(
    lowering: Lowering, op: DynamicUpdateSliceOp, operands: Operands
) -> Operands:
    x, update, *starts = operands
    sizes = Sizes(lowering)
    strides, spans = [1] * tensor_type(x).get_num_dims(), list[Size]()
    for axis, step in zip(axes(op.axes), op.steps, strict=True):
        strides[axis], size = step, sizes.of(update, axis)
        spans.append(size if step == 1 else sizes.add(sizes.mul(sizes.sub(size, 1), step), 1))
    offsets = _offsets(lowering, op, x, starts, spans)
    into = leave_out_covered(lowering, op, x)
    return (inserted(lowering, update, into, offsets, strides),)


def _offsets(
    lowering: Lowering, op: Any, x: SSAValue, starts: Operands, lengths: Sequence[Size]
) -> list[Size]:
    """Return the offsets of a slice of ``lengths``, clamped so that it is inside ``x``."""
    sizes = Sizes(lowering)
    offsets: list[Size] = [0] * tensor_type(x).get_num_dims()
    for axis, start, old, length in zip(axes(op.axes), starts, op.starts, lengths, strict=True):
        room = sizes.sub(sizes.of(x, axis), length)
        if room == 0 or _is_zero(old):  # a check ensures that the slice fits
            continue
        known = known_start(old)
        begin = _host_index(lowering, old, start) if known is None else known
        offsets[axis] = sizes.max(sizes.min(begin, room), 0)
    return offsets


def _is_zero(start: SSAValue) -> bool:
    """Whether a start is the index 0."""
    return isinstance(start.type, IndexType) and known_start(start) == 0


def _host_index(lowering: Lowering, old: SSAValue, start: SSAValue) -> SSAValue:
    """Return a 0-d tensor, or index, as an index, saturated to i64."""
    if isinstance(start.type, IndexType):
        return start
    assert isinstance(old.type, TensorType)
    number = lowering.insert(tensor.ExtractOp(start, [], tensor_type(start).element_type)).result
    b = Body(Block(), dtype(old.type.element_type))
    if b.dtype.name == "ui64":
        number = b.min(number, b.number((1 << 63) - 1))
    number = extended(b, number)
    for op in list(b.block.ops):
        op.detach()
        lowering.insert(op)
    return lowering.insert(arith.IndexCastOp(number, INDEX)).result
