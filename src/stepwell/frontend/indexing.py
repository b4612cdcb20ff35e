"""Indexing: ``x[...]``, ``x.at[...]`` and taking by index.

Indices whose values are known while tracing follow NumPy: negative ones count from the end, and
one out of range is an IndexError. Traced indices count from the end too; out of range, a read
clamps the index and a write is dropped, as in JAX. Slices follow Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from stepwell.core.dtypes import DTYPES
from stepwell.core.shapes import ShapeError
from stepwell.core.shapes.indexing import dynamic_slice as sliced_shape
from stepwell.core.shapes.indexing import dynamic_update_slice as updated_shape
from stepwell.frontend import elementwise as e
from stepwell.frontend.creation import iota
from stepwell.frontend.elementwise import check_axis
from stepwell.frontend.manipulation import broadcast_to, permute_dims, reshape
from stepwell.frontend.promotion import BOOL, INTEGER, as_dtype, cast, full, is_number, lift
from stepwell.frontend.runtime_starts import (
    is_block,
    is_written_as_block,
    row_of,
    shape_at,
    taken_out,
    write_block,
)
from stepwell.frontend.subscripts import BLOCK, Subscript, as_index, from_front, spread, subscript
from stepwell.frontend.table import public
from stepwell.frontend.tensor import Tensor


def read_at(x: Tensor, place: Subscript) -> Tensor:
    """Return ``x`` at a parsed index."""
    if is_block(place):
        row, rest = row_of(reshape(x, place.shape), place)
        value = _slice(row, rest)
        return _ordered(reshape(value, taken_out(value.shape, place.fancy)), place, 0)
    value = _slice(reshape(x, place.shape), place.parts)
    fancy, block = place.fancy, place.block() if place.fancy else []
    if fancy:
        value = gather(value, block, tuple(fancy))
    return _ordered(value, place, block[0].ndim if block else 0)


def _ordered(value: Tensor, place: Subscript, rank: int) -> Tensor:
    """Put the axes of a gathered value in order; ``rank`` of them are from index arrays.

    The index arrays' axes replace the first axis that an array indexes. Each int of the index
    left an axis of size 1.
    """
    fancy = place.fancy
    kept = [a for a in range(len(place.parts)) if a not in fancy]
    if not rank:  # slices stay in order
        known = dict(zip(kept, value.shape, strict=True))
        layout = [item for item in place.layout if item != BLOCK]
        return reshape(value, tuple(1 if item is None else known[item] for item in layout))
    order: list[Any] = list(kept)
    order.insert(sum(a < fancy[0] for a in kept), BLOCK)
    first: dict[Any, int] = {}
    for item in order:
        first[item] = sum(rank if i == BLOCK else 1 for i in order[: order.index(item)])
    wanted = [item for item in place.layout if item is not None]
    wanted += [a for a in kept if a not in wanted]  # the axes of ints, dropped below
    axes = [first[i] + k for i in wanted for k in range(rank if i == BLOCK else 1)]
    value = permute_dims(value, axes)
    shape: list[int] = []
    sizes = iter(value.shape)
    for item in place.layout:
        shape += [1] if item is None else [next(sizes) for _ in range(rank if item == BLOCK else 1)]
    return reshape(value, tuple(shape))


def _slice(x: Tensor, axes: list[Any]) -> Tensor:
    """Apply the slices and ints of an index; each int leaves an axis of size 1."""
    starts, limits, strides, flipped = [], [], [], []
    for a, (part, size) in enumerate(zip(axes, x.shape, strict=True)):
        if isinstance(part, int):
            part = slice(part, part + 1)
        places = range(size)[part] if isinstance(part, slice) else range(size)
        if places.step < 0:
            places = places[::-1]
            flipped.append(a)
        starts.append(places.start if places else 0)
        limits.append(places[-1] + 1 if places else 0)
        strides.append(places.step)
    shape = tuple(-(-(b - a) // s) for a, b, s in zip(starts, limits, strides, strict=True))
    result = x
    if (tuple(starts), tuple(limits)) != ((0,) * x.ndim, x.shape) or set(strides) - {1}:
        result = x.graph.emit(
            "slice",
            [x],
            [(x.kind, shape)],
            (),
            starts=tuple(starts),
            limits=tuple(limits),
            strides=tuple(strides),
        )[0]
    if flipped:
        result = x.graph.emit(
            "reverse", [result], [(x.kind, result.shape)], (), axes=tuple(flipped)
        )[0]
    return result


def gather(x: Tensor, indices: list[Tensor], axes: tuple[int, ...]) -> Tensor:
    """Return the elements of ``x`` at ``indices`` along ``axes``.

    The axes of the indices replace the first of ``axes``.
    """
    rest = [n for a, n in enumerate(x.shape) if a not in axes]
    at = axes[0]
    shape = (*rest[:at], *indices[0].shape, *rest[at:])
    return x.graph.emit("gather", [x, *indices], [(x.kind, shape)], (), axes=axes)[0]


@public(method=True)
def take(a: Any, indices: Any, axis: int | None = None, mode: str = "raise") -> Tensor:
    """Return the slices of ``a`` along ``axis`` at ``indices``; None flattens ``a`` first.

    mode : how indices out of range are treated: 'clip' clamps them (negative ones to 0), 'wrap'
        reduces them modulo the size, 'raise' treats them as ``a[...]`` does
    """
    value = reshape(a, -1) if axis is None else lift(a)
    at = check_axis(axis or 0, value.ndim)
    size = value.shape[at]
    if mode not in ("raise", "clip", "wrap"):
        raise ValueError(f"mode must be 'clip', 'wrap' or 'raise', got {mode!r}")
    if mode == "raise":
        return gather(value, [_nonempty(as_index(indices, size, at), size, at)], (at,))
    index = lift(np.asarray(indices) if isinstance(indices, list | tuple | int) else indices)
    wide = cast(index, INTEGER) if index.kind.name != "ui64" else index
    if math.prod(n for a, n in enumerate(value.shape) if a != at):
        _nonempty(index, size, at)
    inside = (
        e.remainder(wide, max(size, 1)) if mode == "wrap" else e.clip(wide, 0, max(size - 1, 0))
    )
    return gather(value, [cast(inside, INTEGER)], (at,))


def _nonempty(index: Tensor, size: int, axis: int) -> Tensor:
    if size == 0 and index.size:
        raise IndexError(f"axis {axis} has size 0: there is nothing to read")
    return index


@public()
def take_along_axis(arr: Any, indices: Any, axis: int = -1) -> Tensor:
    """Return ``arr[..., indices[..., k, ...], ...]`` along ``axis``; all other axes agree."""
    return taken_along(arr, indices, axis, checked=True)


def taken_along(arr: Any, indices: Any, axis: int = -1, checked: bool = False) -> Tensor:
    """Do `take_along_axis`; unless ``checked``, the indices are known to be in range."""
    value = lift(arr)
    at = check_axis(axis, value.ndim)
    size = value.shape[at]
    index = _nonempty(as_index(indices, size, at, checked), size, at)
    if index.ndim != value.ndim:
        raise ShapeError(f"indices need {value.ndim} axes, got {index.ndim}")
    sizes = zip(index.shape, value.shape, strict=True)
    shape = tuple(n if a == at or m == 1 else m for a, (n, m) in enumerate(sizes))
    own = tuple(size if a == at else n for a, n in enumerate(shape))
    value, index = broadcast_to(value, own), cast(broadcast_to(index, shape), INTEGER)
    places = [index if a == at else iota(shape, a, INTEGER) for a in range(value.ndim)]
    return gather(value, places, tuple(range(value.ndim)))


def _positions(place: Subscript) -> Tensor:
    """Return the flat position in the array of each indexed element, -1 if out of range."""
    block = place.block() if place.fancy else []
    sizes = _axis_sizes(place, block[0].shape if block else ())
    strides = [math.prod(place.shape[a + 1 :]) for a in range(len(place.shape))]
    shape = tuple(n for size in sizes for n in size)
    at = [len([n for size in sizes[:k] for n in size]) for k in range(len(sizes))]
    numbers, inside = full(shape, _offset(place, strides), INTEGER), None
    for item, first in zip(place.layout, at, strict=True):
        if item == BLOCK:
            for axis, index in zip(place.fancy, block, strict=True):
                wide = spread(cast(index, INTEGER), shape, first)
                size = place.shape[axis]
                fits = e.logical_and(e.greater_equal(wide, 0), e.less(wide, size))
                inside = fits if inside is None else e.logical_and(inside, fits)
                numbers = e.add(numbers, e.multiply(wide, strides[axis]))
        elif item is not None:
            step = range(place.shape[item])[place.parts[item]].step
            numbers = e.add(numbers, e.multiply(iota(shape, first, INTEGER), step * strides[item]))
    return numbers if inside is None else e.where(inside, numbers, -1)


def element_numbers(x: Tensor, index: Any) -> Tensor:
    """Return the row-major positions of the elements of ``x[index]``."""
    return _positions(subscript(x, index))


def _axis_sizes(place: Subscript, block: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the result's sizes for each item of an index's layout."""

    def sizes(item: Any) -> tuple[int, ...]:
        if item is None:
            return (1,)
        return block if item == BLOCK else (len(range(place.shape[item])[place.parts[item]]),)

    return [sizes(item) for item in place.layout]


def _offset(place: Subscript, strides: list[int]) -> int:
    """Return the flat position of the first element of an index of ints and slices."""
    offset = 0
    for part, size, stride in zip(place.parts, place.shape, strides, strict=True):
        if isinstance(part, int):
            offset += part * stride
        elif isinstance(part, slice):
            offset += range(size)[part].start * stride
    return offset


class _At:
    """The indexer ``x.at``."""

    def __init__(self, x: Tensor) -> None:
        self.x = x

    def __getitem__(self, index: Any) -> _Place:
        return _Place(self.x, index)


class _Place:
    """``x.at[index]``: its methods return updated copies of ``x``.

    ``mode`` 'drop', 'fill' and None drop updates whose traced index is out of range; 'clip' clamps
    the index; 'promise_in_bounds' asserts that every index is in range.
    """

    def __init__(self, x: Tensor, index: Any) -> None:
        self.x = x
        self.index = index

    def __repr__(self) -> str:
        return f"{self.x!r}.at[{self.index!r}]"

    def set(self, values: Any, *, mode: str | None = None) -> Tensor:
        """Return ``x`` with the elements replaced by ``values``; the last duplicate index wins."""
        return self._scatter("scatter", values, mode)

    def add(self, values: Any, *, mode: str | None = None) -> Tensor:
        """Return ``x`` with ``values`` added to the elements, once for each duplicate index."""
        return self._scatter("scatter_add", values, mode)

    def multiply(self, values: Any, *, mode: str | None = None) -> Tensor:
        """Return ``x`` with the elements multiplied by ``values``."""
        return self._scatter("scatter_mul", values, mode)

    def min(self, values: Any, *, mode: str | None = None) -> Tensor:
        """Return ``x`` with the minimum of the elements and ``values``."""
        return self._scatter("scatter_min", values, mode)

    def max(self, values: Any, *, mode: str | None = None) -> Tensor:
        """Return ``x`` with the maximum of the elements and ``values``."""
        return self._scatter("scatter_max", values, mode)

    def apply(self, function: Callable[[Tensor], Any], *, mode: str | None = None) -> Tensor:
        """Return ``x`` with ``function`` applied to the elements, once for duplicates."""
        return self._scatter("scatter", function(self.get()), mode)

    def get(self, *, mode: str | None = None, fill_value: Any = None) -> Tensor:
        """Return ``x[index]``.

        mode : 'fill' returns ``fill_value`` for an index out of range, by default NaN, the least
            integer, the largest unsigned integer, or True; the other modes clamp the index
        """
        place = self._subscript(mode)
        found = read_at(self.x, place)
        if mode != "fill":
            return found
        kind = self.x.kind
        if fill_value is None:
            least = kind.kind == "signed" and np.iinfo(kind.numpy).min
            most = kind.kind == "unsigned" and np.iinfo(kind.numpy).max
            other = True if kind is BOOL else math.nan
            fill_value = int(least or most) if least or most else other
        inside = e.greater_equal(_positions(place), 0)
        return e.where(inside, found, full(found.shape, fill_value, kind))

    def _subscript(self, mode: str | None) -> Subscript:
        if mode not in (None, "drop", "fill", "clip", "promise_in_bounds"):
            raise ValueError(
                f"mode must be 'drop', 'fill', 'clip' or 'promise_in_bounds', got {mode!r}"
            )
        place = subscript(self.x, self.index, checked=False)
        if mode == "clip":
            for axis in place.fancy:
                if isinstance(part := place.parts[axis], Tensor):
                    place.parts[axis] = e.clip(part, 0, max(place.shape[axis] - 1, 0))
        return place

    def _scatter(self, op: str, value: Any, mode: str | None = None) -> Tensor:
        if self.x.kind is BOOL and op != "scatter":
            return self._of_booleans(op, value, mode)
        updates = cast(lift(value, self.x.kind), self.x.kind)
        place = self._subscript(mode)
        if place.shape != self.x.shape or not is_written_as_block(place):
            return _scatter_numbered(self.x, place, updates, op)
        updates = broadcast_to(updates, shape_at(place))
        if op != "scatter":
            updates = _COMBINE[op](read_at(self.x, place), updates)
        return scatter_at(self.x, place, updates)

    def _of_booleans(self, op: str, value: Any, mode: str | None) -> Tensor:
        """Update booleans: their sum is a logical or, their product a logical and."""
        byte_op = {"scatter_add": "scatter_max", "scatter_mul": "scatter_min"}.get(op, op)
        byte = DTYPES["i8"]
        inner = _Place(cast(self.x, byte), self.index)
        return cast(inner._scatter(byte_op, cast(lift(value, BOOL), BOOL), mode), BOOL)


_COMBINE: Mapping[str, Callable[[Any, Any], Tensor]] = {
    "scatter_add": e.add,
    "scatter_mul": e.multiply,
    "scatter_min": e.minimum,
    "scatter_max": e.maximum,
}
"""The operation that combines old and new elements where the index has no duplicates."""


def scatter_at(x: Tensor, place: Subscript, value: Tensor) -> Tensor:
    """Return ``x`` with ``value``, in the index's shape, at ``place``.

    Updates whose traced index is out of range are dropped.
    """
    if is_written_as_block(place):
        return write_block(x, place, value)
    whole = [range(n)[p] == range(n) if isinstance(p, slice) else False for p, n in _axes_of(place)]
    if not all(w or not isinstance(p, slice) for w, p in zip(whole, place.parts, strict=True)):
        return _scatter_numbered(x, place, value)
    axes = tuple(a for a, w in enumerate(whole) if not w)
    if not axes:
        return reshape(value, x.shape)
    rest = [a for a in range(x.ndim) if a not in axes]
    block = place.block() if place.fancy else []
    shape = block[0].shape if block else ()
    known = dict(zip(place.fancy, block, strict=True))
    indices = [known[a] if a in known else full(shape, place.parts[a], INTEGER) for a in axes]
    order: list[Any] = list(rest)
    order.insert(sum(a < axes[0] for a in rest), BLOCK)
    first: dict[Any, int] = {}
    at = 0
    for item in place.layout:
        if item is not None:
            first[item] = at
        at += len(shape) if item == BLOCK else 1
    axes_of_value = [
        first[i] + k for i in order if i in first for k in range(len(shape) if i == BLOCK else 1)
    ]
    axes_of_value += [a for a in range(value.ndim) if a not in axes_of_value]
    value = permute_dims(value, axes_of_value)
    value = reshape(value, value.shape[: len(rest) + len(shape)])
    return x.graph.emit("scatter", [x, value, *indices], [(x.kind, x.shape)], (), axes=axes)[0]


def _axes_of(place: Subscript) -> list[tuple[Any, int]]:
    return list(zip(place.parts, place.shape, strict=True))


def _scatter_numbered(x: Tensor, place: Subscript, value: Tensor, op: str = "scatter") -> Tensor:
    """Scatter into the flat array, at the positions of the indexed elements."""
    places = _positions(place)
    updates = broadcast_to(value, places.shape)
    flat, where = reshape(x, (x.size,)), reshape(places, (places.size,))
    operands = [flat, reshape(updates, (updates.size,)), where]
    changed = x.graph.emit(op, operands, [(x.kind, flat.shape)], (), axes=(0,))[0]
    return reshape(changed, x.shape)


def at(x: Tensor) -> _At:
    """Return the indexer ``x.at``."""
    return _At(x)


def _starts(starts: Any, shape: tuple[int, ...]) -> list[Tensor]:
    """Return a block's start along each axis, negative starts counted from the end."""
    given = list(starts)
    if len(given) != len(shape):
        raise ShapeError(f"one start is needed for each of {len(shape)} axes, got {len(given)}")
    return [_start(s, n) for s, n in zip(given, shape, strict=True)]


def _start(start: Any, size: int) -> Tensor:
    if is_number(start):
        if not isinstance(start, int):
            raise IndexError(f"a start must be an integer, got {start}")
        return lift(max(start + size if start < 0 else min(start, size), 0))
    value = lift(start)
    if value.kind.kind not in ("signed", "unsigned") or value.shape:
        raise IndexError(f"a start must be an integer without axes, got {value!r}")
    return cast(from_front(value, size), as_dtype("i64"))


def dynamic_slice(x: Any, starts: Any, sizes: Any, /) -> Tensor:
    """Return the block of ``sizes`` that begins at ``starts``.

    x : an array of any shape and dtype
    starts : an integer for each axis, traced or not; negative ones count from the end
    sizes : an int for each axis, known while tracing
    returns : shape ``sizes``, the dtype of ``x``. A start is clamped so that the block lies inside
    raises ShapeError : ``sizes`` exceed the shape of ``x``, or there is not one for each axis
    source : `jax.lax.dynamic_slice`

    >>> import numpy as np, stepwell as sw
    >>> @sw.jit
    ... def pair(x, i):
    ...     return sw.lax.dynamic_slice(x, (i,), (2,))
    >>> pair(np.arange(5), 1), pair(np.arange(5), 9)
    (array([1, 2]), array([3, 4]))
    """
    value = lift(x)
    sizes = tuple(int(n) for n in sizes)
    first = _starts(starts, value.shape)
    axes = tuple(range(value.ndim))
    if not axes:
        return value
    shape = sliced_shape(value.shape, axes, sizes, len(first))
    return value.graph.emit(
        "dynamic_slice", [value, *first], [(value.kind, shape)], (), axes=axes, sizes=sizes
    )[0]


def dynamic_update_slice(x: Any, update: Any, starts: Any, /) -> Tensor:
    """Return ``x`` with ``update`` in place of the block that begins at ``starts``.

    x : an array of any shape and dtype
    update : a block with as many axes, converted to its dtype
    starts : an integer for each axis, as in `dynamic_slice`
    raises ShapeError : the block is larger than ``x``, or has other axes
    source : `jax.lax.dynamic_update_slice`

    >>> import numpy as np, stepwell as sw
    >>> @sw.jit
    ... def put(x, i):
    ...     return sw.lax.dynamic_update_slice(x, np.zeros(2, int), (i,))
    >>> put(np.arange(5), 1)
    array([0, 0, 0, 3, 4])
    """
    value = lift(x)
    block = cast(lift(update, value.kind), value.kind)
    first = _starts(starts, value.shape)
    axes = tuple(range(value.ndim))
    updated_shape(value.shape, block.shape, axes, len(first))
    if not axes:
        return block
    return value.graph.emit(
        "dynamic_update_slice", [value, block, *first], [(value.kind, value.shape)], (), axes=axes
    )[0]
