"""Elements chosen by a condition that only the run knows, packed at the front of an array.

How many there are is the bound of a `Window`: what a slice ``x[:n]`` supports, they support too.
"""

from __future__ import annotations

from collections.abc import Sequence

from stepwell.frontend import elementwise as e
from stepwell.frontend import reduction as r
from stepwell.frontend.bounds import bounds_of
from stepwell.frontend.creation import iota
from stepwell.frontend.indexing import gather
from stepwell.frontend.joining import stack
from stepwell.frontend.manipulation import moveaxis, reshape
from stepwell.frontend.promotion import INTEGER, as_dtype, cast, full
from stepwell.frontend.runtime_bounds import Window
from stepwell.frontend.tensor import Tensor


def packed(mask: Tensor, size: int) -> Tensor:
    """Return the places of the first ``size`` true elements of one row, padded with -1."""
    n = mask.shape[0]
    none = full((size,), -1, INTEGER)
    if not n or not size:
        return none
    kind = as_dtype("i32") if max(n, size) < 1 << 31 else INTEGER
    order = r.cumulative_sum(cast(mask, kind), axis=0, dtype=kind.numpy)
    where = e.where(mask, order - 1, size)  # places out of range are dropped
    numbers = iota((n,), 0, INTEGER)
    operands = [none, numbers, where]
    return mask.graph.emit("scatter", operands, [(INTEGER, (size,))], (), axes=(0,))[0]


def unraveled(flat: Tensor, shape: Sequence[int]) -> list[Tensor]:
    """Return the index along each axis of elements of an array, given by their flat indices."""
    found: list[Tensor] = []
    for n in reversed(shape):
        found.insert(0, e.remainder(flat, max(n, 1)))
        flat = e.floor_divide(flat, max(n, 1))
    return found


def at_front(values: Tensor, count: Tensor, axis: int = 0) -> Window:
    """Return the first ``count`` elements of ``values`` along an axis."""
    count.graph.ranges.tell(count, 0, values.shape[axis])
    bounds = bounds_of(slice(0, count), values.shape[axis])
    return Window(values, [bounds if a == axis else None for a in range(values.ndim)])


def chosen_places(truths: Tensor) -> tuple[Window, ...]:
    """Return the indices of the true elements along each axis, in order."""
    flat, count = _chosen(truths)
    each = unraveled(flat, truths.shape) if truths.ndim > 1 else [flat]
    for index, n in zip(each, truths.shape, strict=True):
        index.graph.ranges.tell(index, 0, max(n - 1, 0))
    return tuple(at_front(index, count) for index in each)


def beside(columns: Sequence[Window]) -> Window:
    """Return the columns of an array, which have the same bounds, as that array."""
    values = stack([column.values for column in columns], axis=1)
    return Window(values, [columns[0].bounds[0], None])


def chosen_elements(values: Tensor, mask: Tensor, axis: int = 0) -> Window:
    """Return the elements that a mask over the first axes of ``values`` chooses.

    axis : the axis of the result along which they are
    """
    places, count = _chosen(mask)
    rows = reshape(values, (mask.size, *values.shape[mask.ndim :]))
    return at_front(moveaxis(gather(rows, [places], (0,)), 0, axis), count, axis)


def _chosen(mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return the flat places of the true elements, in front of zeros, and their number."""
    flat = reshape(mask, (mask.size,))
    places = e.maximum(packed(flat, mask.size), 0)
    return places, cast(r.sum(flat), INTEGER)
