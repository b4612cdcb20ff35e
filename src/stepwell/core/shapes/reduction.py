"""Result shapes of ops that combine elements along axes."""

from __future__ import annotations

from collections.abc import Sequence

from stepwell.core.shapes import DYNAMIC, Shape, ShapeError, show
from stepwell.core.shapes.shape import checked_axes, checked_axis


def reduce(x: Shape, axes: Sequence[int]) -> Shape:
    """Return ``x`` without ``axes``.

    >>> reduce((2, 3, 4), (0, 2))
    (3,)
    """
    checked_axes(len(x), axes)  # reduce_c1
    return tuple(n for a, n in enumerate(x) if a not in axes)


def arg_reduce(x: Shape, axis: int) -> Shape:
    """Return ``x`` without ``axis``, which must not be empty."""
    checked_axis(len(x), axis)
    # arg_reduce_c1
    if x[axis] == 0 and all(n != 0 for a, n in enumerate(x) if a != axis):
        raise ShapeError(f"nothing to choose from along axis {axis} of {show(x)}")
    return reduce(x, (axis,))


def cumulative(x: Shape, axis: int) -> Shape:
    """Return ``x``: cumulative reductions keep the shape."""
    checked_axis(len(x), axis)  # cumulative_c1
    return x


def window_reduce(
    x: Shape,
    window: Sequence[int],
    strides: Sequence[int],
    low: Sequence[int],
    high: Sequence[int],
    dilation: Sequence[int],
) -> Shape:
    """Return the number of windows along each axis of the padded ``x``.

    >>> show(window_reduce((5, DYNAMIC), (2, 3), (2, 1), (0, 1), (0, 1), (1, 2)))
    '2x?'
    """
    for what in (window, strides, low, high, dilation):
        if len(what) != len(x):  # window_c1
            raise ShapeError(
                f"window, strides, low, high and dilation must have {len(x)} entries each"
            )
    if any(n < 1 for n in (*window, *strides, *dilation)):  # window_c2
        raise ShapeError("window, strides and dilation must be positive")
    if any(n < 0 for n in (*low, *high)):  # window_c2
        raise ShapeError("low and high must not be negative")
    return tuple(
        windows(*each) for each in zip(x, window, strides, low, high, dilation, strict=True)
    )


def windows(n: int, window: int, stride: int, low: int, high: int, dilation: int) -> int:
    """Return the number of windows along one axis.

    >>> windows(7, 3, 2, 0, 0, 1), windows(2, 3, 1, 0, 0, 1)
    (3, 0)
    """
    if n == DYNAMIC:
        return DYNAMIC
    room = n + low + high - ((window - 1) * dilation + 1)
    return room // stride + 1 if room >= 0 else 0
