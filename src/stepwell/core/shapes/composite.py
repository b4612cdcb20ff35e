"""Shapes of composite ops; ops that preserve the shape of their operand need no rule."""

from __future__ import annotations

from collections.abc import Sequence

from stepwell.core.shapes import Shape, ShapeError, same_size, show
from stepwell.core.shapes.contraction import Window


def axis_in(shape: Shape, axis: int) -> None:
    """Refuse an axis that ``shape`` does not have."""
    if not 0 <= axis < len(shape):
        raise ShapeError(f"axis must be one of the {len(shape)} axes of {show(shape)}, got {axis}")


def without(shape: Shape, axes: Sequence[int]) -> Shape:
    """Return ``shape`` without ``axes``.

    >>> without((2, 3, 4), [0, 2])
    (3,)
    """
    for axis in axes:
        axis_in(shape, axis)
    if len(set(axes)) != len(axes):
        raise ShapeError(f"axes must differ, got {list(axes)}")
    return tuple(n for a, n in enumerate(shape) if a not in axes)


def parameters(name: str, got: Shape, want: Shape) -> None:
    """Refuse parameters whose sizes differ from those of their axes."""
    if len(got) != len(want) or None in map(same_size, got, want):
        raise ShapeError(
            f"{name} must be {show(want) or 'a scalar'}, got {show(got) or 'a scalar'}"
        )


def pool(x: Shape, window: Window) -> Shape:
    """Return the shape of a pooling over the last axes of ``x``.

    >>> pool((2, 3, 8), Window((2,), (2,), (0,), (0,), (1,), (1,)))
    (2, 3, 4)
    """
    axes = len(window.size)
    if not 0 < axes <= len(x):
        raise ShapeError(f"window must have 1 to {len(x)} numbers, got {list(window.size)}")
    if any(k < 1 for k in window.size):
        raise ShapeError(f"window must be at least 1, got {list(window.size)}")
    window.check(axes)
    return (*x[:-axes], *window.output(x[-axes:]))
