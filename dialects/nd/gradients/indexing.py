"""Derivatives of indexed reads and writes.

An element read several times gets the sum of its cotangents. Indices out of range are handled as in
the op: a gather reads the nearest element, a scatter drops the update. If updates overlap, the
remaining one gets the cotangent; equal extremes get equal shares.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.arith import MaxSIOp, MuliOp, SubiOp
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from stepwell.core.shapes import DYNAMIC
from stepwell.core.shapes.shape import END
from stepwell.dialects.nd.base import I1
from stepwell.dialects.nd.bitwise import AndOp
from stepwell.dialects.nd.compare import ClampOp, EqOp, GeOp, LtOp, NeOp, SelectOp
from stepwell.dialects.nd.composing import Composer
from stepwell.dialects.nd.creation import FullOp, IotaOp
from stepwell.dialects.nd.gradients.reverse import Reverse
from stepwell.dialects.nd.indexing import (
    DynamicSliceOp,
    DynamicUpdateSliceOp,
    GatherOp,
    ScatterAddOp,
    ScatterMaxOp,
    ScatterMinOp,
    ScatterMulOp,
    ScatterOp,
    ScatterOpBase,
)
from stepwell.dialects.nd.shape import ReshapeOp, SliceOp
from stepwell.dialects.nd.sizes import FromIndexOp
from stepwell.dialects.nd.syntax import axes, element, shape_of
from stepwell.dialects.readings import gradient
from stepwell.dialects.types import dtype, element_type

Cotangents = Sequence[SSAValue | None]


@gradient(GatherOp)
def _gather(r: Reverse, op: GatherOp, cotangents: Cotangents) -> None:
    """Scatter-add the cotangents; if each row reads one element, by comparison instead."""
    (g,) = cotangents
    assert g is not None
    if not r.wants(op.x) or not op.indices:
        return r.accumulate(op.x, g)
    along = axes(op.axes)
    if 0 in shape_of(g):
        return r.accumulate(op.x, r.full(op.x, 0))
    if (axis := _row_wise(op)) is not None:
        chosen = r.of(EqOp(*_places(r, op, axis)))
        return r.accumulate(op.x, _repeated(r, g, op.x, axis), chosen)
    places = [_clamped(r, i, op.x, axis) for i, axis in zip(op.indices, along, strict=True)]
    wide = r.wide(g)
    if element(wide) == element(g):
        return r.accumulate(op.x, r.of(ScatterAddOp(r.so_far(op.x), g, places, along)))
    zeros = r.of(FullOp.of(0, TensorType(element(wide), shape_of(op.x)), r.sizes(op.x)))
    total = r.of(ScatterAddOp(zeros, wide, places, along))
    r.accumulate(op.x, r.cast(total, element(op.x)))


def _row_wise(op: GatherOp) -> int | None:
    """Return the axis along which one element is read for each position of the other axes."""
    x, along = shape_of(op.x), axes(op.axes)
    shape = shape_of(op.indices[0])
    if len(along) != len(x) or len(shape) != len(x):
        return None
    own = [
        axis
        for axis, i in zip(along, op.indices, strict=True)
        if not (isinstance(i.owner, IotaOp) and i.owner.axis.value.data == axis)
    ]
    if len(own) != 1 or shape[own[0]] != 1 or DYNAMIC in x:
        return None
    (axis,) = own
    return axis if all(x[a] == shape[a] for a in range(len(x)) if a != axis) else None


def _places(c: Composer, op: GatherOp, axis: int) -> tuple[SSAValue, SSAValue]:
    """Return each element's index along ``axis``, and the index of the element read."""
    wanted = _clamped(c, op.indices[axis], op.x, axis)
    kind = element_type("i64")
    number = c.of(IotaOp(TensorType(kind, shape_of(op.x)), axis))
    return number, _repeated(c, c.cast(wanted, kind), op.x, axis)


def _repeated(c: Composer, part: SSAValue, x: SSAValue, axis: int) -> SSAValue:
    """Return ``part``, which has one element along ``axis``, broadcast to the shape of ``x``."""
    kept = [a for a in range(len(shape_of(x))) if a != axis]
    flat = c.of(ReshapeOp(part, [shape_of(part)[a] for a in kept]))
    return c.along(flat, x, kept)


def _clamped(c: Composer, i: SSAValue, x: SSAValue, axis: int) -> SSAValue:
    """Return indices clamped to the range of an axis."""
    n = shape_of(x)[axis]
    if n == DYNAMIC:
        kind = dtype(element(i))
        wide = element_type("ui64" if kind.name == "ui64" else "i64")
        i = c.cast(i, wide)
        size = c.cast(c.of(FromIndexOp(c.size(x, axis))), wide)
        last = c.sub(size, c.of(FullOp.of(1, TensorType(wide, []))))
        return c.of(ClampOp(i, c.full(i, 0), c.along(last, i, ())))
    return c.of(ClampOp(i, c.full(i, 0), c.full(i, min(n - 1, _greatest(element(i))))))


def _greatest(kind: Attribute) -> int:
    integer = dtype(kind)
    return (1 << 8 * integer.bytes - (integer.kind == "signed")) - 1


def _inside(c: Composer, op: ScatterOpBase) -> SSAValue:
    """Return for each index whether its update is kept, not dropped."""
    found: SSAValue | None = None
    for i, axis in zip(op.indices, axes(op.axes), strict=True):
        kind, n = dtype(element(i)), shape_of(op.x)[axis]
        tests: list[SSAValue] = []
        if kind.kind == "signed":
            tests.append(c.of(GeOp(i, c.full(i, 0))))
        if n == DYNAMIC:
            wide = element_type("ui64" if kind.name == "ui64" else "i64")
            size = c.cast(c.of(FromIndexOp(c.size(op.x, axis))), wide)
            large = c.cast(i, wide)
            tests.append(c.of(LtOp(large, c.along(size, large, ()))))
        elif n <= _greatest(element(i)):
            tests.append(c.of(LtOp(i, c.full(i, n))))
        for test in tests:
            found = test if found is None else c.of(AndOp(found, test))
    if found is None:
        i = op.indices[0]
        found = c.of(FullOp.of(True, TensorType(I1, shape_of(i)), c.sizes(i)))
    return found


def _for_updates(c: Composer, op: ScatterOpBase, mask: SSAValue) -> SSAValue:
    """Return a mask over indices broadcast to the updates."""
    first = axes(op.axes)[0]
    return c.along(mask, op.updates, range(first, first + len(shape_of(mask))))


def _read(c: Composer, op: ScatterOpBase, x: SSAValue, inside: SSAValue) -> SSAValue:
    """Return the elements of ``x`` at the updates' positions, 0 for dropped updates."""
    if 0 in shape_of(op.updates) or 0 in shape_of(x):
        return c.full(op.updates, 0)
    read = c.of(GatherOp(x, op.indices, axes(op.axes)))
    if read.type != op.updates.type:
        read = c.of(ReshapeOp(read, shape_of(op.updates), c.sizes(op.updates)))
    return c.of(SelectOp(_for_updates(c, op, inside), read, c.full(read, 0)))


@gradient(ScatterAddOp)
def _scatter_add(r: Reverse, op: ScatterAddOp, cotangents: Cotangents) -> None:
    (g,) = cotangents
    assert g is not None
    r.accumulate(op.x, g)
    if r.wants(op.updates):
        r.accumulate(op.updates, _read(r, op, g, _inside(r, op)))


@gradient(ScatterOp)
def _scatter(r: Reverse, op: ScatterOp, cotangents: Cotangents) -> None:
    """Overwritten elements get no cotangent: those of x, and all but the last of updates."""
    (g,) = cotangents
    assert g is not None
    if r.wants(op.updates):  # read before the overwrite, which a loop can then do in place
        r.accumulate(op.updates, _read(r, op, g, _is_last_update(r, op)))
    if r.wants(op.x):
        r.accumulate(op.x, r.of(ScatterOp(g, r.full(op.updates, 0), op.indices, axes(op.axes))))


def _is_last_update(c: Composer, op: ScatterOp) -> SSAValue:
    """Return for each index whether its update is kept and not overwritten by a later one."""
    inside, places = _inside(c, op), shape_of(op.indices[0])
    if 0 in places or 0 in shape_of(op.x) or all(n == 1 for n in places):
        return inside  # a single update is not overwritten: loops write one at a time
    number = _numbers(c, op.indices[0])
    along = axes(op.axes)
    shape = [shape_of(op.x)[a] for a in along]
    sizes = [c.size(op.x, a) for a in along if shape_of(op.x)[a] == DYNAMIC]
    none = c.of(FullOp.of(-1, TensorType(element(number), shape), sizes))
    every = range(len(along))
    last = c.of(ScatterOp(none, number, op.indices, every))
    read = c.of(GatherOp(last, op.indices, every))
    return c.of(AndOp(inside, c.of(EqOp(read, number))))


def _numbers(c: Composer, like: SSAValue) -> SSAValue:
    """Return the row-major numbers of elements."""
    kind, sizes = element_type("i64"), c.sizes(like)
    type = TensorType(kind, shape_of(like))
    if not shape_of(like):
        return c.of(FullOp.of(0, type))
    total: SSAValue | None = None
    for axis, n in enumerate(shape_of(like)):
        one = c.of(IotaOp(type, axis, sizes))
        if total is not None:
            if n == DYNAMIC:
                size = c.along(c.of(FromIndexOp(c.size(like, axis))), one, ())
            else:
                size = c.full(one, n)
            one = c.add(c.mul(total, size), one)
        total = one
    assert total is not None
    return total


@gradient(ScatterMulOp)
def _scatter_mul(r: Reverse, op: ScatterMulOp, cotangents: Cotangents) -> None:
    """Divide the product by each factor: zeros are excluded, and a single zero is special."""
    (g,) = cotangents
    assert g is not None
    along, u, kind = axes(op.axes), op.updates, element(op.x)
    x, g, updates = r.wide(op.x), r.wide(g), r.wide(u)
    if r.wants(op.x):
        ones = r.full(x, 1)
        product = r.of(ScatterMulOp(ones, updates, op.indices, along))
        r.accumulate(op.x, r.cast(r.mul(g, product), kind))
    if not r.wants(u):
        return
    zero = r.of(EqOp(updates, r.full(updates, 0)))
    others = r.of(SelectOp(zero, r.full(updates, 1), updates))
    product = r.mul(g, r.of(ScatterMulOp(x, others, op.indices, along)))
    counted = r.of(ScatterAddOp(r.full(x, 0), r.cast(zero, element(x)), op.indices, along))
    inside = _inside(r, op)
    product, counted = (_as(r, _read(r, op, v, inside), updates) for v in (product, counted))
    alone = r.of(EqOp(counted, r.cast(zero, element(x))))
    r.accumulate(u, r.cast(r.div(product, others), kind), alone)


def _as(c: Composer, x: SSAValue, like: SSAValue) -> SSAValue:
    return c.cast(x, element(like))


@gradient(ScatterMinOp, ScatterMaxOp)
def _scatter_extreme(r: Reverse, op: ScatterMinOp | ScatterMaxOp, cotangents: Cotangents) -> None:
    (g,) = cotangents
    assert g is not None
    along, inside = axes(op.axes), _inside(r, op)
    kind, wide = element(op.x), element(r.wide(g))
    old = r.of(EqOp(op.x, op.y))
    same = r.of(EqOp(op.updates, _read(r, op, op.y, inside)))
    new = r.of(AndOp(same, _for_updates(r, op, inside)))
    count = r.of(ScatterAddOp(r.cast(old, wide), r.cast(new, wide), op.indices, along))
    is_chosen = r.of(NeOp(count, r.full(count, 0)))
    share = r.div(r.wide(g), r.of(SelectOp(is_chosen, count, r.full(count, 1))))
    share = r.cast(share, kind)
    r.accumulate(op.x, share, old)
    if r.wants(op.updates):
        r.accumulate(op.updates, _read(r, op, share, inside), new)


@gradient(DynamicSliceOp)
def _dynamic_slice(r: Reverse, op: DynamicSliceOp, cotangents: Cotangents) -> None:
    """Insert the cotangent into zeros, or add it, at the position of the slice."""
    (g,) = cotangents
    assert g is not None
    if not r.wants(op.x):
        return
    along = axes(op.axes)
    base = r.found_plain(op.x)
    if base is None:
        base = r.full(op.x, 0)
    else:
        sizes = [
            r.size(g, axis) if n == DYNAMIC else n
            for axis, n in zip(along, axes(op.lengths), strict=True)
        ]
        g = r.add(r.of(DynamicSliceOp(base, op.starts, along, sizes)), g)
    r.accumulate(op.x, r.of(DynamicUpdateSliceOp(base, g, op.starts, along)))


@gradient(DynamicUpdateSliceOp)
def _dynamic_update_slice(r: Reverse, op: DynamicUpdateSliceOp, cotangents: Cotangents) -> None:
    (g,) = cotangents
    assert g is not None
    along = axes(op.axes)
    strides = op.steps if op.strides is not None else ()
    if r.wants(op.x):
        zeros = r.full(op.update, 0)
        r.accumulate(op.x, r.of(DynamicUpdateSliceOp(g, zeros, op.starts, along, strides)))
    if not r.wants(op.update):
        return
    if 0 in shape_of(op.update):
        return r.accumulate(op.update, r.full(op.update, 0))
    steps = list(zip(along, op.steps, strict=True))
    spans = [_span(r, op.update, axis, step) for axis, step in steps]
    part = r.of(DynamicSliceOp(g, op.starts, along, spans))
    if any(step != 1 for _, step in steps):
        rank = len(shape_of(part))
        by = [dict(steps).get(axis, 1) for axis in range(rank)]
        part = r.of(SliceOp(part, [0] * rank, [END] * rank, by))
    r.accumulate(op.update, part)


def _span(c: Composer, update: SSAValue, axis: int, step: int) -> int | SSAValue:
    """Return the extent of an update, strides included."""
    n = shape_of(update)[axis]
    if n != DYNAMIC:
        return (n - 1) * step + 1
    size = c.size(update, axis)
    if step == 1:
        return size
    far = c.builder.insert(MuliOp(size, c.index(step))).result
    span = c.builder.insert(SubiOp(far, c.index(step - 1))).result
    return c.builder.insert(MaxSIOp(span, c.index(0))).result
