"""Convolutions over any number of spatial axes, and their adjoints. For ``sw.nn``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stepwell.core.shapes import Shape, ShapeError
from stepwell.core.shapes import contraction as shapes
from stepwell.frontend import elementwise as e
from stepwell.frontend.manipulation import permute_dims, reshape
from stepwell.frontend.promotion import same_narrow
from stepwell.frontend.tensor import Tensor


def each(number: Any, axes: int, what: str) -> Shape:
    """Return ``number``, an int or one int per spatial axis, as a tuple."""
    if isinstance(number, int | np.integer):
        return (int(number),) * axes
    numbers = tuple(int(n) for n in number)
    if len(numbers) != axes:
        raise ValueError(f"{what} must be an int or {axes} ints, got {number!r}")
    return numbers


def padded(
    padding: Any, axes: int, extent: Shape, size: Shape, stride: Shape
) -> tuple[Shape, Shape]:
    """Return padding before and after: an int, one per axis, a pair per axis, SAME or VALID."""
    if padding == "SAME":
        total = [
            max((-(-n // s) - 1) * s + k - n, 0)
            for n, k, s in zip(size, extent, stride, strict=True)
        ]
        return tuple(t // 2 for t in total), tuple(t - t // 2 for t in total)
    return _numbered(padding, axes)


def _numbered(padding: Any, axes: int) -> tuple[Shape, Shape]:
    """Return padding before and after, given as numbers or as VALID."""
    if padding == "VALID":
        return (0,) * axes, (0,) * axes
    if isinstance(padding, str):
        raise ValueError(f"padding must be numbers, 'SAME' or 'VALID', got {padding!r}")
    if not isinstance(padding, int | np.integer) and any(isinstance(p, Sequence) for p in padding):
        pairs = [each(p, 2, "padding of an axis") for p in padding]
        low, high = (tuple(p[i] for p in pairs) for i in (0, 1))
        return each(low, axes, "padding"), each(high, axes, "padding")
    same = each(padding, axes, "padding")
    return same, same


def convolved(
    x: Tensor, w: Tensor, window: shapes.Window, groups: int, batch_groups: int = 1
) -> Tensor:
    """Return a convolution of images (N, C, ...) with filters (O, C / groups, ...)."""
    natural = tuple(range(x.ndim))
    layout = shapes.Layout(natural, natural, natural)
    shape = shapes.convolution(x.shape, w.shape, window, groups, layout, batch_groups)
    return x.graph.emit(
        "convolution",
        [x, w],
        [(x.kind, shape)],
        (),
        strides=window.strides,
        low=window.low,
        high=window.high,
        lhs_dilation=window.lhs_dilation,
        rhs_dilation=window.rhs_dilation,
        groups=groups,
        batch_groups=batch_groups,
        x_layout=natural,
        w_layout=natural,
        y_layout=natural,
    )[0]


def _operands(x: Any, w: Any, bias: Any) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return images, filters and bias in one dtype, with their ranks checked."""
    value, weights, *shift = same_narrow(x, w) if bias is None else same_narrow(x, w, bias)
    if value.ndim < 2 or weights.ndim != value.ndim:
        raise ShapeError(
            f"images are (N, C, ...) and filters have as many axes, got shapes {value.shape} and "
            f"{weights.shape}"
        )
    return value, weights, shift[0] if shift else None


def _shifted(found: Tensor, bias: Tensor | None) -> Tensor:
    """Add the bias to each channel."""
    if bias is None:
        return found
    if bias.shape != found.shape[1:2]:
        raise ShapeError(f"a bias is {found.shape[1:2]}, one for each channel, got {bias.shape}")
    return e.add(found, reshape(bias, (*bias.shape, *(1,) * (found.ndim - 2))))


def conv(
    x: Any,
    w: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    bias: Any = None,
) -> Tensor:
    """Slide each filter of ``w`` over ``x`` and sum the products (cross-correlation).

    x : (N, C, ...)        w : (O, C / groups, ...), as many spatial axes as ``x``; of one dtype, or
        converted to one
    stride, dilation : an int, or one per spatial axis
    padding : an int, one per axis, a pair (before, after) per axis, 'SAME' or 'VALID'
    bias : (O,), added to the channels; None adds nothing
    returns : (N, O, ...), (n + padding - dilation * (k - 1) - 1) // stride + 1 along each axis, or
        0; float16 and bfloat16 are summed in float32
    raises ShapeError : axes, channels or groups do not agree
    raises ValueError : stride, padding or dilation is not one number per spatial axis
    source : PyTorch's `conv2d` and its kin

    >>> import numpy as np, stepwell as sw
    >>> x, w = np.ones((1, 1, 3, 3), np.float32), np.ones((1, 1, 2, 2), np.float32)
    >>> sw.jit(sw.nn.conv)(x, w)[0, 0]
    array([[4., 4.],
           [4., 4.]], dtype=float32)
    """
    value, weights, shift = _operands(x, w, bias)
    axes = value.ndim - 2
    strides, apart = each(stride, axes, "stride"), each(dilation, axes, "dilation")
    size = weights.shape[2:]
    extent = tuple(shapes.dilated(k, d) for k, d in zip(size, apart, strict=True))
    low, high = padded(padding, axes, extent, value.shape[2:], strides)
    window = shapes.Window(size, strides, low, high, (1,) * axes, apart)
    return _shifted(convolved(value, weights, window, groups), shift)


def conv_transpose(
    x: Any,
    w: Any,
    stride: Any = 1,
    padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
    output_padding: Any = 0,
    bias: Any = None,
) -> Tensor:
    """Spread each element of ``x`` over a window of the result: the adjoint of `conv`.

    x : (N, I, ...)        w : (I, O / groups, ...); of one dtype, or converted to one
    stride, dilation : an int, or one per spatial axis
    padding : an int, one per axis or a pair (before, after) per axis, which is cropped from the
        result; 'VALID' crops nothing, 'SAME' makes it n * stride along each axis
    output_padding : an int, or one per spatial axis: elements added at the result's end
    bias : (O,), added to the channels; None adds nothing
    returns : (N, O, ...), (n - 1) * stride + dilation * (k - 1) + 1 - padding + output_padding
        along each axis
    raises ShapeError : axes, channels or groups do not agree
    raises ValueError : the padding is more than a window allows, or not one number per axis
    source : PyTorch's `conv_transpose2d` and its kin; 'SAME' as in `jax.lax.conv_transpose`

    >>> import numpy as np, stepwell as sw
    >>> x, w = np.ones((1, 1, 2), np.float32), np.float32([[[1, 2]]])
    >>> sw.jit(lambda x, w: sw.nn.conv_transpose(x, w, stride=2))(x, w)
    array([[[1., 2., 1., 2.]]], dtype=float32)
    """
    value, weights, shift = _operands(x, w, bias)
    axes = value.ndim - 2
    strides, apart = each(stride, axes, "stride"), each(dilation, axes, "dilation")
    inputs, outputs, *size = weights.shape
    if groups < 1 or inputs % groups or inputs != value.shape[1]:
        raise ShapeError(
            f"{groups} groups of images with {value.shape[1]} channels do not fit filters of shape "
            f"{weights.shape}: they are (channels, results / groups, ...)"
        )
    flipped = weights.graph.emit(
        "reverse", [weights], [(weights.kind, weights.shape)], (), axes=tuple(range(2, axes + 2))
    )[0]
    grouped = reshape(flipped, (groups, inputs // groups, outputs, *size))
    turned = permute_dims(grouped, (0, 2, 1, *range(3, axes + 3)))
    turned = reshape(turned, (groups * outputs, inputs // groups, *size))
    extent = tuple(shapes.dilated(k, d) for k, d in zip(size, apart, strict=True))
    low, high = _cut(padding, axes, extent, strides)
    longer = each(output_padding, axes, "output_padding")
    low = tuple(k - 1 - p for k, p in zip(extent, low, strict=True))
    high = tuple(k - 1 - p + o for k, p, o in zip(extent, high, longer, strict=True))
    if min((*low, *high), default=0) < 0:
        raise ValueError(f"padding {padding} is more than the window of {extent} allows")
    window = shapes.Window(tuple(size), (1,) * axes, low, high, strides, apart)
    return _shifted(convolved(value, turned, window, groups), shift)


def _cut(padding: Any, axes: int, extent: Shape, strides: Shape) -> tuple[Shape, Shape]:
    """Return how much of a transposed convolution's result is cropped before and after."""
    if padding != "SAME":
        return _numbered(padding, axes)
    more = [k - s for k, s in zip(extent, strides, strict=True)]
    low = tuple(max(m, 0) // 2 for m in more)
    return low, tuple(m - b for m, b in zip(more, low, strict=True))
