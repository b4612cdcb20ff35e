"""Result shapes of ops that sort the elements along an axis."""

from __future__ import annotations

from stepwell.core.shapes import DYNAMIC, Shape, ShapeError
from stepwell.core.shapes.shape import checked_axis


def sort(x: Shape, axis: int) -> Shape:
    """Return ``x``: sorting keeps the shape.

    >>> sort((3, 4), 1)
    (3, 4)
    """
    checked_axis(len(x), axis)  # order_c1
    return x


def order_statistics(x: Shape, ranks: Shape, axis: int) -> Shape:
    """Return ``ranks``: the result has one element of ``x`` for each rank.

    >>> order_statistics((3, 40), (3, 2), 1)
    (3, 2)
    """
    checked_axis(len(x), axis)  # order_statistics_c1
    fits = len(x) == len(ranks) and all(
        k == axis or n == m or DYNAMIC in (n, m)
        for k, (n, m) in enumerate(zip(x, ranks, strict=True))
    )
    if not fits:  # order_statistics_c3
        raise ShapeError("ranks must have the sizes of x along all other axes")
    if not x[axis] and 0 not in ranks:  # order_statistics_c4
        raise ShapeError(f"axis {axis} has no element, but some are asked for")
    return ranks
