"""Result shapes of ops that read and write at computed indices."""

from __future__ import annotations

from collections.abc import Sequence

from stepwell.core.shapes import DYNAMIC, Shape, ShapeError, same_size, show
from stepwell.core.shapes.shape import checked_axes


def gather(x: Shape, indices: Sequence[Shape], axes: Sequence[int]) -> Shape:
    """Return the shape of ``x`` with the indices' axes in place of the first of ``axes``.

    >>> gather((5, 6, 7), [(2, 3)], (1,)), gather((5, 6, 7), [(2,), (2,)], (0, 2))
    ((5, 2, 3, 7), (2, 6))
    """
    checked_axes(len(x), axes)
    if not axes or len(indices) != len(axes):  # gather_c1, scatter_c1
        raise ShapeError(f"one index tensor is needed for each of axes, got {len(indices)}")
    shape = indices[0]
    for other in indices[1:]:
        if other != shape:  # gather_c2, scatter_c1
            raise ShapeError(f"index tensors differ in shape: {show(shape)} and {show(other)}")
    kept = [n for a, n in enumerate(x) if a not in axes]
    if DYNAMIC not in shape and 0 not in shape and any(x[a] == 0 for a in axes):  # gather_c4
        raise ShapeError(f"cannot read from an axis of size 0: {show(x)} along {list(axes)}")
    return (*kept[: axes[0]], *shape, *kept[axes[0] :])


def scatter(x: Shape, indices: Sequence[Shape], updates: Shape, axes: Sequence[int]) -> Shape:
    """Return the shape of ``x``; ``updates`` must have the shape of a gather's result."""
    kept = tuple(max(n, 1) if a in axes and n == 0 else n for a, n in enumerate(x))
    want = gather(kept, indices, axes)
    fits = len(want) == len(updates) and all(
        same_size(a, b) is not None for a, b in zip(want, updates, strict=True)
    )
    if not fits:  # scatter_c2
        raise ShapeError(f"updates must be {show(want)}, got {show(updates)}")
    return x


def dynamic_slice(x: Shape, axes: Sequence[int], sizes: Sequence[int], starts: int) -> Shape:
    """Return the shape of ``x`` cut to ``sizes`` along ``axes``; DYNAMIC is an unknown size.

    >>> dynamic_slice((DYNAMIC, 4), (0,), (1,), 1)
    (1, 4)
    """
    checked_axes(len(x), axes)
    if not len(axes) == len(sizes) == starts:  # dynamic_slice_c1
        raise ShapeError(f"one size and one start are needed for each of {len(axes)} axes")
    result = list(x)
    for a, n in zip(axes, sizes, strict=True):
        if n != DYNAMIC and (n < 0 or DYNAMIC != x[a] < n):  # dynamic_slice_c2
            raise ShapeError(f"cannot take {n} elements along axis {a} of {show(x)}")
        result[a] = n
    return tuple(result)


def dynamic_update_slice(
    x: Shape, update: Shape, axes: Sequence[int], starts: int, strides: Sequence[int] = ()
) -> Shape:
    """Return the shape of ``x``; ``update`` must fit, with equal sizes along all other axes.

    strides : the distance of the update's elements along each of ``axes``; all 1 if empty
    """
    checked_axes(len(x), axes)
    if strides and (len(strides) != len(axes) or min(strides) < 1):  # dynamic_update_slice_c4
        raise ShapeError(f"strides are 1 or more, one for each of {len(axes)} axes")
    if len(axes) != starts:  # dynamic_update_slice_c1
        raise ShapeError(f"one start is needed for each of {len(axes)} axes, got {starts}")
    if len(update) != len(x):  # dynamic_update_slice_c2
        raise ShapeError(f"update must have rank {len(x)}, got {show(update)}")
    for a, (n, m) in enumerate(zip(x, update, strict=True)):
        step = strides[list(axes).index(a)] if strides and a in axes else 1
        last = (m - 1) * step + 1
        fits = DYNAMIC in (n, m) or last <= n if a in axes else same_size(n, m) is not None
        if not fits:  # dynamic_update_slice_c2
            raise ShapeError(f"update {show(update)} does not fit into {show(x)} along axis {a}")
    return x
