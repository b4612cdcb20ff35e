"""Symbolic bounds of slices with traced bounds, and which slices have equal lengths."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from stepwell.frontend import elementwise as e
from stepwell.frontend.errors import TraceError
from stepwell.frontend.promotion import INTEGER, cast, lift
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.ufuncs import weakened


class Place(NamedTuple):
    """A bound: a constant, or a traced value plus a constant offset."""

    root: str
    offset: int


class Bounds(NamedTuple):
    """The begin and the end of a window along an axis."""

    low: Any
    high: Any
    first: Place
    last: Place
    extent: Any
    """A key shared by all windows of the same length."""

    @property
    def key(self) -> tuple[Place, Place]:
        """A key shared by all windows with the same bounds."""
        return self.first, self.last


def _place(bound: Any, default: int) -> Place:
    if bound is None:
        return Place("", default)
    if not isinstance(bound, Tensor):
        return Place("", int(bound) if int(bound) >= 0 else max(int(bound) + default, 0))
    root, offset = bound.graph.ranges.offset(bound)
    known = bound.graph.ranges.of(bound)
    counted = known is not None and known[0] < 0  # the bound may count from the end
    return Place(f"{root} of {default}" if counted else root, offset)


def bounds_of(part: slice, size: int) -> Bounds:
    """Return the bounds of a slice, counted from the front and clamped to the axis."""

    def inside(bound: Any, default: int) -> Any:
        if bound is None:
            return default
        if not isinstance(bound, Tensor):
            return range(size)[slice(bound, None)].start
        value = cast(bound, INTEGER)
        found = value.graph.ranges.of(value)
        if found is None or found[0] < 0:
            value = e.where(e.less(value, 0), e.add(value, size), value)
        value = e.minimum(value, size) if found is None or found[1] > size else value
        return e.maximum(value, 0) if found is None or found[0] < 0 else value

    low = inside(part.start, 0)
    high = inside(part.stop, size)
    first = _place(part.start, 0 if part.start is None else size)
    return _bounded(low, high, first, _place(part.stop, size))


def _bounded(low: Any, high: Any, first: Place, last: Place) -> Bounds:
    if first.root == last.root:
        return Bounds(low, high, first, last, last.offset - first.offset)
    return Bounds(low, high, first, last, (first.root, last.root, last.offset - first.offset))


def flipped(bounds: Bounds | None, size: int) -> Bounds | None:
    """Return the bounds after a flip of the axis."""
    if bounds is None:
        return None
    first = Place(f"{size} - {bounds.last.root}", -bounds.last.offset)
    last = Place(f"{size} - {bounds.first.root}", -bounds.first.offset)
    low, high = e.subtract(size, lift(bounds.high)), e.subtract(size, lift(bounds.low))
    return Bounds(low, high, first, last, bounds.extent)


def cut(bounds: Bounds, part: slice) -> Bounds:
    """Return the bounds of a slice, of step 1, of the elements within ``bounds``."""

    def inside(bound: Any, default: Any, last: bool) -> tuple[Any, Place]:
        if bound is None:
            return default, bounds.last if last else bounds.first
        if not isinstance(bound, int | np.integer):
            raise TraceError("a slice of a slice with traced bounds has bounds that are known")
        from_end = bound < 0
        place = bounds.last if from_end else bounds.first
        value = e.add(lift(bounds.high if from_end else bounds.low), int(bound))
        value = e.maximum(value, bounds.low) if from_end else e.minimum(value, bounds.high)
        return value, Place(place.root, place.offset + int(bound))

    low, first = inside(part.start, bounds.low, False)
    high, last = inside(part.stop, bounds.high, True)
    return _bounded(low, high, first, last)


def length(bounds: Bounds) -> Any:
    """Return the number of elements within bounds."""
    count = e.maximum(e.subtract(lift(bounds.high), lift(bounds.low)), 0)
    return weakened(count)
