"""Batching of indexed reads and writes: batched indices get the example's number as an index."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, TensorType, i64
from xdsl.ir import SSAValue

from stepwell.core.shapes import DYNAMIC
from stepwell.core.shapes import shape as rules
from stepwell.dialects.nd.arithmetic import AddOp, MulOp, SubOp
from stepwell.dialects.nd.batching.walk import Batch, numbers
from stepwell.dialects.nd.compare import MinOp
from stepwell.dialects.nd.convert import CastOp
from stepwell.dialects.nd.creation import FullOp, IotaOp
from stepwell.dialects.nd.indexing import (
    SCATTERS,
    DynamicSliceOp,
    DynamicUpdateSliceOp,
    GatherOp,
    ScatterOp,
    ScatterOpBase,
)
from stepwell.dialects.nd.shape import BroadcastOp, TransposeOp
from stepwell.dialects.nd.sizes import FromIndexOp
from stepwell.dialects.nd.syntax import axes, axes_attr, element, shape_of
from stepwell.dialects.readings import batching
from stepwell.dialects.types import dtype

SCALAR = TensorType(i64, [])


@batching(GatherOp)
def _gather(b: Batch, op: GatherOp) -> Sequence[SSAValue]:
    along, indices = axes(op.axes), list(op.indices)
    if not any(b.has(i) for i in indices):
        return b.again(op, [b.lead(op.x), *indices], axes=axes_attr([*numbers(along)]))
    indices = [b.lead(i) for i in indices]
    if not b.has(op.x):
        return (b.moved(b.of(GatherOp(op.x, indices, along)), along[0], 0),)
    y = GatherOp(b.found[op.x], [_examples(b, indices[0]), *indices], [0, *numbers(along)])
    return (_behind(b, b.of(y), len(shape_of(op.indices[0])), along[0]),)


def _examples(b: Batch, like: SSAValue) -> SSAValue:
    """Return the numbers of the examples, in the shape of batched indices."""
    return b.of(IotaOp(TensorType(i64, shape_of(like)), 0, b.sizes(like)))


def _behind(b: Batch, y: SSAValue, count: int, first: int) -> SSAValue:
    """Return ``y`` with its index axes, 1 to ``count``, moved behind ``first`` others."""
    if not count or not first:
        return y
    rest = range(1 + count + first, len(shape_of(y)))
    kept = range(1 + count, 1 + count + first)
    return b.of(TransposeOp(y, [0, *kept, *range(1, 1 + count), *rest]))


@batching(*SCATTERS)
def _scatter(b: Batch, op: ScatterOpBase) -> Sequence[SSAValue]:
    along, indices = axes(op.axes), list(op.indices)
    x, updates = b.lead(op.x), b.lead(op.updates)
    if not any(b.has(i) for i in indices):
        return b.again(op, [x, updates, *indices], axes=axes_attr([*numbers(along)]))
    count, first = len(shape_of(op.indices[0])), along[0]
    if count and first:  # index axes come first, which preserves the order of updates
        rest = range(1 + count + first, len(shape_of(updates)))
        order = [0, *range(1 + first, 1 + first + count), *range(1, 1 + first), *rest]
        updates = b.of(TransposeOp(updates, order))
    indices = [b.lead(i) for i in indices]
    places = [_examples(b, indices[0]), *indices]
    return b.again(op, [x, updates, *places], axes=axes_attr([0, *numbers(along)]))


@batching(DynamicSliceOp)
def _dynamic_slice(b: Batch, op: DynamicSliceOp) -> Sequence[SSAValue]:
    """Slice along axes with unbatched starts first; axes with batched starts become a gather."""
    along, sizes, x = axes(op.axes), axes(op.lengths), b.read(op.x)
    one = 1 if b.has(op.x) else 0
    dynamic = iter(op.unknown_sizes)
    extents = [next(dynamic) if n == DYNAMIC else n for n in sizes]
    parts = list(zip(op.starts, along, extents, strict=True))
    same = [(s, a + one, n) for s, a, n in parts if not b.has(s)]
    if same:
        starts, where, counts = zip(*same, strict=True)
        x = b.of(DynamicSliceOp(x, starts, where, counts))
    differing = [(s, a, n) for s, a, n in parts if b.has(s)]
    if not differing:
        return (x,)
    begins: list[SSAValue] = []
    for start, axis, n in differing:  # for one element the gather clamps the index
        limit = None if n == 1 else _less(b, b.extent(x, axis + one), n)
        begins.append(b.found[start] if limit is None else _inside(b, b.found[start], limit))
    gone, long = [a for _, a, _ in differing], [a for _, a, n in differing if n != 1]
    indices = _places(b, begins, [n for _, _, n in differing], [1] * len(gone))
    if one:
        y = b.of(GatherOp(x, [_examples(b, indices[0]), *indices], [0, *numbers(gone)]))
    else:
        y = b.moved(b.of(GatherOp(x, indices, gone)), gone[0], 0)
        y = _gathered_first(b, y, gone[0], len(long))
    return (_spread(b, y, len(shape_of(op.y)), long, [a for a in gone if a not in long]),)


def _gathered_first(b: Batch, y: SSAValue, first: int, count: int) -> SSAValue:
    """Return ``y`` with the index axes directly after the batch axis."""
    if not first or not count:
        return y
    rest = range(1 + first + count, len(shape_of(y)))
    order = [0, *range(1 + first, 1 + first + count), *range(1, 1 + first), *rest]
    return b.of(TransposeOp(y, order))


def _spread(b: Batch, y: SSAValue, rank: int, long: Sequence[int], unit: Sequence[int]) -> SSAValue:
    """Return ``y``, whose axes after the batch are index axes, with each axis in its place.

    long, unit : the axes read by indices, and the axes of one element, to be inserted
    """
    kept = iter(range(1 + len(long), len(shape_of(y))))
    present = [a for a in range(rank) if a not in unit]
    order = [0, *(1 + long.index(a) if a in long else next(kept) for a in present)]
    if order != sorted(order):
        y = b.of(TransposeOp(y, order))
    sizes = iter([b.extent(y, 1 + k) for k in range(len(present))])
    return b.shaped(y, [*b.extents, *(1 if a in unit else next(sizes) for a in range(rank))])


def _less(b: Batch, size: int | SSAValue, part: int | SSAValue) -> SSAValue:
    """Return the last valid start of a part of an axis."""
    if isinstance(size, int) and isinstance(part, int):
        return b.of(FullOp.of(max(size - part, 0), SCALAR))
    return b.of(SubOp(_number(b, size), _number(b, part)))


def _number(b: Batch, size: int | SSAValue) -> SSAValue:
    """Return a size as a tensor, for arithmetic."""
    if isinstance(size, int):
        return b.of(FullOp.of(size, SCALAR))
    return b.of(FromIndexOp(size)) if isinstance(size.type, IndexType) else size


def _inside(b: Batch, starts: SSAValue, limit: SSAValue) -> SSAValue:
    """Return ``starts`` as i64, clamped so that the parts lie inside."""
    if dtype(element(starts)).name == "ui64":  # larger numbers than i64 has are clamped anyway
        most = b.of(
            FullOp.of(2**63 - 1, TensorType(element(starts), shape_of(starts)), b.sizes(starts))
        )
        starts = b.of(MinOp(starts, most))
    starts = starts if element(starts) == i64 else b.of(CastOp(starts, i64))
    most = b.along(limit, starts, ())
    return b.max(b.of(MinOp(starts, most)), b.full(starts, 0))


def _places(
    b: Batch, begins: Sequence[SSAValue], sizes: Sequence[int | SSAValue], steps: Sequence[int]
) -> list[SSAValue]:
    """Return for each axis the element numbers: one for each example and position.

    An axis of one element has no axis of positions.
    """
    long = [n for n in sizes if n != 1]
    shape = (b.length, *(n if isinstance(n, int) else DYNAMIC for n in long))
    unknown = [a for a, n in enumerate(shape) if n == DYNAMIC]
    dynamic = [n for n in (*b.extents, *long) if not isinstance(n, int)]
    found: list[SSAValue] = []
    axis = 0
    for begin, size, step in zip(begins, sizes, steps, strict=True):
        needed = rules.broadcast_unknown(shape_of(begin), (0,), shape)
        others = [n for n, a in zip(dynamic, unknown, strict=True) if a in needed]
        first = b.of(BroadcastOp(begin, [0], shape, others)) if long else begin
        if size != 1:
            axis += 1
            type = TensorType(i64, shape)
            place = b.of(IotaOp(type, axis, dynamic))
            if step != 1:
                place = b.of(MulOp(place, b.of(FullOp.of(step, type, dynamic))))
            first = b.of(AddOp(first, place))
        found.append(first)
    return found


@batching(DynamicUpdateSliceOp)
def _dynamic_update_slice(b: Batch, op: DynamicUpdateSliceOp) -> Sequence[SSAValue]:
    """Write batched starts as a scatter."""
    along, x, update = axes(op.axes), b.lead(op.x), b.lead(op.update)
    if not any(b.has(s) for s in op.starts):
        return b.again(op, [x, update, *op.starts], axes=axes_attr([*numbers(along)]))
    sizes = [b.extent(update, a + 1) for a in along]
    begins: list[SSAValue] = []
    for start, axis, size, step in zip(op.starts, along, sizes, op.steps, strict=True):
        starts = start
        if isinstance(start.type, IndexType):
            starts = b.of(FromIndexOp(start))
        limit = _less(b, b.extent(x, axis + 1), _span(b, size, step))
        begins.append(_inside(b, b.lead(starts), limit))
    indices = _places(b, begins, sizes, op.steps)
    unit = [a for a, n in zip(along, sizes, strict=True) if n == 1]
    kept = [a for a in range(len(shape_of(op.update))) if a not in unit]
    if unit:
        update = b.shaped(update, [*b.extents, *(b.extent(update, a + 1) for a in kept)])
    order = [1 + kept.index(a) for a in along if a not in unit]
    order += [a for a in range(1, len(shape_of(update))) if a not in order]
    if order != sorted(order):
        update = b.of(TransposeOp(update, [0, *order]))
    places = [_examples(b, indices[0]), *indices]
    return (b.of(ScatterOp(x, update, places, [0, *numbers(along)])),)


def _span(b: Batch, size: int | SSAValue, step: int) -> int | SSAValue:
    """Return the extent of elements at a distance of ``step``."""
    if isinstance(size, int):
        return (size - 1) * step + 1
    if step == 1:
        return size
    one = b.of(FullOp.of(1, SCALAR))
    less = b.of(SubOp(_number(b, size), one))
    return b.of(AddOp(b.of(MulOp(less, b.of(FullOp.of(step, SCALAR)))), one))
