"""Arrays indexed by slices with bounds known at run time only: views if the size is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from stepwell.frontend import elementwise as e
from stepwell.frontend.bounds import Bounds, bounds_of
from stepwell.frontend.checks import check
from stepwell.frontend.errors import TraceError
from stepwell.frontend.promotion import INTEGER, cast, fresh, full
from stepwell.frontend.runtime_bounds import Window
from stepwell.frontend.tensor import Tensor, has_traced_bounds


def _check_integer(bound: Any) -> None:
    if isinstance(bound, Tensor) and (bound.shape or bound.kind.kind not in ("signed", "unsigned")):
        raise TypeError("slice indices must be integers or None or have an __index__ method")


def windowed(x: Tensor, index: Any) -> Any:
    """Return ``x[index]``, with a slice with traced bounds in the index."""
    given: tuple[Any, ...] = index if type(index) is tuple else (index,)
    if any(p is None for p in given):
        return _with_axes(x, given)
    parts = spread(x, given)
    rest = tuple(slice(None) if has_traced_bounds(p) else p for p in parts)
    found = x if all(p == slice(None) for p in rest) else x[rest]
    bounds: list[Bounds | None] = []
    for part, size in zip(parts, x.shape, strict=True):
        if not isinstance(part, slice):
            continue
        if not has_traced_bounds(part):
            bounds.append(None)
            continue
        for bound in (part.start, part.stop):
            _check_integer(bound)
        if part.step not in (None, 1):
            raise TraceError("a slice with traced bounds goes forward by one; index it with a step")
        at = len(bounds)
        count = _count(part, size)
        if count is None:
            bounds.append(bounds_of(part, size))
        else:
            found = _block(found, at, part.start, count)
            bounds.append(None)
    if not any(bounds):
        return found
    window = Window(found, bounds)
    window.place = x, index
    return window


def is_own_window(x: Tensor, index: Any, value: Any) -> bool:
    """Whether ``value`` is ``x[index]`` itself, as it is after ``x[index] += v``."""
    if not isinstance(value, Window) or value.place is None:
        return False
    return value.place[0] is x and value.place[1] is index and value.written == x.stamp


def _with_axes(x: Tensor, parts: tuple[Any, ...]) -> Any:
    """Return ``x[parts]``, where None among the parts adds axes of size 1."""
    found = windowed(x, tuple(p for p in parts if p is not None))
    kept: list[Any] = [p for p in parts if p is None or isinstance(p, slice) or p is Ellipsis]
    places = tuple(p if p is None or p is Ellipsis else slice(None) for p in kept)
    if not isinstance(found, Window):
        return found[places]
    left = iter(found.bounds)
    extra = found.ndim - sum(p is not None and p is not Ellipsis for p in kept)
    if not any(p is Ellipsis for p in kept):
        kept.append(Ellipsis)
    bounds: list[Bounds | None] = []
    for part in kept:
        count = extra if part is Ellipsis else 1
        bounds += [None] if part is None else [next(left) for _ in range(count)]
    return Window(found.values[places], bounds)


def spread(x: Tensor, parts: tuple[Any, ...]) -> list[Any]:
    """Return the part of an index for each axis."""
    for part in parts:
        number = isinstance(part, int | np.integer) and not isinstance(part, bool)
        scalar = isinstance(part, Tensor) and not part.shape and part.kind.kind != "bool"
        if not (number or scalar or part is Ellipsis or isinstance(part, slice)):
            raise TraceError("a slice with traced bounds stands beside integers and slices alone")
    if Ellipsis in [p for p in parts if not isinstance(p, Tensor)]:
        at = next(k for k, p in enumerate(parts) if p is Ellipsis)
    else:
        at, parts = len(parts), (*parts, Ellipsis)
    left = x.ndim - len(parts) + 1
    if left < 0:
        raise IndexError(
            f"too many indices for array: array is {x.ndim}-dimensional, "
            f"but {len(parts) - 1} were indexed"
        )
    return [*parts[:at], *(slice(None),) * left, *parts[at + 1 :]]


def _count(part: slice, size: int) -> int | None:
    """Return the number of elements of a slice, if it is known though its bounds are not."""
    if not isinstance(part.start, Tensor) or not isinstance(part.stop, Tensor):
        return None
    first, offset = part.start.graph.ranges.offset(part.start)
    last, end = part.stop.graph.ranges.offset(part.stop)
    return end - offset if first == last and 0 < end - offset <= size else None


def _block(x: Tensor, axis: int, start: Tensor, count: int) -> Tensor:
    """Return ``count`` elements of ``x`` from ``start`` on, along ``axis``: a view."""
    size = x.shape[axis]
    start = fresh(start)
    known = start.graph.ranges.of(start)
    if known is None or known[0] < 0 or known[1] > size - count:
        fits = e.logical_and(e.greater_equal(start, 0), e.less_equal(start, size - count))
        words = (f"a slice of {count} elements at ", f" does not lie within an axis of {size}")
        check(fits, "IndexError", words, [start])
    shape = tuple(count if a == axis else n for a, n in enumerate(x.shape))
    axes = tuple(range(x.ndim))

    def starts() -> list[Tensor]:
        return [cast(start, INTEGER) if a == axis else full((), 0, INTEGER) for a in axes]

    def read(base: Tensor) -> Tensor:
        types = [(base.kind, shape)]
        given = [base, *starts()]
        return base.graph.emit("dynamic_slice", given, types, (), axes=axes, sizes=shape)[0]

    def write(base: Tensor, part: Tensor) -> None:
        given = [base, part, *starts()]
        types = [(base.kind, base.shape)]
        changed = base.graph.emit("dynamic_update_slice", given, types, (), axes=axes)[0]
        Tensor.operators["write_whole"](base, changed)

    return read(x).part_of(x, read, write)
