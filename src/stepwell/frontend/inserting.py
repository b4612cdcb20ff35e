"""Joining and splitting by NumPy's names: `append`, `insert`, `delete`, `block`, `dstack` etc."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stepwell.frontend import joining as j
from stepwell.frontend import manipulation as m
from stepwell.frontend.checks import check_fits
from stepwell.frontend.creation import asarray
from stepwell.frontend.elementwise import check_axis
from stepwell.frontend.indexing import take
from stepwell.frontend.known import is_known
from stepwell.frontend.masked import Masked
from stepwell.frontend.operands import array, concatenate, known, split
from stepwell.frontend.promotion import BOOL, fresh, full
from stepwell.frontend.runtime_bounds import Window
from stepwell.frontend.table import public
from stepwell.frontend.tensor import Tensor


@public()
def append(arr: Any, values: Any, axis: int | None = None) -> Tensor:
    """`numpy.append`."""
    if axis is None:
        return concatenate([m.ravel(array(arr)), m.ravel(array(values))], 0)
    return concatenate([array(arr), array(values)], axis)


@public()
def atleast_3d(*arys: Any) -> Any:
    """`numpy.atleast_3d`."""
    found = [_with_three_axes(array(a)) for a in arys]
    return found[0] if len(found) == 1 else tuple(found)


def _with_three_axes(value: Tensor) -> Tensor:
    places = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}.get(value.ndim)
    return value if places is None else m.expand_dims(value, places)


@public()
def dstack(tup: Any, *, dtype: Any = None) -> Tensor:
    """`numpy.dstack`."""
    return concatenate([_with_three_axes(array(a)) for a in tup], 2, dtype)


@public()
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """`numpy.array_split`: parts may differ in size by one."""
    value = array(ary)
    if not isinstance(indices_or_sections, int | np.integer):
        return j.split(value, _cuts(indices_or_sections), axis)
    parts = int(indices_or_sections)
    if parts <= 0:
        raise ValueError("number sections must be larger than 0.")
    size, more = divmod(value.shape[check_axis(axis, value.ndim)], parts)
    sizes = [size + (i < more) for i in range(parts)]
    return j.split(value, np.cumsum(sizes[:-1]).tolist(), axis)


def _cuts(indices: Any) -> list[int]:
    return [int(i) for i in known(indices, "where an array is cut must be known while tracing")]


def _split(name: str, least: int, of: Any) -> Any:
    def cut(ary: Any, indices_or_sections: Any) -> list[Tensor]:
        value = array(ary)
        if value.ndim < least:
            raise ValueError(f"{name} only works on arrays of {least} or more dimensions")
        return split(value, indices_or_sections, of(value))

    cut.__name__ = cut.__qualname__ = name
    cut.__doc__ = f"`numpy.{name}`."
    return public(name)(cut)


hsplit = _split("hsplit", 1, lambda value: 1 if value.ndim > 1 else 0)
vsplit = _split("vsplit", 2, lambda value: 0)
dsplit = _split("dsplit", 3, lambda value: 2)


def _positions(obj: Any, size: int, name: str) -> np.ndarray[Any, Any]:
    """Return the positions that ``obj``, an int, a slice, a mask or a list of ints, selects."""
    if isinstance(obj, slice):
        return np.arange(size)[obj]
    places = known(obj, f"the places of numpy.{name} decide a shape: they must be known")
    if places.dtype == bool:
        if places.shape != (size,):
            raise ValueError(
                f"boolean array argument obj to {name} must be one dimensional and match the axis "
                f"length of {size}"
            )
        return np.flatnonzero(places)
    if places.size == 0:
        return places.astype(np.intp)
    if places.dtype.kind not in "iu":
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    return places


def _along(arr: Any, axis: int | None) -> tuple[Tensor, int]:
    value = array(arr)
    if axis is None:
        return m.ravel(value), 0
    return value, check_axis(axis, value.ndim)


@public()
def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    """`numpy.delete`; where only the run knows the positions, the result is as of a mask.

    raises IndexError : a position is out of range
    """
    value, at = _along(arr, axis)
    size = value.shape[at]
    if isinstance(obj, Window | Masked) or (isinstance(obj, Tensor) and not is_known(obj)):
        stays = full((size,), True, BOOL)
        stays[obj] = False
        return value[(*(slice(None),) * at, stays)]
    places = _positions(obj, size, "delete").reshape(-1)
    for place in places:
        if not -size <= place < size:
            raise IndexError(f"index {place} is out of bounds for axis {at} with size {size}")
    stay = np.delete(np.arange(size), places)
    return _picked(value, stay, at)


def _picked(value: Tensor, places: np.ndarray[Any, Any], axis: int) -> Tensor:
    """Return the slices at ``places``: consecutive ones as one slice."""
    runs = np.split(places, np.flatnonzero(np.diff(places) != 1) + 1)
    if len(runs) > 4:
        return take(value, places, axis=axis)
    head = (slice(None),) * axis
    parts = [value[(*head, slice(int(r[0]), int(r[-1]) + 1))] for r in runs if r.size]
    if not parts:
        return fresh(value[(*head, slice(0, 0))])
    return fresh(parts[0]) if len(parts) == 1 else j.concat(parts, axis=axis)


@public()
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Tensor:
    """`numpy.insert`; the positions must be known while tracing.

    raises IndexError : a position is out of range
    """
    value, at = _along(arr, axis)
    size = value.shape[at]
    given = _positions(obj, size, "insert")
    single = given.ndim == 0 or (given.size == 1 and not isinstance(obj, slice))
    places = given.reshape(-1)
    for place in places:
        if not -size <= place <= size:
            raise IndexError(f"index {place} is out of bounds for axis {at} with size {size}")
    places = np.where(places < 0, places + size, places)
    check_fits(values, value.kind)
    new = asarray(values, value.kind)
    count = len(places)
    if single:  # insert all values at one position
        new = m.reshape(new, (*(1,) * max(value.ndim - new.ndim, 0), *new.shape))
        if given.ndim == 0:
            new = m.moveaxis(new, 0, at)
        count = new.shape[at]
        places = np.repeat(places, count)
    shape = tuple(count if a == at else n for a, n in enumerate(value.shape))
    new = m.broadcast_to(new, shape)
    order = np.argsort(places, kind="stable")
    where = places[order] + np.arange(count)
    numbers = np.empty(size + count, np.int64)
    stay = np.ones(size + count, bool)
    stay[where] = False
    numbers[where] = size + order
    numbers[stay] = np.arange(size)
    if not value.ndim:
        return new
    return _from_two(value, new, numbers, at)


def _from_two(value: Tensor, new: Tensor, numbers: np.ndarray[Any, Any], axis: int) -> Tensor:
    """Return slices of two arrays by ``numbers``, where those of the second follow the first's."""
    size = value.shape[axis]
    ends = (np.diff(numbers) != 1) | (numbers[1:] == size)
    runs = np.split(numbers, np.flatnonzero(ends) + 1)
    if len(runs) > 8:
        return take(j.concat([value, new], axis=axis), numbers, axis=axis)
    head = (slice(None),) * axis
    parts: list[Tensor] = []
    for run in runs:
        source, first = (value, 0) if run.size and run[0] < size else (new, size)
        if run.size:
            parts.append(source[(*head, slice(int(run[0]) - first, int(run[-1]) + 1 - first))])
    if not parts:
        return fresh(value)
    return fresh(parts[0]) if len(parts) == 1 else j.concat(parts, axis=axis)


@public()
def block(arrays: Any) -> Tensor:
    """`numpy.block`."""
    depth = _depth(arrays)
    leaves = [array(a) for a in _leaves(arrays)]
    rank = max(depth, *(v.ndim for v in leaves))
    return fresh(_block(arrays, depth, rank))


def _depth(arrays: Any) -> int:
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        raise ValueError("List depths are mismatched: a list is empty")
    depths = {_depth(a) for a in arrays}
    if len(depths) > 1:
        raise ValueError("List depths are mismatched.")
    return 1 + depths.pop()


def _leaves(arrays: Any) -> Sequence[Any]:
    return [v for a in arrays for v in _leaves(a)] if isinstance(arrays, list) else [arrays]


def _block(arrays: Any, depth: int, rank: int) -> Tensor:
    if not isinstance(arrays, list):
        value = array(arrays)
        return m.reshape(value, (*(1,) * (rank - value.ndim), *value.shape))
    return concatenate([_block(a, depth - 1, rank) for a in arrays], -depth)


@public()
def resize(a: Any, new_shape: Any) -> Tensor:
    """`numpy.resize`: repeat the elements until the shape is full."""
    flat = m.ravel(array(a))
    sizes = np.broadcast_shapes(
        new_shape if isinstance(new_shape, tuple) else tuple(np.atleast_1d(new_shape).tolist())
    )
    n = int(np.prod(sizes, dtype=np.int64))
    if not n or not flat.size:
        return full(sizes, 0, flat.kind)
    times = -(-n // flat.size)
    return fresh(m.reshape(j.tile(flat, times)[:n], sizes))


@public()
def rollaxis(a: Any, axis: int, start: int = 0) -> Tensor:
    """`numpy.rollaxis`."""
    value = array(a)
    at = check_axis(axis, value.ndim)
    if not -value.ndim <= start <= value.ndim:
        raise np.exceptions.AxisError(f"start {start} is out of range for {value.ndim} axes")
    start += value.ndim if start < 0 else 0
    return m.moveaxis(value, at, start - 1 if at < start else start)
