"""Shapes of general dot products, matrix products and convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stepwell.core.shapes import DYNAMIC, Shape, ShapeError, same_size, show


def dot_general(
    x: Shape,
    w: Shape,
    batch: tuple[Sequence[int], Sequence[int]],
    contract: tuple[Sequence[int], Sequence[int]],
) -> Shape:
    """Return the result's shape: batch axes, the free axes of ``x``, then those of ``w``.

    >>> dot_general((5, 2, 3), (5, 3, 7), ((0,), (0,)), ((2,), (1,)))
    (5, 2, 7)
    """
    for name, shape, side in (("left", x, 0), ("right", w, 1)):
        named = (*batch[side], *contract[side])
        if len(set(named)) != len(named) or any(not 0 <= a < len(shape) for a in named):
            raise ShapeError(
                f"batch and contract must name axes of the {name} operand once each, "
                f"from 0 to {len(shape) - 1}, got {list(named)}"
            )
    for what, (left, right) in (("batch", batch), ("contract", contract)):
        if len(left) != len(right):
            raise ShapeError(
                f"{what} must pair axes, got {len(left)} of the left and {len(right)} of the right"
            )
        for a, b in zip(left, right, strict=True):
            if same_size(x[a], w[b]) is None:
                raise ShapeError(
                    f"{what} axes {a} and {b} must have one size, got {x[a]} and {w[b]}"
                )
    sizes = [max(x[a], w[b]) for a, b in zip(*batch, strict=True)]
    free_x, free_w = (
        free_axes(len(x), batch[0], contract[0]),
        free_axes(len(w), batch[1], contract[1]),
    )
    return (*sizes, *(x[a] for a in free_x), *(w[a] for a in free_w))


def free_axes(rank: int, batch: Sequence[int], contract: Sequence[int]) -> tuple[int, ...]:
    """Return the axes that are neither batch nor contracted, in order.

    >>> free_axes(3, [0], [2])
    (1,)
    """
    return tuple(a for a in range(rank) if a not in batch and a not in contract)


def matmul(x: Shape, w: Shape) -> Shape:
    """Return the shape of ``x @ w`` as in NumPy, except that batch axes are not broadcast.

    Batch axes must agree, or one operand must have none.

    >>> matmul((5, 2, 3), (3, 7)), matmul((3,), (3, 7)), matmul((3,), (3,))
    ((5, 2, 7), (7,), ())
    """
    if not x or not w:
        raise ShapeError("operands of a matrix product must have at least one axis")
    inner = w[0] if len(w) == 1 else w[-2]
    if same_size(x[-1], inner) is None:
        raise ShapeError(
            f"inner sizes must match: {show(x)} by {show(w)} has {x[-1]} against {inner}"
        )
    left, right = x[:-2], w[:-2]
    if left and right:
        pairs = [same_size(a, b) for a, b in zip(left, right, strict=False)]
        if len(left) != len(right) or None in pairs:
            raise ShapeError(
                f"batch axes must agree, got {show(x)} by {show(w)}; broadcast one of them first"
            )
        batch = tuple(n for n in pairs if n is not None)
    else:
        batch = left or right
    return (*batch, *(x[-2:-1] if len(x) > 1 else ()), *(w[-1:] if len(w) > 1 else ()))


@dataclass(frozen=True)
class Window:
    """The geometry of a window along each spatial axis, one number per axis."""

    size: Shape
    strides: Shape
    low: Shape
    """Elements of padding before the first."""
    high: Shape
    """Elements of padding after the last."""
    lhs_dilation: Shape
    """The distance of the input's elements, with zeros between them."""
    rhs_dilation: Shape
    """The distance of the window's elements."""

    def output(self, sizes: Shape) -> Shape:
        """Return the number of window positions along each axis of an input of ``sizes``."""
        return tuple(
            DYNAMIC
            if n == DYNAMIC or k == DYNAMIC
            else places(low + dilated(n, spread) + high, dilated(k, apart), stride)
            for n, k, stride, low, high, spread, apart in zip(
                sizes,
                self.size,
                self.strides,
                self.low,
                self.high,
                self.lhs_dilation,
                self.rhs_dilation,
                strict=True,
            )
        )

    def check(self, axes: int) -> None:
        """Refuse lists of the wrong length, and invalid numbers."""
        lists = {
            "strides": (self.strides, 1),
            "low": (self.low, 0),
            "high": (self.high, 0),
            "lhs_dilation": (self.lhs_dilation, 1),
            "rhs_dilation": (self.rhs_dilation, 1),
        }
        for name, (numbers, least) in lists.items():
            if len(numbers) != axes:
                raise ShapeError(
                    f"{name} must have one number per spatial axis ({axes}), got {list(numbers)}"
                )
            if any(n < least for n in numbers):
                raise ShapeError(f"{name} must be at least {least}, got {list(numbers)}")


def dilated(n: int, apart: int) -> int:
    """Return the extent of ``n`` elements at a distance of ``apart``.

    >>> dilated(3, 2), dilated(0, 2)
    (5, 0)
    """
    return (n - 1) * apart + 1 if n > 0 else 0


def places(extent: int, window: int, stride: int) -> int:
    """Return the number of positions of a window.

    >>> places(10, 3, 2), places(2, 3, 1)
    (4, 0)
    """
    return (extent - window) // stride + 1 if extent >= window else 0


@dataclass(frozen=True)
class Layout:
    """The order of axes: batch (or output features), features, then the spatial axes."""

    x: Shape
    """Batch, input features, spatial axes."""
    w: Shape
    """Output features, input features of one group, spatial axes."""
    y: Shape
    """Batch, output features, spatial axes."""


def convolution(
    x: Shape, w: Shape, window: Window, groups: int, layout: Layout, batch_groups: int = 1
) -> Shape:
    """Return the shape of a convolution; ``window.size`` is that of ``w``.

    >>> one = (1,); plain = Window((3,), one, (0,), (0,), one, one); natural = (0, 1, 2)
    >>> convolution((2, 4, 10), (6, 4, 3), plain, 1, Layout(natural, natural, natural))
    (2, 6, 8)
    """
    rank = len(x)
    if rank < 2 or len(w) != rank:
        raise ShapeError(f"operands must have one rank of at least 2, got {show(x)} and {show(w)}")
    for name, spec in (("x_layout", layout.x), ("w_layout", layout.w), ("y_layout", layout.y)):
        if sorted(spec) != list(range(rank)):
            raise ShapeError(f"{name} must name each of {rank} axes once, got {list(spec)}")
    window.check(rank - 2)
    n, c = x[layout.x[0]], x[layout.x[1]]
    out, inner = w[layout.w[0]], w[layout.w[1]]
    if groups < 1 or (out != DYNAMIC and out % groups):
        raise ShapeError(f"groups ({groups}) must divide the {out} output features")
    _check_batch_groups(n, out, groups, batch_groups)
    if c != DYNAMIC and inner != DYNAMIC and c != inner * groups:
        raise ShapeError(
            f"{c} input features must be {groups} groups of the window's {inner} features"
        )
    if 0 in window.size:
        raise ShapeError(f"window must have at least one element, got {show(w)}")
    sizes = window.output(tuple(x[a] for a in layout.x[2:]))
    result = [0] * rank
    each = n if n == DYNAMIC else n // batch_groups
    for axis, size in zip(layout.y, (each, out, *sizes), strict=True):
        result[axis] = size
    return tuple(result)


def _check_batch_groups(n: int, out: int, groups: int, batch_groups: int) -> None:
    """Refuse batch groups of unequal size, or together with feature groups."""
    for size, what in ((n, "images of the batch"), (out, "output features")):
        if batch_groups < 1 or (size != DYNAMIC and size % batch_groups):
            raise ShapeError(f"batch_groups ({batch_groups}) must divide the {size} {what}")
    if groups > 1 and batch_groups > 1:
        raise ShapeError(
            f"groups are of features or of the batch, got {groups} and {batch_groups} of them"
        )
