"""Functions that change shapes: they keep the elements and move them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stepwell.core.shapes import ShapeError, show
from stepwell.frontend.elementwise import axes_of, check_axis
from stepwell.frontend.errors import TraceError
from stepwell.frontend.known import rearranged
from stepwell.frontend.promotion import broadcast, fresh, lift
from stepwell.frontend.table import method, public
from stepwell.frontend.tensor import Tensor


def sizes_of(shape: Any) -> tuple[int, ...]:
    """Return a shape, or the repeat counts of axes, as a tuple of ints."""
    try:
        sizes = (shape,) if isinstance(shape, int | np.integer | Tensor) else tuple(shape)
    except TypeError:
        sizes = (shape,)
    if any(isinstance(n, Tensor) for n in sizes):
        raise TraceError("a shape must be known while tracing; pass it in static_argnames")
    for n in sizes:
        if not isinstance(n, int | np.integer):
            raise TypeError(f"a shape is made of ints, got {n!r}")
    return tuple(int(n) for n in sizes)


def _new_shape(x: Any, shape: Any) -> tuple[int, ...]:
    sizes = sizes_of(shape)
    if sizes.count(-1) > 1:
        raise ShapeError(f"only one size may be -1, got {sizes}")
    if -1 in sizes:
        rest = math.prod(n for n in sizes if n != -1)
        if rest == 0 or x.size % rest:
            raise ShapeError(f"cannot reshape [{show(x.shape)}] to {sizes}")
        sizes = tuple(x.size // rest if n == -1 else n for n in sizes)
    if math.prod(sizes) != x.size:
        raise ShapeError(f"cannot reshape [{show(x.shape)}], {x.size} elements, to {sizes}")
    return sizes


@public()
def reshape(a: Any, shape: Any, order: str = "C", copy: bool | None = None) -> Tensor:
    """Return the elements of ``a`` in another ``shape``; one size may be -1.

    order : C is row by row, F is column by column
    """
    value = lift(a)
    if by_columns(value, order):
        sizes = _new_shape(value, shape)
        if _is_dense(value) and _merges(value.shape, sizes):
            value = fresh(value)  # as in NumPy: the result is surely a copy
        return _turned(reshape(_turned(value), sizes[::-1]))
    sizes = _new_shape(value, shape)
    if copy:
        value = fresh(value)
    if sizes == value.shape:
        return value
    found = rearranged(value, lambda a: a.reshape(sizes))
    if found is None:
        found = value.graph.emit("reshape", [value], [(value.kind, sizes)])[0]
    if not _is_dense(value) and [n for n in sizes if n != 1] != [n for n in value.shape if n != 1]:
        return found.may_share(value)  # NumPy copies arrays that are not contiguous
    return found.part_of(
        value,
        lambda base: reshape(base, sizes),
        lambda base, part: base.write(reshape(part, base.shape)),
        whole=True,
    )


def _is_dense(x: Tensor) -> bool:
    """Whether the elements of ``x`` are contiguous in row-major order, as in whole arrays."""
    while x.part is not None:
        if not x.part.whole and not _is_run(x.part.index):
            return False
        x = x.part.base
    return True


def _merges(shape: Sequence[int], sizes: Sequence[int]) -> bool:
    """Whether reading an array in column-major order to ``sizes`` merges some of its axes.

    >>> _merges((2, 3), (6,)), _merges((6,), (2, 3)), _merges((4, 3), (2, 2, 3))
    (True, False, False)
    """
    rest = [n for n in reversed(sizes) if n != 1]
    for left in shape:
        while left > 1 and rest:
            part = rest.pop()
            if left % part:
                return True
            left //= part
    return False


def _is_run(index: Any) -> bool:
    """Whether an index selects contiguous elements: integers, then at most one slice of step 1."""
    given: tuple[Any, ...] = index if type(index) is tuple else (index,)
    cut = False
    for part in given:
        number = isinstance(part, int | np.integer | Tensor) and not isinstance(part, bool)
        if isinstance(part, slice):
            if cut and part != slice(None):
                return False
            if part.step not in (None, 1):
                return False
            cut = True
        elif not number or cut:
            return False
    return True


def _turned(x: Tensor) -> Tensor:
    return permute_dims(x, range(x.ndim)[::-1])


def in_order(order: Any) -> None:
    """Refuse orders of elements other than row-major."""
    if order not in (None, "C", "K", "A"):
        raise TraceError(f"order={order!r} is not known to Stepwell: arrays lie row by row")


def by_columns(x: Tensor, order: Any) -> bool:
    """Whether elements are read in column-major order; refuse an order that depends on memory."""
    if order not in (None, "C", "F", "K", "A"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    if order in ("A", "K") and x.ndim > 1:
        raise TraceError(
            f"order={order!r} asks how an array lies in memory, which a traced value does not "
            "have; write 'C' for the order of rows, 'F' for that of columns"
        )
    return order == "F"


@method("reshape")
def _reshape(x: Tensor, *shape: Any, order: str = "C", copy: bool | None = None) -> Tensor:
    return reshape(x, shape[0] if len(shape) == 1 else shape, order, copy)


def permute_dims(x: Any, /, axes: Sequence[int]) -> Tensor:
    """Return ``x`` with its axes in the order ``axes``."""
    value = lift(x)
    order = tuple(check_axis(a, value.ndim) for a in axes)
    if sorted(order) != list(range(value.ndim)):
        raise ValueError(f"axes must name each of {value.ndim} axes once, got {tuple(axes)}")
    if order == tuple(range(value.ndim)):
        return value
    shape = tuple(value.shape[a] for a in order)
    back = [order.index(a) for a in range(len(order))]
    found = rearranged(value, lambda a: a.transpose(order))
    if found is None:
        types = [(value.kind, shape)]
        found = value.graph.emit("transpose", [value], types, (), permutation=order)[0]
    return found.part_of(
        value,
        lambda base: permute_dims(base, order),
        lambda base, part: base.write(permute_dims(part, back)),
    )


@public()
def transpose(a: Any, axes: Any = None) -> Tensor:
    """Return ``a`` with its axes in the order ``axes``; reversed if none are given."""
    value = lift(a)
    return permute_dims(value, tuple(reversed(range(value.ndim))) if axes is None else axes)


@method("transpose")
def _transpose(x: Tensor, *axes: Any) -> Tensor:
    if len(axes) == 1 and not isinstance(axes[0], int | np.integer):
        return transpose(x, axes[0])
    return transpose(x, axes or None)


@public()
def matrix_transpose(x: Any) -> Tensor:
    """Return ``x`` with its last two axes swapped."""
    value = lift(x)
    if value.ndim < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {value.ndim}")
    return swapaxes(value, -2, -1)


@public(method=True)
def swapaxes(a: Any, axis1: int, axis2: int) -> Tensor:
    """Return ``a`` with two axes swapped."""
    value = lift(a)
    order = list(range(value.ndim))
    i, j = check_axis(axis1, value.ndim), check_axis(axis2, value.ndim)
    order[i], order[j] = order[j], order[i]
    return permute_dims(value, order)


@public()
def moveaxis(a: Any, source: Any, destination: Any) -> Tensor:
    """Return ``a`` with axes moved to other places; the other axes keep their order."""
    value = lift(a)
    sources = [check_axis(k, value.ndim) for k in axes_of(source)]
    targets = [check_axis(k, value.ndim) for k in axes_of(destination)]
    for each in (sources, targets):
        if len(set(each)) < len(each):
            raise ValueError("repeated axis in `source` or `destination` argument")
    if len(sources) != len(targets):
        raise ValueError("source and destination must name as many axes")
    order = [k for k in range(value.ndim) if k not in sources]
    for target, axis in sorted(zip(targets, sources, strict=True)):
        order.insert(target, axis)
    return permute_dims(value, order)


@public()
def expand_dims(a: Any, axis: Any) -> Tensor:
    """Return ``a`` with new axes of size 1 at the places ``axis`` of the result."""
    value = lift(a)
    axes = axes_of(axis)
    rank = value.ndim + len(axes)
    places = {check_axis(k, rank) for k in axes}
    if len(places) < len(axes):
        raise ValueError(f"repeated axis in {axes}")
    sizes = iter(value.shape)
    return reshape(value, tuple(1 if k in places else next(sizes) for k in range(rank)))


@public(method=True)
def squeeze(a: Any, axis: Any = None) -> Tensor:
    """Return ``a`` without the axes ``axis`` of size 1; None drops all axes of size 1."""
    value = lift(a)
    if axis is None:
        drop = {k for k, n in enumerate(value.shape) if n == 1}
    else:
        given = axes_of(axis)
        if not value.ndim and len(given) == 1 and given[0] in (0, -1):
            return reshape(value, ())
        axes = [check_axis(k, value.ndim) for k in given]
        if len(drop := set(axes)) < len(axes):
            raise ValueError("duplicate value in 'axis'")
    for k in drop:
        if value.shape[k] != 1:
            raise ShapeError(f"axis {k} of [{show(value.shape)}] is not of size 1")
    return reshape(value, tuple(n for k, n in enumerate(value.shape) if k not in drop))


@public()
def broadcast_to(array: Any, shape: Any) -> Tensor:
    """Return ``array`` broadcast to ``shape``: a view, which cannot be written to."""
    value = lift(array)
    sizes = sizes_of(shape)
    try:
        fits = np.broadcast_shapes(value.shape, sizes) == sizes
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(f"cannot broadcast [{show(value.shape)}] to {sizes}")
    if sizes == value.shape:
        return value
    found = broadcast(value, sizes)
    return found.part_of(value, lambda base: broadcast(base, sizes), _refuse_write)


def _refuse_write(base: Tensor, part: Tensor) -> None:
    raise ValueError("assignment destination is read-only")


@public()
def broadcast_arrays(*args: Any) -> tuple[Tensor, ...]:
    """Return ``args`` broadcast to their common shape."""
    values = [lift(a) for a in args]
    shape = np.broadcast_shapes(*(v.shape for v in values))
    return tuple(broadcast_to(v, shape) for v in values)


@public()
def fliplr(m: Any) -> Tensor:
    """Return ``m`` with the columns in reverse order."""
    value = lift(m)
    if value.ndim < 2:
        raise ValueError("Input must be >= 2-d.")
    return flip(value, 1)


@public()
def flipud(m: Any) -> Tensor:
    """Return ``m`` with the rows in reverse order."""
    value = lift(m)
    if value.ndim < 1:
        raise ValueError("Input must be >= 1-d.")
    return flip(value, 0)


@public()
def flip(m: Any, axis: Any = None) -> Tensor:
    """Return ``m`` with its elements in reverse order along ``axis``; None means all axes."""
    value = lift(m)
    given = range(value.ndim) if axis is None else axes_of(axis)
    axes = tuple(sorted(check_axis(k, value.ndim) for k in given))
    if len(set(axes)) < len(axes):
        raise ValueError("repeated axis")
    found = rearranged(value, lambda a: np.flip(a, axes))
    if found is None:
        found = value.graph.emit("reverse", [value], [(value.kind, value.shape)], (), axes=axes)[0]
    return found.part_of(
        value, lambda base: flip(base, axes), lambda base, part: base.write(flip(part, axes))
    )


@public(method=True)
def ravel(a: Any, order: str = "C") -> Tensor:
    """Return the elements of ``a`` along one axis, row by row, or column by column (F)."""
    value = lift(a)
    return reshape(value, (value.size,), order)


@method()
def flatten(x: Any, order: str = "C") -> Tensor:
    """Return a copy of the elements of ``x`` along one axis; ``order``: as in `ravel`."""
    return fresh(reshape(lift(x), (lift(x).size,), order))


@public(method=True)
def copy(a: Any) -> Tensor:
    """Return a copy of ``a``."""
    return fresh(lift(a))


@public()
def atleast_1d(*arys: Any) -> Any:
    """Return arrays with at least one axis."""
    return _each(arys, lambda a: reshape(a, (1,)) if not a.ndim else a)


@public()
def atleast_2d(*arys: Any) -> Any:
    """Return arrays with at least two axes; new ones come first."""
    return _each(arys, lambda a: reshape(a, ((1,) * (2 - a.ndim) + a.shape)))


def _each(arrays: Sequence[Any], change: Callable[[Tensor], Tensor]) -> Any:
    found = [change(lift(a)) for a in arrays]
    return found[0] if len(found) == 1 else tuple(found)


@public()
def shape(a: Any) -> tuple[int, ...]:
    """Return the sizes of ``a``."""
    return lift(a).shape


@public()
def ndim(a: Any) -> int:
    """Return the number of axes of ``a``."""
    return lift(a).ndim


@public()
def size(a: Any, axis: Any = None) -> int:
    """Return the number of elements of ``a``, or its size along axes."""
    value = lift(a)
    axes = range(value.ndim) if axis is None else [check_axis(k, value.ndim) for k in axes_of(axis)]
    return math.prod(value.shape[k] for k in axes)
