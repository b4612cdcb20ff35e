"""Shapes of control flow: the slices, stacked results and length of a scan."""

from __future__ import annotations

from collections.abc import Sequence

from stepwell.core.shapes import DYNAMIC, Shape, ShapeError, same_size, show


def scan_length(xs: Sequence[Shape], length: int | None) -> int:
    """Return the number of steps of a scan over ``xs``; ``length`` is the explicit one, if any.

    >>> scan_length([(4, 3), (DYNAMIC,)], None), scan_length([], 7)
    (4, 7)
    """
    known = DYNAMIC if length is None else length
    if length is None and not xs:
        raise ShapeError("a scan over nothing must be given its length")
    for shape in xs:
        if not shape:
            raise ShapeError("a scan runs along axis 0 of a tensor, got a scalar")
        size = same_size(known, shape[0])
        if size is None:
            raise ShapeError(f"a scan of {known} steps cannot run along axis 0 of {show(shape)}")
        known = size
    return known


def scan_slice(xs: Shape) -> Shape:
    """Return the shape of the slice that one step of a scan reads.

    >>> scan_slice((4, 3))
    (3,)
    """
    return xs[1:]


def scan_stack(y: Shape, length: int) -> Shape:
    """Return the shape of the result that a scan of ``length`` steps stacks.

    >>> scan_stack((3,), 4)
    (4, 3)
    """
    return (length, *y)
