"""Result shape of the ops that put the elements along an axis in order."""

from __future__ import annotations

from stepwell.core.shapes import Shape
from stepwell.core.shapes.shape import checked_axis


def sort(x: Shape, axis: int) -> Shape:
    """Return ``x``: the elements along ``axis`` change places.

    >>> sort((3, 4), 1)
    (3, 4)
    """
    checked_axis(len(x), axis)  # order_c1
    return x
