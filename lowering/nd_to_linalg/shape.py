"""Broadcast, transpose, strided slice and reverse as generics with maps; the others as slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DenseArrayBase, DenseIntOrFPElementsAttr, TensorType, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr, AffineMap

from stepwell.core.shapes import DYNAMIC
from stepwell.core.shapes.shape import END, broadcast_unknown, slice_bounds
from stepwell.dialects.nd.creation import ConstantOp, FullOp
from stepwell.dialects.nd.shape import (
    BroadcastOp,
    ConcatOp,
    PadOp,
    ReverseOp,
    SliceOp,
    TransposeOp,
)
from stepwell.dialects.nd.syntax import axes, shape_of
from stepwell.dialects.types import array, dtype, tensor_type
from stepwell.lowering.nd_to_linalg.body import Body
from stepwell.lowering.nd_to_linalg.generic import Iterator, constant, filled, generic
from stepwell.lowering.nd_to_linalg.sizes import Size, Sizes, shape_of_sizes
from stepwell.lowering.nd_to_linalg.starts import is_best_a_view
from stepwell.lowering.nd_to_linalg.table import Lowering, lower, signless

Operands = Sequence[SSAValue]


def view(
    lowering: Lowering, x: SSAValue, sizes: Sequence[Size], reads: Sequence[AffineExpr]
) -> SSAValue:
    """Return the tensor y of these sizes with ``y[d] = x[reads(d)]``."""
    element, rank = tensor_type(x).element_type, len(sizes)
    into = Sizes(lowering).empty(sizes, element)
    maps = [AffineMap(rank, 0, tuple(reads)), AffineMap.identity(rank)]
    kind = dtype(element)
    (y,) = generic(lowering, [x], [into], maps, iterators(rank), lambda b, x, y: x, kind)
    return y


def iterators(rank: int, reduced: Sequence[int] = ()) -> list[Iterator]:
    """Return the iterator type of each of ``rank`` axes."""
    return ["reduction" if axis in reduced else "parallel" for axis in range(rank)]


def _dims(rank: int) -> list[AffineExpr]:
    return [AffineExpr.dimension(axis) for axis in range(rank)]


def result_type(op: Any) -> TensorType[Attribute]:
    """Return the lowered type of the only result of ``op``."""
    type = signless(op.results[0].type)
    assert isinstance(type, TensorType)
    return type


@lower(BroadcastOp)
def _broadcast(lowering: Lowering, op: BroadcastOp, operands: Operands) -> Operands:
    x, *dynamic = operands
    dims, result, sizes = axes(op.dims), shape_of(op.y), Sizes(lowering)
    y: list[Size] = list(result)
    for axis, to in enumerate(dims):
        if result[to] == DYNAMIC and shape_of(op.x)[axis] == DYNAMIC:
            y[to] = sizes.of(x, axis)
    for axis, size in zip(broadcast_unknown(shape_of(op.x), dims, result), dynamic, strict=True):
        y[axis] = size
    reads = [
        AffineExpr.dimension(to) if n == result[to] else AffineConstantExpr(0)
        for n, to in zip(shape_of(op.x), dims, strict=True)
    ]
    return (view(lowering, x, y, reads),)


@lower(TransposeOp)
def _transpose(lowering: Lowering, op: TransposeOp, operands: Operands) -> Operands:
    (x,) = operands
    permutation, sizes = axes(op.permutation), Sizes(lowering)
    y = [sizes.of(x, axis) for axis in permutation]
    reads = [AffineExpr.dimension(permutation.index(axis)) for axis in range(len(y))]
    return (view(lowering, x, y, reads),)


@lower(SliceOp)
def _slice(lowering: Lowering, op: SliceOp, operands: Operands) -> Operands:
    """Read through a map.

    A range that only cuts off the end, has a dynamic start, or is updated later stays a slice.
    """
    (x,) = operands
    type = result_type(op)
    places = [_range(lowering, x, axis, *r) for axis, r in enumerate(op.ranges)]
    begins, counts, strides = ([p[k] for p in places] for k in range(3))
    if 0 in type.get_shape():
        return (Sizes(lowering).empty_as(counts, type),)
    whole = [_is_whole(n, *r) for n, r in zip(shape_of(op.x), op.ranges, strict=True)]
    readable = all(
        whole[axis] or (isinstance(begin, int) and (begin, stride) != (0, 1))
        for axis, (begin, _, stride) in enumerate(places)
    )
    if not readable or is_best_a_view(op, begins):
        part = tensor.ExtractSliceOp(
            x, begins, counts, [s for s in strides if isinstance(s, int)], type
        )
        return (lowering.insert(part).result,)
    reads = [
        d if whole[axis] else d * stride + begin
        for axis, (d, (begin, _, stride)) in enumerate(zip(_dims(len(places)), places, strict=True))
        if isinstance(begin, int)
    ]
    return (view(lowering, x, counts, reads),)


def _is_whole(n: int, start: int, limit: int, stride: int) -> bool:
    if n == DYNAMIC:
        return (start, limit, stride) == (0, END, 1)
    return (*slice_bounds(n, start, limit), stride) == (0, n, 1)


def _range(
    lowering: Lowering, x: SSAValue, axis: int, start: int, limit: int, stride: int
) -> tuple[Size, Size, int]:
    """Return start, size and stride of a range, with Python's semantics."""
    sizes = Sizes(lowering)
    n = sizes.of(x, axis)
    if isinstance(n, int):
        begin, end = slice_bounds(n, start, limit)
        return begin, -(-(end - begin) // stride), stride
    if (start, limit, stride) == (0, END, 1):
        return 0, n, 1

    def clamped(bound: int) -> Size:
        if bound == END:
            return n
        return sizes.max(sizes.add(n, bound), 0) if bound < 0 else sizes.min(n, bound)

    begin: Size = 0 if start == 0 else clamped(start)
    length = sizes.max(sizes.sub(clamped(limit), begin), 0)
    count = sizes.div(sizes.add(length, stride - 1), stride)
    return (start if start >= 0 else begin), count, stride


@lower(ReverseOp)
def _reverse(lowering: Lowering, op: ReverseOp, operands: Operands) -> Operands:
    return (reversed_along(lowering, operands[0], axes(op.axes)),)


def turned_along(rank: int, axis: int, size: Size) -> AffineMap | None:
    """Return the map that traverses an axis backwards; None if its size is dynamic."""
    if not isinstance(size, int):
        return None
    walk = _dims(rank)
    walk[axis] = walk[axis] * -1 + (size - 1)
    return AffineMap(rank, 0, tuple(walk))


def reversed_along(lowering: Lowering, x: SSAValue, along: Sequence[int]) -> SSAValue:
    """Return ``x`` reversed along some axes."""
    sizes = Sizes(lowering)
    y = sizes.all_of(x)
    known = [axis for axis in along if isinstance(y[axis], int)]
    if known:
        lasts = {axis: n - 1 for axis, n in enumerate(y) if isinstance(n, int)}
        reads = [d * -1 + lasts[a] if a in known else d for a, d in enumerate(_dims(len(y)))]
        x = view(lowering, x, y, reads)
    unknown = [axis for axis in along if axis not in known]
    if not unknown:
        return x
    lasts_of = {axis: sizes.value(sizes.sub(y[axis], 1)) for axis in unknown}

    def body(b: Body, _: SSAValue) -> SSAValue:
        places = [b.index(axis) for axis in range(len(y))]
        for axis, last in lasts_of.items():
            places[axis] = b.emit(arith.SubiOp(last, places[axis]))
        return b.emit(tensor.ExtractOp(x, places, element))

    element = tensor_type(x).element_type
    into, identity = sizes.empty(y, element), AffineMap.identity(len(y))
    return generic(lowering, [], [into], [identity], iterators(len(y)), body, dtype(element))[0]


@lower(PadOp)
def _pad(lowering: Lowering, op: PadOp, operands: Operands) -> Operands:
    x, value = operands
    into = _padded_destination(lowering, x, op.amounts)
    known = _known_scalar(op.value)
    if known is None:
        rank = tensor_type(into).get_num_dims()
        maps = [AffineMap(rank, 0, ()), AffineMap.identity(rank)]
        kind = dtype(tensor_type(into).element_type)
        (into,) = generic(lowering, [value], [into], maps, iterators(rank), lambda b, x, y: x, kind)
    else:
        scalar = constant(lowering, known, dtype(tensor_type(op.value).element_type))
        into = filled(lowering, scalar, into)
    low, _, interior = op.amounts
    return (inserted(lowering, x, into, low, [n + 1 for n in interior]),)


def _known_scalar(value: SSAValue) -> Any:
    match value.owner:
        case FullOp() as op:
            return op.value.value.data
        case ConstantOp(value=DenseIntOrFPElementsAttr() as data):
            return array(data)[()]
        case _:
            return None


def _padded_destination(
    lowering: Lowering, x: SSAValue, amounts: Sequence[Sequence[int]]
) -> SSAValue:
    sizes = Sizes(lowering)
    padded: list[Size] = []
    for n, low, high, interior in zip(sizes.all_of(x), *amounts, strict=True):
        between = sizes.mul(sizes.max(sizes.sub(n, 1), 0), interior) if interior else 0
        padded.append(sizes.add(sizes.add(n, between), low + high))
    return sizes.empty(padded, tensor_type(x).element_type)


def padded(
    lowering: Lowering, x: SSAValue, scalar: SSAValue, low: Sequence[int], high: Sequence[int]
) -> SSAValue:
    """Return ``x`` with a border of ``scalar``; ``x`` itself if the border is empty."""
    if not any((*low, *high)):
        return x
    into = _padded_destination(lowering, x, [low, high, [0] * len(low)])
    return inserted(lowering, x, filled(lowering, scalar, into), low, [1] * len(low))


def inserted(
    lowering: Lowering,
    x: SSAValue,
    into: SSAValue,
    offsets: Sequence[Size],
    strides: Sequence[int] | None = None,
) -> SSAValue:
    """Return ``into`` with ``x`` written at ``offsets``."""
    sizes = Sizes(lowering).all_of(x)
    op = tensor.InsertSliceOp.build(
        operands=[
            x,
            into,
            [n for n in offsets if not isinstance(n, int)],
            [n for n in sizes if not isinstance(n, int)],
            [],
        ],
        properties={
            "static_offsets": DenseArrayBase.from_list(i64, shape_of_sizes(offsets)),
            "static_sizes": DenseArrayBase.from_list(i64, shape_of_sizes(sizes)),
            "static_strides": DenseArrayBase.from_list(i64, strides or [1] * len(sizes)),
        },
        result_types=[into.type],
    )
    return lowering.insert(op).result


@lower(ConcatOp)
def _concat(lowering: Lowering, op: ConcatOp, operands: Operands) -> Operands:
    axis, sizes = op.axis.value.data, Sizes(lowering)
    ends: list[Size] = [0]
    for x in operands:
        ends.append(sizes.add(ends[-1], sizes.of(x, axis)))
    whole = sizes.all_of(operands[0])
    whole[axis] = ends[-1]
    into = sizes.empty_as(whole, result_type(op))
    for x, begin in zip(operands, ends, strict=False):
        offsets: list[Size] = [0] * len(whole)
        offsets[axis] = begin
        into = inserted(lowering, x, into, offsets)
    return (into,)
