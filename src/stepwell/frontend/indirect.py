"""``x[indices[low:high]]``: an index array sliced with traced bounds.

The whole index array is used, masked: outside the bounds a read uses index 0, whose result is never
used, and a write uses an index past the end, which drops it. So no index is out of range.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stepwell.frontend import elementwise as e
from stepwell.frontend import reduction as r
from stepwell.frontend.bounds import Bounds
from stepwell.frontend.checks import check
from stepwell.frontend.errors import TraceError
from stepwell.frontend.indexing import read_at, scatter_at
from stepwell.frontend.promotion import INTEGER, broadcast, cast, lift
from stepwell.frontend.runtime_bounds import Window, together
from stepwell.frontend.subscripts import BLOCK, Subscript, subscript
from stepwell.frontend.tensor import Tensor


def has_window(index: Any) -> bool:
    """Whether an index contains a `Window`."""
    return type(index) is Window or (type(index) is tuple and Window in map(type, index))


def _aligned(index: Any) -> tuple[list[Any], list[int], list[Bounds | None]]:
    """Return the parts of an index with arrays in place of windows, the positions of these parts,
    and the bounds of their common axes.
    """
    parts: list[Any] = list(index) if type(index) is tuple else [index]
    at = [k for k, p in enumerate(parts) if isinstance(p, Window | Tensor) and p.ndim]
    if any(isinstance(p, np.ndarray | list | bool | np.bool_) for p in parts):
        raise TraceError("a slice with traced bounds is an index beside slices, numbers and others")
    for k in at:
        if np.dtype(parts[k].dtype).kind not in "iu":
            raise IndexError("arrays used as indices must be of integer (or boolean) type")
    arrays, bounds = together([parts[k] for k in at])
    for k, array in zip(at, arrays, strict=True):
        parts[k] = array
    return parts, at, bounds


def _check_inside(index: Tensor, inside: Tensor, size: int, axis: int) -> None:
    """Raise IndexError if an index for which ``inside`` is true is out of range."""
    trace = index.graph
    low, high = trace.ranges.of(index) or (0, 0)
    if not trace.check_bounds or (low >= -size and high < size):
        return
    most = np.iinfo(index.kind.numpy)
    words = ("index ", f" is out of bounds for axis {axis} with size {size}")
    if high >= size:
        found = r.max(e.where(inside, index, most.min))
        check(e.less(found, size), "IndexError", words, [found])
    if low < -size:
        found = r.min(e.where(inside, index, most.max))
        check(e.greater_equal(found, -size), "IndexError", words, [found])


def _block_axis(place: Subscript) -> int:
    return place.layout.index(BLOCK)


def read_through(x: Tensor, index: Any) -> Window:
    """Return ``x[index]``, whose elements are valid within the bounds of the index's windows."""
    parts, at, bounds = _aligned(index)
    inside, sizes = Window(parts[at[0]], bounds).mask, _sizes_at(x, parts, at)
    for k in at:
        _check_inside(broadcast(parts[k], inside.shape), inside, sizes[k], k)
        parts[k] = e.where(inside, broadcast(parts[k], inside.shape), 0)
        x.graph.ranges.tell(parts[k], -sizes[k], sizes[k] - 1)
    place = subscript(x, tuple(parts), checked=False)
    found = read_at(x, place)
    first = _block_axis(place)
    own: list[Bounds | None] = [None] * found.ndim
    own[first : first + len(bounds)] = bounds
    return Window(found, own)


def write_through(x: Tensor, index: Any, value: Any) -> None:
    """Execute ``x[index] = value``; ``value`` has the windows' bounds, or none."""
    parts, at, bounds = _aligned(index)
    window = Window(parts[at[0]], bounds)
    inside, sizes = window.mask, _sizes_at(x, parts, at)
    for k in at:
        wide = cast(broadcast(parts[k], inside.shape), INTEGER)
        _check_inside(wide, inside, sizes[k], k)
        parts[k] = e.where(inside, wide, sizes[k])
    place = subscript(x, tuple(parts), checked=False)
    first = _block_axis(place)
    shape = list(n for a, n in enumerate(x.shape) if isinstance(place.parts[a], slice))
    own: list[Bounds | None] = [None] * len(shape)
    own[first:first], shape[first:first] = bounds, inside.shape
    if any(isinstance(p, slice) and p != slice(None) for p in place.parts):
        raise TraceError("a slice with traced bounds, as an index that is written to, stands alone")
    given = lift(value, x.kind) if not isinstance(value, Window) else value
    model = Window(broadcast(lift(0, x.kind), tuple(shape)), own)
    (_, fitted), _ = together((model, given))
    fitted = broadcast(cast(lift(fitted), x.kind), tuple(shape))
    Tensor.operators["write_whole"](x, scatter_at(x, place, fitted))


def _sizes_at(x: Tensor, parts: list[Any], at: list[int]) -> dict[int, int]:
    """Return the sizes of the axes that the parts ``at`` index."""
    if any(p is None or p is Ellipsis for p in parts):
        raise TraceError("a slice with traced bounds is no index beside None or ...")
    if len(parts) > x.ndim:
        raise IndexError(f"too many indices for array: array is {x.ndim}-dimensional")
    return {k: x.shape[k] for k in at}
