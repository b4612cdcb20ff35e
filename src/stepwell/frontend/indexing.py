"""``x[...]``, ``x.at[...]`` and taking by index.

Indices may be ints, slices, ``...``, None, traced integers and integer arrays. Slices follow
Python; an index held in a traced value or an array is clamped to the axis when it runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stepwell.core.shapes import Shape, ShapeError, show
from stepwell.frontend import elementwise as e
from stepwell.frontend.creation import iota
from stepwell.frontend.elementwise import check_axis
from stepwell.frontend.errors import TraceError
from stepwell.frontend.manipulation import broadcast_to, moveaxis, reshape
from stepwell.frontend.promotion import INTEGER, as_dtype, broadcast, cast, lift
from stepwell.frontend.tensor import Tensor


@dataclass
class _Plan:
    """An index, spelled out: one entry for each axis of the operand, and where new axes come."""

    axes: list[Any]
    new: list[int]
    """For each axis of the result before fancy indexing, 1 where it is a None."""


def _plan(x: Tensor, index: Any) -> _Plan:
    parts = index if isinstance(index, tuple) else (index,)
    ellipses = sum(p is Ellipsis for p in parts)
    if ellipses > 1:
        raise IndexError("an index can have one ellipsis")
    given = sum(p is not None and p is not Ellipsis for p in parts)
    if given > x.ndim:
        raise IndexError(f"{given} indices for {x.ndim} axes")
    if not ellipses:
        parts = (*parts, Ellipsis)
    axes: list[Any] = []
    new: list[int] = []
    for part in parts:
        if part is None:
            new.append(len(axes))
        elif part is Ellipsis:
            axes.extend([slice(None)] * (x.ndim - given))
        else:
            axes.append(_checked(part, len(axes), x.shape))
    return _Plan(axes, new)


def _checked(part: Any, axis: int, shape: Shape) -> Any:
    """Return an entry as a slice, an int counted from the front, or a traced integer array."""
    if isinstance(part, slice):
        for bound in (part.start, part.stop, part.step):
            if isinstance(bound, Tensor):
                raise TraceError(
                    "the bounds of a slice must be known while tracing; "
                    "use stepwell.lax.dynamic_slice"
                )
        return part
    if isinstance(part, bool | np.bool_):
        raise TraceError("a boolean index would have a shape that is not known while tracing")
    if isinstance(part, int | np.integer):
        if not -shape[axis] <= part < shape[axis]:
            raise IndexError(f"index {part} is out of range for axis {axis} of size {shape[axis]}")
        return int(part) % shape[axis]
    value = lift(np.asarray(part) if isinstance(part, list) else part)
    if value.kind.kind == "bool":
        raise TraceError(
            "a mask would have a result whose shape is not known while tracing; "
            "use stepwell.numpy.where"
        )
    if value.kind.kind == "float":
        raise IndexError(f"an index must be an integer, got {value.kind.name}")
    return value


def getitem(x: Any, index: Any, /) -> Tensor:
    """Return ``x[index]``."""
    value = lift(x)
    plan = _plan(value, index)
    fancy = [a for a, part in enumerate(plan.axes) if isinstance(part, Tensor)]
    value = _slice(value, plan.axes)
    dropped = [a for a, part in enumerate(plan.axes) if isinstance(part, int)]
    if fancy:
        return _take_many(value, plan, fancy, dropped)
    return _drop_and_add(value, dropped, plan.new)


def _drop_and_add(value: Tensor, dropped: list[int], new: list[int]) -> Tensor:
    """Drop axes of size 1, and put new ones in front of the axes ``new`` names."""
    shape: list[int] = []
    for a in range(value.ndim + 1):
        shape.extend([1] * new.count(a))
        if a < value.ndim and a not in dropped:
            shape.append(value.shape[a])
    return reshape(value, tuple(shape))


def _slice(x: Tensor, axes: list[Any]) -> Tensor:
    """Apply the slices and ints of an index; ints leave an axis of size 1."""
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
        result = x.trace.emit(
            "slice",
            [x],
            [(x.kind, shape)],
            (),
            starts=tuple(starts),
            limits=tuple(limits),
            strides=tuple(strides),
        )[0]
    if flipped:
        result = x.trace.emit(
            "reverse", [result], [(x.kind, result.shape)], (), axes=tuple(flipped)
        )[0]
    return result


def _take_many(value: Tensor, plan: _Plan, fancy: list[int], dropped: list[int]) -> Tensor:
    """Index axes by arrays, broadcast together; NumPy's rule says where the result's axes go."""
    indices = _broadcast_indices([_from_front(plan.axes[a], value.shape[a]) for a in fancy])
    taken = gather(value, indices, tuple(fancy))
    rank = indices[0].ndim
    rest = [a for a in range(value.ndim) if a not in fancy]
    advanced = sorted([*fancy, *dropped])  # beside an array, an int counts as one
    adjacent = advanced == list(range(advanced[0], advanced[-1] + 1))
    at = sum(a < fancy[0] for a in rest)  # where gather puts the axes of the indices
    if not adjacent and at:
        taken = moveaxis(taken, tuple(range(at, at + rank)), tuple(range(rank)))
        at = 0
    shape: list[int] = []
    kept = [a for a in rest if a not in dropped]
    before = [a for a in kept if adjacent and a < advanced[0]]
    for a in before:
        shape += [1] * plan.new.count(a) + [value.shape[a]]
    shape += indices[0].shape
    for a in kept[len(before) :]:
        shape += [1] * plan.new.count(a) + [value.shape[a]]
    shape += [1] * plan.new.count(value.ndim)
    return reshape(taken, tuple(shape))


def _from_front(index: Tensor, size: int) -> Tensor:
    """Return indices counted from the front where negative ones count from the end."""
    if index.kind.kind == "unsigned":
        return index
    return e.where(e.less(index, 0), e.add(index, size), index)


def _broadcast_indices(indices: list[Tensor]) -> list[Tensor]:
    try:
        shape = np.broadcast_shapes(*(i.shape for i in indices))
    except ValueError:
        raise ShapeError(
            f"indices {' and '.join(f'[{show(i.shape)}]' for i in indices)} do not fit together"
        ) from None
    return [broadcast(i, shape) for i in indices]


def gather(x: Tensor, indices: list[Tensor], axes: tuple[int, ...]) -> Tensor:
    """Return the elements of ``x`` at ``indices`` along ``axes``; the indices' axes come first.

    They come where the first of ``axes`` was.
    """
    rest = [n for a, n in enumerate(x.shape) if a not in axes]
    at = axes[0]
    shape = (*rest[:at], *indices[0].shape, *rest[at:])
    return x.trace.emit("gather", [x, *indices], [(x.kind, shape)], (), axes=axes)[0]


def take(x: Any, indices: Any, /, axis: int | None = None) -> Tensor:
    """Return the slices of ``x`` along ``axis`` at ``indices``; None flattens ``x`` first."""
    value = reshape(x, -1) if axis is None else lift(x)
    at = check_axis(axis or 0, value.ndim)
    index = lift(np.asarray(indices) if isinstance(indices, list | int) else indices)
    return gather(value, [_from_front(index, value.shape[at])], (at,))


def take_along_axis(x: Any, indices: Any, /, axis: int = -1) -> Tensor:
    """Return ``x[..., indices[..., k, ...], ...]`` along ``axis``; all other axes agree."""
    value, index = lift(x), lift(indices)
    at = check_axis(axis, value.ndim)
    if index.ndim != value.ndim:
        raise ShapeError(f"indices need {value.ndim} axes, got {index.ndim}")
    shape = tuple(
        n if a == at else max(n, m)
        for a, (n, m) in enumerate(zip(index.shape, value.shape, strict=True))
    )
    own = tuple(
        m if a == at else n for a, (n, m) in enumerate(zip(shape, value.shape, strict=True))
    )
    value = broadcast_to(value, own)
    index = broadcast_to(_from_front(index, value.shape[at]), shape)
    places = [index if a == at else iota(shape, a, index.kind) for a in range(value.ndim)]
    return gather(value, places, tuple(range(value.ndim)))


@dataclass
class _At:
    """``x.at``, waiting for its index."""

    x: Tensor

    def __getitem__(self, index: Any) -> _Place:
        return _Place(self.x, index)


@dataclass
class _Place:
    """``x.at[index]``: returns copies of ``x`` that are changed there."""

    x: Tensor
    index: Any

    def set(self, value: Any) -> Tensor:
        """Return ``x`` with ``value`` there; of duplicate indices the last one counts."""
        return self._scatter("scatter", value)

    def add(self, value: Any) -> Tensor:
        """Return ``x`` with ``value`` added there, once for each duplicate."""
        return self._scatter("scatter_add", value)

    def multiply(self, value: Any) -> Tensor:
        """Return ``x`` multiplied by ``value`` there."""
        return self._scatter("scatter_mul", value)

    def min(self, value: Any) -> Tensor:
        """Return ``x`` with what is smaller, it or ``value``, there."""
        return self._scatter("scatter_min", value)

    def max(self, value: Any) -> Tensor:
        """Return ``x`` with what is larger, it or ``value``, there."""
        return self._scatter("scatter_max", value)

    def get(self) -> Tensor:
        """Return ``x[index]``."""
        return getitem(self.x, self.index)

    def _scatter(self, op: str, value: Any) -> Tensor:
        """Write through the indices of every place: the index picks them from a numbering of x."""
        x = self.x
        numbers = reshape(iota((x.size,), 0, INTEGER), x.shape)
        places = getitem(numbers, self.index)
        updates = cast(lift(value, x.kind), x.kind)
        updates = broadcast_to(updates, places.shape)
        flat, where = reshape(x, (x.size,)), reshape(places, (places.size,))
        changed = x.trace.emit(
            op,
            [flat, reshape(updates, (updates.size,)), where],
            [(x.kind, flat.shape)],
            (),
            axes=(0,),
        )[0]
        return reshape(changed, x.shape)


def at(x: Tensor) -> _At:
    """Return what ``x.at`` is."""
    return _At(x)


def dynamic_slice(x: Any, starts: Any, sizes: Any, /) -> Tensor:
    """Return the block of ``sizes`` that begins at the traced ``starts``, clamped to fit."""
    value = lift(x)
    sizes = tuple(int(n) for n in sizes)
    first = [cast(lift(s), as_dtype("i64")) for s in starts]
    axes = tuple(range(value.ndim))
    if len(first) != value.ndim or len(sizes) != value.ndim:
        raise ShapeError(f"need {value.ndim} starts and sizes, got {len(first)} and {len(sizes)}")
    return value.trace.emit(
        "dynamic_slice", [value, *first], [(value.kind, sizes)], (), axes=axes, sizes=sizes
    )[0]


def dynamic_update_slice(x: Any, update: Any, starts: Any, /) -> Tensor:
    """Return ``x`` with the block ``update`` at the traced ``starts``, clamped to fit."""
    value = lift(x)
    block = cast(lift(update, value.kind), value.kind)
    first = [cast(lift(s), as_dtype("i64")) for s in starts]
    axes = tuple(range(value.ndim))
    return value.trace.emit(
        "dynamic_update_slice", [value, block, *first], [(value.kind, value.shape)], (), axes=axes
    )[0]
