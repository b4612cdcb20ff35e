"""The meaning of ``x[index]``: NumPy's rules, resolved for each axis.

An index consists of ints, slices, ``...``, None, integer arrays, and masks of known values. Arrays,
and ints beside them, are *advanced*: they broadcast together to one block of axes. The block takes
the place of the first of them; if a slice, None or ``...`` separates two of them, the block comes
first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stepwell.core.shapes import Shape, show
from stepwell.frontend import elementwise as e
from stepwell.frontend.checks import check, check_index, out_of_bounds
from stepwell.frontend.errors import TraceError
from stepwell.frontend.promotion import BOOL, INTEGER, as_dtype, broadcast, cast, full, lift
from stepwell.frontend.tensor import Tensor

Known: TypeAlias = "NDArray[Any]"
BLOCK = "block"
"""The mark in a layout for the axes of the broadcast arrays."""


@dataclass
class Subscript:
    """An index resolved for each axis."""

    parts: list[Any]
    """For each axis of the indexed value a slice, an int counted from the front, or an array."""
    layout: list[Any]
    """For each axis of the result the source axis, None for a new one, or BLOCK."""
    shape: Shape
    """The shape of the indexed value, with an axis of size 1 where the index has a bool."""

    @property
    def fancy(self) -> list[int]:
        """Return the axes that are indexed by arrays."""
        return [a for a, part in enumerate(self.parts) if isinstance(part, Tensor | np.ndarray)]

    def block(self) -> list[Tensor]:
        """Return the arrays, broadcast together."""
        indices = [self.parts[a] for a in self.fancy]
        shape = _together(indices)
        return [broadcast(lift(i), shape) for i in indices]


@dataclass
class _Reader:
    """Reads the parts of an index from left to right."""

    shape: list[int]
    checked: bool = True
    """Whether indices known at run time only are checked."""
    in_region: bool = False
    """Whether the index is in a region, which need not be executed."""
    parts: list[Any] = field(default_factory=list[Any])
    items: list[Any] = field(default_factory=list[Any])
    """The layout so far, with the axes of ints and arrays not yet merged into the block."""

    def basic(self, part: Any) -> None:
        """Read a slice or None."""
        if part is None:
            self.items.append(None)
            return
        self.items.append(len(self.parts))
        self.parts.append(part)

    def advanced(self, part: Any) -> None:
        """Read an int or an array, for the next axis."""
        axis = len(self.parts)
        if isinstance(part, int | np.integer):
            part = int(self._in_range(np.asarray(int(part), np.int64), axis))
        self.items.append((axis,))
        self.parts.append(part)

    def mask(self, mask: Known) -> None:
        """Read a known mask: the places where it is true, for as many axes as the mask has."""
        axis = len(self.parts)
        if mask.ndim == 0:  # selects all or nothing, along a new axis
            self.shape.insert(axis, 1)
            self.advanced(np.zeros(int(mask), np.int64))
            return
        if (covered := tuple(self.shape[axis : axis + mask.ndim])) != mask.shape:
            shown = f"a mask of [{show(mask.shape)}] for axes of [{show(covered)}]"
            raise IndexError(f"{shown}, from axis {axis} on: they must be the same")
        for places in mask.nonzero():
            self.advanced(places)

    def done(self) -> Subscript:
        """Return the resolved index, with the layout of its result in order."""
        axes = [item[0] for item in self.items if isinstance(item, tuple)]
        if all(isinstance(self.parts[a], int) for a in axes):
            layout = [item for item in self.items if not isinstance(item, tuple)]
            return Subscript(self.parts, layout, tuple(self.shape))
        at = [k for k, item in enumerate(self.items) if isinstance(item, tuple)]
        together = at == list(range(at[0], at[-1] + 1))
        layout = [item for item in self.items if not isinstance(item, tuple)]
        layout.insert(at[0] if together else 0, BLOCK)
        arrays = [a for a in axes if not isinstance(self.parts[a], int)]
        empty = 0 in _together([self.parts[a] for a in arrays])
        for a in arrays:
            self.parts[a] = self._usable(a, empty)
        return Subscript(self.parts, layout, tuple(self.shape))

    def _in_range(self, index: Known, axis: int) -> Known:
        """Return known indices counted from the front.

        In a region, which need not be executed, the program raises the error for wrong ones.
        """
        size = self.shape[axis]
        try:
            return _in_range(index, axis, size)
        except IndexError as error:
            if not self.in_region or not size:
                raise
            check(full((), False, BOOL), "IndexError", [str(error)])
        return np.zeros(index.shape, np.int64)

    def _usable(self, axis: int, empty: bool) -> Any:
        """Return an index array, checked; with an empty result the check is omitted."""
        index, size = self.parts[axis], self.shape[axis]
        if isinstance(index, np.ndarray):
            return np.zeros(index.shape, np.int64) if empty else self._in_range(index, axis)
        if size == 0 and (not empty or index.ndim == 0):
            raise IndexError(f"axis {axis} has size 0: there is nothing to read or write")
        return from_front(index, size, axis if self.checked and not empty else None)


def _together(indices: Sequence[Any]) -> Shape:
    """Return the broadcast shape of the arrays of an index."""
    try:
        return np.broadcast_shapes(*(i.shape for i in indices))
    except ValueError:
        listed = " and ".join(f"[{show(i.shape)}]" for i in indices)
        raise IndexError(f"indices {listed} do not fit together") from None


def subscript(x: Tensor, index: Any, checked: bool = True) -> Subscript:
    """Return the meaning of ``index`` for ``x``; raise IndexError if it is invalid.

    checked : whether the program raises IndexError for indices known at run time only
    """
    parts = [_read(p) for p in (index if isinstance(index, tuple) else (index,))]
    ellipses = sum(p is Ellipsis for p in parts)
    if ellipses > 1:
        raise IndexError("an index can have one ellipsis")
    given = sum(map(_axes_of, parts))
    if given > x.ndim:
        raise IndexError(f"{given} indices for {x.ndim} axes")
    reader = _Reader(list(x.shape), checked, checked and len(x.graph.scopes) > 1)
    for part in parts if ellipses else (*parts, Ellipsis):
        if part is Ellipsis:
            for _ in range(x.ndim - given):
                reader.basic(slice(None))
            if given == x.ndim and ellipses:
                reader.items.append(...)  # separates two arrays though it takes no axis
        elif part is None or isinstance(part, slice):
            reader.basic(part)
        elif isinstance(part, np.ndarray) and part.dtype == bool:
            reader.mask(part)
        else:
            reader.advanced(part)
    found = reader.done()
    found.layout = [item for item in found.layout if item is not ...]
    return found


def _axes_of(part: Any) -> int:
    """Return the number of axes that a part of an index takes."""
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if isinstance(part, np.ndarray) and part.dtype == bool else 1


def _read(part: Any) -> Any:
    """Return a part of an index as None, ..., a slice, an int, a known array or a traced one."""
    if part is None or part is Ellipsis:
        return part
    if isinstance(part, slice):
        for bound in (part.start, part.stop, part.step):
            if isinstance(bound, Tensor):
                raise TraceError(
                    "the bounds of a slice must be known while tracing; "
                    "use stepwell.lax.dynamic_slice"
                )
        return part
    if isinstance(part, Tensor):
        known = part.graph.known(lift(part))
        return _checked(part) if known is None or part.kind.kind == "float" else known
    if isinstance(part, int | np.integer) and not isinstance(part, bool):
        return part
    if isinstance(part, list | tuple) and any(isinstance(i, Tensor) for i in part):
        joined = Tensor.operators["stack"](list(part))
        return _checked(joined)
    array = np.asarray(part)
    if array.size == 0 and not hasattr(part, "dtype"):
        array = array.astype(np.int64)  # an empty list
    if array.dtype.kind not in "iub":
        raise IndexError(f"an index must be an integer, got {_spelled(part, array)}")
    return int(array) if array.ndim == 0 and array.dtype.kind != "b" else array


def _spelled(part: Any, array: Known) -> str:
    return str(array.dtype) if array.dtype.kind not in "OUS" else f"{part!r}"


def _checked(index: Tensor) -> Tensor:
    if index.kind is BOOL:
        raise TraceError(
            "a mask would have a result whose shape is not known while tracing; beside it, an "
            "index may have slices and numbers, but no other mask and no array: "
            "use numpy.where(mask, value, x)"
        )
    if index.kind.kind == "float":
        raise IndexError(f"an index must be an integer, got {index.dtype}")
    return index


def _in_range(index: Known, axis: int, size: int) -> Known:
    """Return known indices counted from the front."""
    wide = index.astype(object) if index.dtype == np.uint64 else index.astype(np.int64)
    outside = (wide < -size) | (wide >= size)
    if outside.any():
        first = np.asarray(wide)[outside].flat[0]
        raise IndexError(out_of_bounds(int(first), axis, size))
    return np.where(wide < 0, wide + size, wide).astype(np.int64)


def from_front(index: Tensor, size: int, axis: int | None = None) -> Tensor:
    """Return indices with negative ones counted from the end, in a dtype that holds ``size``.

    axis : the indexed axis: the program raises IndexError for indices out of range; None omits
        the check
    """
    if axis is not None:
        check_index(index, size, axis)
    ranges = index.graph.ranges
    low, high = ranges.of(index) or (0, 0)
    if index.kind.name == "ui64":  # numbers beyond i64 are out of range too
        return cast(index if high < 1 << 63 else e.minimum(index, size), INTEGER)
    wide = as_dtype("i32") if size < 1 << 31 and index.kind.name != "ui32" else INTEGER
    if index.kind.kind == "unsigned":
        return cast(index, wide)
    index = cast(index, wide if index.kind.bytes < 8 else INTEGER)
    if low >= 0:
        return index
    found = e.add(index, size)
    if high >= 0:
        found = e.where(e.less(index, 0), found, index)
    if -size <= low and high < size:
        ranges.tell(found, 0, size - 1)
    return found


def as_index(indices: Any, size: int, axis: int, checked: bool = True) -> Tensor:
    """Return a function's ``indices`` argument as indices of an axis, counted from the front."""
    part = _read(indices)
    if part is None or part is Ellipsis or isinstance(part, slice):
        raise IndexError(f"an index must be an integer, got {part}")
    if isinstance(part, Tensor):
        return from_front(part, size, axis if size and checked else None)
    if isinstance(part, np.ndarray) and part.dtype == bool:
        raise IndexError("an index must be an integer, got booleans; use x[mask]")
    return lift(_in_range(np.asarray(part), axis, size))


def spread(x: Tensor, to: Sequence[int], first: int) -> Tensor:
    """Return ``x`` broadcast to shape ``to``, with its axes starting at ``first``."""
    if x.shape == tuple(to):
        return x
    dims = tuple(range(first, first + x.ndim))
    return x.graph.emit("broadcast", [x], [(x.kind, tuple(to))], (), dims=dims)[0]
