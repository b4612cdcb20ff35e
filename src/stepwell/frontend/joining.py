"""Joining and splitting arrays; repeating elements, and padding."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

from stepwell.core.shapes import ShapeError, show
from stepwell.frontend.elementwise import check_axis
from stepwell.frontend.errors import TraceError
from stepwell.frontend.known import content, is_known
from stepwell.frontend.manipulation import (
    atleast_1d,
    atleast_2d,
    expand_dims,
    moveaxis,
    ravel,
    reshape,
    sizes_of,
)
from stepwell.frontend.promotion import (
    as_dtype,
    cast,
    fresh,
    full,
    is_number,
    lift,
    same_dtype,
    stored_number,
    wrapped_number,
)
from stepwell.frontend.table import public
from stepwell.frontend.tensor import Tensor


@public("concatenate", "concat")
def concat(
    arrays: Sequence[Any], axis: int | None = 0, dtype: Any = None, casting: str = "same_kind"
) -> Tensor:
    """Concatenate arrays along an existing axis; None flattens them first."""
    given = list(arrays)
    values = same_dtype(*given)
    if not values:
        raise ValueError("need at least one array to concatenate")
    if dtype is not None:
        kind = as_dtype(dtype)
        for value in values:
            if not np.can_cast(value.dtype, kind.numpy, casting):  # pyright: ignore
                raise TypeError(
                    f"Cannot cast array data from {value.dtype!r} to {kind.numpy!r} according to "
                    f"the rule '{casting}'"
                )
        values = [cast(v, kind) for v in values]
    if axis is None:
        return concat([reshape(v, -1) for v in values])
    first = values[0]
    if not all(v.ndim for v in values):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    at = check_axis(axis, first.ndim)
    for v in values[1:]:
        rest = [n for a, n in enumerate(v.shape) if a != at]
        if v.ndim != first.ndim or rest != [n for a, n in enumerate(first.shape) if a != at]:
            raise ShapeError(
                f"cannot join [{show(first.shape)}] and [{show(v.shape)}] along axis {at}"
            )
    size = sum(v.shape[at] for v in values)
    shape = (*first.shape[:at], size, *first.shape[at + 1 :])
    return first.graph.emit("concat", values, [(first.kind, shape)], (), axis=at)[0]


@public()
def stack(arrays: Sequence[Any], axis: int = 0, dtype: Any = None) -> Tensor:
    """Stack arrays of one shape along a new axis."""
    values = same_dtype(*arrays)
    if not values:
        raise ValueError("need at least one array to stack")
    for v in values[1:]:
        if v.shape != values[0].shape:
            shapes = f"[{show(values[0].shape)}] and [{show(v.shape)}]"
            raise ShapeError(f"cannot stack {shapes}: arrays must have one shape")
    return concat([expand_dims(v, axis) for v in values], axis, dtype)


@public()
def unstack(x: Any, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Return the slices of ``x`` along ``axis``, which is dropped."""
    value = lift(x)
    if not value.ndim:
        raise ValueError("Input array must be at least 1-d.")
    return tuple(moveaxis(value, axis, 0))


@public()
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Split ``ary`` along ``axis`` into equal parts, or before each index of a list."""
    value = lift(ary)
    at = check_axis(axis, value.ndim)
    size = value.shape[at]
    if isinstance(indices_or_sections, int | np.integer):
        parts = int(indices_or_sections)
        if size % parts:
            raise ShapeError(f"cannot cut {size} elements in {parts} equal parts")
        cuts = [size // parts * i for i in range(parts + 1)]
    else:
        cuts = [0, *indices_or_sections, size]
    head = (slice(None),) * at
    return [value[(*head, slice(a, b))] for a, b in pairwise(cuts)]


@public()
def roll(a: Any, shift: Any, axis: Any = None) -> Tensor:
    """Return ``a`` rotated by ``shift`` positions along ``axis``.

    shift, axis : an int, or one per rotated axis. Without an axis, rotate the flattened array
    """
    value = fresh(lift(a))
    if axis is None:
        return reshape(roll(reshape(value, (-1,)), shift, 0), value.shape)
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


@public()
def tile(A: Any, reps: Any) -> Tensor:
    """Return ``A`` repeated ``reps[i]`` times along axis i."""
    value, times = fresh(lift(A)), sizes_of(reps)
    if min(times, default=0) < 0:
        raise ValueError(f"repetitions cannot be negative, got {times}")
    rank = max(value.ndim, len(times))
    shape = (1,) * (rank - value.ndim) + value.shape
    times = (1,) * (rank - len(times)) + times
    wide = tuple(n for pair in zip(times, shape, strict=True) for n in pair)
    dims = tuple(2 * i + 1 for i in range(rank))
    value = reshape(value, shape)
    spread = value.graph.emit("broadcast", [value], [(value.kind, wide)], (), dims=dims)[0]
    return reshape(spread, tuple(t * n for t, n in zip(times, shape, strict=True)))


@public(method=True)
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Tensor:
    """Return ``a`` with each element repeated along ``axis``; None flattens it first.

    repeats : an int, or one for each element; known while tracing, as the shape depends on it
    """
    value = fresh(ravel(a) if axis is None or not lift(a).ndim else lift(a))
    at = check_axis(axis or 0, value.ndim)
    times = _times(repeats, value.shape[at], at)
    if times.ndim:
        index = np.repeat(np.arange(value.shape[at]), times)
        return Tensor.operators["take"](value, index, axis=at)
    repeats = int(times)
    wide = (*value.shape[: at + 1], repeats, *value.shape[at + 1 :])
    dims = tuple(a for a in range(len(wide)) if a != at + 1)
    spread = value.graph.emit("broadcast", [value], [(value.kind, wide)], (), dims=dims)[0]
    return reshape(spread, (*value.shape[:at], value.shape[at] * repeats, *value.shape[at + 1 :]))


def _times(repeats: Any, size: int, axis: int) -> np.ndarray[Any, Any]:
    """Return the repeat count of each of ``size`` elements, or one number for all."""
    if is_known(repeats):
        repeats = content(repeats)
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


@public()
def pad(
    array: Any,
    pad_width: Any,
    mode: str = "constant",
    constant_values: Any = 0,
    stat_length: Any = None,
    end_values: Any = None,
    reflect_type: Any = None,
) -> Tensor:
    """Return ``array`` padded with a constant, or as ``mode`` says.

    pad_width : elements before and after: one int for all, one pair for all, or a pair per axis
    mode : one of NumPy's, but not a function
    """
    if callable(mode):
        raise TraceError("numpy.pad: a function as mode is not known to Stepwell")
    value = lift(array)
    pairs = np.broadcast_to(np.asarray(pad_width, dtype=np.int64), (value.ndim, 2))
    low, high = (tuple(int(n) for n in pairs[:, i]) for i in (0, 1))
    if min((*low, *high), default=0) < 0:
        raise ValueError("pad_width cannot be negative; slice instead")
    given = {"stat_length": stat_length, "end_values": end_values, "reflect_type": reflect_type}
    more = {key: value for key, value in given.items() if value is not None}
    if mode != "constant":
        return import_module("stepwell.frontend.padding").padded(value, pairs, mode, more)
    if more:
        raise ValueError(f"unsupported keyword arguments for mode 'constant': {set(more)}")
    if not isinstance(constant_values, Tensor) and np.ndim(constant_values):
        return _between_constants(value, pairs, np.asarray(constant_values))
    fill: Any = constant_values
    if is_number(fill):
        stored = wrapped_number if isinstance(fill, int) else stored_number
        fill = full((), stored(fill, value.kind), value.kind)
    fill = lift(fill)
    shape = tuple(a + n + b for a, n, b in zip(low, value.shape, high, strict=True))
    return value.graph.emit("pad", [value, fill], [(value.kind, shape)], (), low=low, high=high)[0]


def _between_constants(value: Tensor, pairs: Any, constants: Any) -> Tensor:
    """Pad axis by axis with separate constants at both ends."""
    each = np.broadcast_to(constants, (value.ndim, 2)).tolist()
    for axis, (widths, fills) in enumerate(zip(pairs.tolist(), each, strict=True)):
        for end in (0, 1):
            width = [(0, 0)] * value.ndim
            width[axis] = (0, widths[1]) if end else (widths[0], 0)
            value = pad(value, width, constant_values=fills[end])
    return value


@public()
def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
    """Concatenate arrays vertically."""
    return concat([atleast_2d(a) for a in tup], 0, dtype, casting)


@public()
def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
    """Concatenate arrays horizontally; vectors end to end."""
    values = [atleast_1d(a) for a in tup]
    return concat(values, 0 if values and values[0].ndim == 1 else 1, dtype, casting)


@public()
def column_stack(tup: Any) -> Tensor:
    """Stack vectors as columns; a matrix contributes its columns."""
    values = [lift(a) for a in tup]
    return concat([reshape(v, (-1, 1)) if v.ndim < 2 else v for v in values], 1)
