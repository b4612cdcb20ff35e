"""Changing shapes: the elements stay, their places change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from stepwell.core.shapes import ShapeError, show
from stepwell.frontend.elementwise import axes_of, check_axis
from stepwell.frontend.errors import TraceError
from stepwell.frontend.promotion import broadcast, fresh, full, is_number, lift, same_dtype
from stepwell.frontend.tensor import Tensor


def _sizes(shape: Any) -> tuple[int, ...]:
    """Return a shape, or how often each axis is repeated, as a tuple of ints."""
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


def _shape(x: Any, shape: Any) -> tuple[int, ...]:
    sizes = _sizes(shape)
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


def reshape(x: Any, /, shape: Any, *more: int) -> Tensor:
    """Return the elements of ``x``, row by row, in another ``shape``; one size may be -1."""
    value = lift(x)
    sizes = _shape(value, (shape, *more) if more else shape)
    if sizes == value.shape:
        return value
    found = value.trace.emit("reshape", [value], [(value.kind, sizes)])[0]
    if value.part is not None and [n for n in sizes if n != 1] != [
        n for n in value.shape if n != 1
    ]:
        return found.may_share(value)  # NumPy copies what does not lie row by row
    return found.part_of(
        value,
        lambda base: reshape(base, sizes),
        lambda base, part: base.write(reshape(part, base.shape)),
    )


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
    found = value.trace.emit("transpose", [value], [(value.kind, shape)], (), permutation=order)[0]
    return found.part_of(
        value,
        lambda base: permute_dims(base, order),
        lambda base, part: base.write(permute_dims(part, back)),
    )


def transpose(x: Any, /, *axes: Any) -> Tensor:
    """Return ``x`` with its axes in the order ``axes``, reversed where none are given."""
    value = lift(x)
    given = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
    return permute_dims(value, given or tuple(reversed(range(value.ndim))))


def matrix_transpose(x: Any, /) -> Tensor:
    """Return ``x`` with its last two axes swapped."""
    return swapaxes(x, -2, -1)


def swapaxes(x: Any, /, axis1: int, axis2: int) -> Tensor:
    """Return ``x`` with two axes swapped."""
    value = lift(x)
    order = list(range(value.ndim))
    a, b = check_axis(axis1, value.ndim), check_axis(axis2, value.ndim)
    order[a], order[b] = order[b], order[a]
    return permute_dims(value, order)


def moveaxis(x: Any, /, source: Any, destination: Any) -> Tensor:
    """Return ``x`` with axes moved to other places; the rest keep their order."""
    value = lift(x)
    sources = [check_axis(a, value.ndim) for a in axes_of(source)]
    targets = [check_axis(a, value.ndim) for a in axes_of(destination)]
    if len(sources) != len(targets):
        raise ValueError("source and destination must name as many axes")
    order = [a for a in range(value.ndim) if a not in sources]
    for target, axis in sorted(zip(targets, sources, strict=True)):
        order.insert(target, axis)
    return permute_dims(value, order)


def expand_dims(x: Any, /, axis: Any = 0) -> Tensor:
    """Return ``x`` with axes of size 1 at the places ``axis`` of the result."""
    value = lift(x)
    axes = axes_of(axis)
    rank = value.ndim + len(axes)
    places = {check_axis(a, rank) for a in axes}
    if len(places) < len(axes):
        raise ValueError(f"expand_dims names an axis twice: {axes}")
    sizes = iter(value.shape)
    return reshape(value, tuple(1 if a in places else next(sizes) for a in range(rank)))


def squeeze(x: Any, /, axis: Any = None) -> Tensor:
    """Return ``x`` without the axes ``axis`` of size 1; None drops all of them."""
    value = lift(x)
    if axis is None:
        drop = {a for a, n in enumerate(value.shape) if n == 1}
    else:
        drop = {check_axis(a, value.ndim) for a in axes_of(axis)}
    for a in drop:
        if value.shape[a] != 1:
            raise ShapeError(f"axis {a} of [{show(value.shape)}] is not of size 1")
    return reshape(value, tuple(n for a, n in enumerate(value.shape) if a not in drop))


def broadcast_to(x: Any, /, shape: Any) -> Tensor:
    """Return ``x`` repeated to ``shape``."""
    value = lift(x)
    sizes = _sizes(shape)
    try:
        fits = np.broadcast_shapes(value.shape, sizes) == sizes
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(f"cannot broadcast [{show(value.shape)}] to {sizes}")
    return broadcast(value, sizes)


def broadcast_arrays(*arrays: Any) -> list[Tensor]:
    """Return ``arrays`` repeated to the shape they have together."""
    values = [lift(a) for a in arrays]
    shape = np.broadcast_shapes(*(v.shape for v in values))
    return [broadcast(v, shape) for v in values]


def concat(arrays: Sequence[Any], /, axis: int | None = 0) -> Tensor:
    """Join arrays along an axis they have; None flattens them first."""
    values = same_dtype(*arrays)
    if not values:
        raise ValueError("concat needs at least one array")
    if axis is None:
        return concat([reshape(v, -1) for v in values])
    first = values[0]
    at = check_axis(axis, first.ndim)
    for v in values[1:]:
        rest = [n for a, n in enumerate(v.shape) if a != at]
        if v.ndim != first.ndim or rest != [n for a, n in enumerate(first.shape) if a != at]:
            raise ShapeError(
                f"cannot join [{show(first.shape)}] and [{show(v.shape)}] along axis {at}"
            )
    size = sum(v.shape[at] for v in values)
    shape = (*first.shape[:at], size, *first.shape[at + 1 :])
    return first.trace.emit("concat", values, [(first.kind, shape)], (), axis=at)[0]


def stack(arrays: Sequence[Any], /, axis: int = 0) -> Tensor:
    """Join arrays of one shape along a new axis."""
    values = same_dtype(*arrays)
    for v in values[1:]:
        if v.shape != values[0].shape:
            shapes = f"[{show(values[0].shape)}] and [{show(v.shape)}]"
            raise ShapeError(f"cannot stack {shapes}: arrays must have one shape")
    return concat([expand_dims(v, axis=axis) for v in values], axis=axis)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Return the slices of ``x`` along ``axis``, which they lack."""
    return tuple(moveaxis(x, axis, 0))


def split(x: Any, /, parts: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Return ``x`` cut along ``axis`` in equal ``parts``, or before each index of a list."""
    value = lift(x)
    at = check_axis(axis, value.ndim)
    size = value.shape[at]
    if isinstance(parts, int):
        if size % parts:
            raise ShapeError(f"cannot cut {size} elements in {parts} equal parts")
        cuts = [size // parts * i for i in range(parts + 1)]
    else:
        cuts = [0, *parts, size]
    head = (slice(None),) * at
    return [value[(*head, slice(a, b))] for a, b in pairwise(cuts)]


def flip(x: Any, /, axis: Any = None) -> Tensor:
    """Return ``x`` with its elements in reverse order along ``axis``; None means all axes."""
    value = lift(x)
    given = range(value.ndim) if axis is None else axes_of(axis)
    axes = tuple(sorted(check_axis(a, value.ndim) for a in given))
    found = value.trace.emit("reverse", [value], [(value.kind, value.shape)], (), axes=axes)[0]
    return found.part_of(
        value, lambda base: flip(base, axes), lambda base, part: base.write(flip(part, axes))
    )


def roll(x: Any, /, shift: Any, axis: Any = None) -> Tensor:
    """Return ``x`` moved by ``shift`` places along ``axis``; what leaves comes in behind.

    shift, axis : an int, or one per axis that is moved. Without an axis, all elements in order
    """
    value = lift(x)
    if axis is None:
        return reshape(roll(reshape(value, (-1,)), shift, 0), value.shape)
    value = fresh(value)
    try:
        pairs = list(np.broadcast(shift, axis))
    except ValueError:
        raise ValueError(f"roll needs a shift for each axis, got {shift} for {axis}") from None
    for places, along in pairs:
        value = _rolled(value, int(places), check_axis(int(along), value.ndim))
    return value


def _rolled(value: Tensor, shift: int, at: int) -> Tensor:
    size = value.shape[at]
    cut = -shift % size if size else 0
    if not cut:
        return value
    head = (slice(None),) * at
    return concat([value[(*head, slice(cut, None))], value[(*head, slice(0, cut))]], axis=at)


def tile(x: Any, /, repetitions: Any) -> Tensor:
    """Return ``x`` repeated ``repetitions[i]`` times along axis i."""
    value, times = fresh(lift(x)), _sizes(repetitions)
    if min(times, default=0) < 0:
        raise ValueError(f"repetitions cannot be negative, got {times}")
    rank = max(value.ndim, len(times))
    shape = (1,) * (rank - value.ndim) + value.shape
    times = (1,) * (rank - len(times)) + times
    wide = tuple(n for pair in zip(times, shape, strict=True) for n in pair)
    dims = tuple(2 * i + 1 for i in range(rank))
    value = reshape(value, shape)
    spread = value.trace.emit("broadcast", [value], [(value.kind, wide)], (), dims=dims)[0]
    return reshape(spread, tuple(t * n for t, n in zip(times, shape, strict=True)))


def repeat(x: Any, /, repeats: Any, axis: int | None = None) -> Tensor:
    """Return ``x`` with each element along ``axis`` ``repeats`` times; None flattens first.

    repeats : an int, or one for each element; known while tracing, as the shape depends on it
    """
    value = fresh(ravel(x) if axis is None else lift(x))
    at = check_axis(axis or 0, value.ndim)
    times = _times(repeats, value.shape[at], at)
    if times.ndim:
        index = np.repeat(np.arange(value.shape[at]), times)
        return Tensor.operators["take"](value, index, axis=at)
    repeats = int(times)
    wide = (*value.shape[: at + 1], repeats, *value.shape[at + 1 :])
    dims = tuple(a for a in range(len(wide)) if a != at + 1)
    spread = value.trace.emit("broadcast", [value], [(value.kind, wide)], (), dims=dims)[0]
    return reshape(spread, (*value.shape[:at], value.shape[at] * repeats, *value.shape[at + 1 :]))


def _times(repeats: Any, size: int, axis: int) -> np.ndarray[Any, Any]:
    """Return how often elements are repeated: one number, or one for each of ``size``."""
    if isinstance(repeats, Tensor):
        raise TraceError(
            "repeats must be known while tracing, as the shape of the result depends on them; "
            "pass them in static_argnames"
        )
    times = np.asarray(repeats)
    if times.dtype.kind not in "iub":
        raise TypeError(f"repeats must be integers, got {repeats!r}")
    times = times.astype(np.int64)
    if times.ndim > 1 or (times.ndim and times.size not in (1, size)):
        shown = f"{times.size} repeats" if times.ndim == 1 else f"repeats of {times.ndim} axes"
        raise ShapeError(f"{shown} for {size} elements along axis {axis}")
    if times.size and times.min() < 0:
        raise ValueError(f"repeats cannot be negative, got {int(times.min())}")
    return times.reshape(()) if times.size == 1 and size != 1 else times


def pad(x: Any, /, pad_width: Any, *, constant_values: Any = 0) -> Tensor:
    """Return ``x`` with a constant around it.

    pad_width : elements before and after: one int for all, one pair for all, or a pair per axis
    """
    value = lift(x)
    pairs = np.broadcast_to(np.asarray(pad_width, dtype=np.int64), (value.ndim, 2))
    low, high = (tuple(int(n) for n in pairs[:, i]) for i in (0, 1))
    if min((*low, *high), default=0) < 0:
        raise ValueError("pad_width cannot be negative; slice instead")
    fill = constant_values
    fill = full((), fill, value.kind) if is_number(fill) else lift(fill)
    shape = tuple(a + n + b for a, n, b in zip(low, value.shape, high, strict=True))
    return value.trace.emit("pad", [value, fill], [(value.kind, shape)], (), low=low, high=high)[0]


def ravel(x: Any, /) -> Tensor:
    """Return the elements of ``x``, row by row, along one axis."""
    return reshape(x, (lift(x).size,))


def flatten(x: Any, /) -> Tensor:
    """Return a copy of the elements of ``x``, row by row, along one axis."""
    return reshape(fresh(lift(x)), (lift(x).size,))
