"""Neural network functions: activations, normalization, convolution, pooling. ``sw.nn``.

Images are (N, C, ...) with any number of spatial axes, weights (O, I, ...).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stepwell.core.shapes import Shape
from stepwell.core.shapes import composite as pooling
from stepwell.core.shapes import contraction as shapes
from stepwell.frontend import elementwise as e
from stepwell.frontend.activations import (
    celu,
    elu,
    floats,
    gelu,
    glu,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    identity,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    logsumexp,
    mish,
    one_hot,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_sign,
    softmax,
    softplus,
    sparse_plus,
    sparse_sigmoid,
    squareplus,
    standardize,
    swish,
    tanh,
)
from stepwell.frontend.elementwise import check_axis
from stepwell.frontend.manipulation import permute_dims, reshape
from stepwell.frontend.promotion import SINGLE, cast, lift, same_narrow
from stepwell.frontend.reduction import mean
from stepwell.frontend.tensor import Tensor


def layer_norm(x: Any, scale: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """Normalize each row of the last axis: ``(x - mean) / sqrt(var + eps) * scale + bias``.

    x : (..., n) float        scale, bias : (n,) or None
    """
    given = [v for v in (scale, bias) if v is not None]
    values = floats(x, *given)
    value = values[0]
    normalize = value.graph.emit
    kind = (value.kind, value.shape)
    if bias is not None and scale is None:
        plain = normalize("layer_norm", [value], [kind], (), axis=value.ndim - 1, eps=float(eps))[0]
        return e.add(plain, values[1])
    return normalize("layer_norm", values, [kind], (), axis=value.ndim - 1, eps=float(eps))[0]


def rms_norm(x: Any, scale: Any, eps: float = 1e-5) -> Tensor:
    """Normalize each row of the last axis: ``x / sqrt(mean(x*x) + eps) * scale``."""
    values = floats(x, scale)
    value = values[0]
    kind = (value.kind, value.shape)
    return value.graph.emit("rms_norm", values, [kind], (), axis=value.ndim - 1, eps=float(eps))[0]


def batch_norm(
    x: Any, mean: Any, var: Any, scale: Any, bias: Any, eps: float = 1e-5, axis: int = 1
) -> Tensor:
    """Normalize with known statistics of each channel: inference, nothing is learned.

    ``(x - mean) / sqrt(var + eps) * scale + bias``, all four of the size of ``axis``.
    """
    values = floats(x, scale, bias, mean, var)
    value = values[0]
    at = check_axis(axis, value.ndim)
    kind = (value.kind, value.shape)
    return value.graph.emit("batch_norm", values, [kind], (), axis=at, eps=float(eps))[0]


def group_norm(x: Any, groups: int, scale: Any, bias: Any, eps: float = 1e-5) -> Tensor:
    """Normalize each of ``groups`` groups of channels of an image (N, C, ...)."""
    value, factor, offset = floats(x, scale, bias)
    n, c, *places = value.shape
    if c % groups:
        raise ValueError(f"{groups} groups do not divide {c} channels")
    wide, each = SINGLE if value.kind.bytes < SINGLE.bytes else value.kind, (groups, c // groups, 1)
    rows = cast(reshape(value, (n, *each[:2], math.prod(places))), wide)
    centred = e.subtract(rows, mean(rows, axis=(2, 3), keepdims=True))
    variance = mean(e.square(centred), axis=(2, 3), keepdims=True)
    normal = e.multiply(centred, e.rsqrt(e.add(variance, float(eps))))
    scaled = e.multiply(normal, cast(reshape(factor, each), wide))
    moved = e.add(scaled, cast(reshape(offset, each), wide))
    return reshape(cast(moved, value.kind), value.shape)


def _each(number: Any, axes: int, what: str) -> Shape:
    """Return ``number``, an int or one int per spatial axis, as a tuple."""
    if isinstance(number, int | np.integer):
        return (int(number),) * axes
    numbers = tuple(int(n) for n in number)
    if len(numbers) != axes:
        raise ValueError(f"{what} must be an int or {axes} ints, got {number!r}")
    return numbers


def _padding(padding: Any, axes: int, extent: Shape, size: Shape, stride: Shape):
    """Return padding before and after: an int, one per axis, a pair per axis, SAME or VALID."""
    if padding == "VALID":
        return (0,) * axes, (0,) * axes
    if padding == "SAME":
        total = [
            max((-(-n // s) - 1) * s + k - n, 0)
            for n, k, s in zip(size, extent, stride, strict=True)
        ]
        return tuple(t // 2 for t in total), tuple(t - t // 2 for t in total)
    if isinstance(padding, str):
        raise ValueError(f"padding must be numbers, 'SAME' or 'VALID', got {padding!r}")
    if not isinstance(padding, int | np.integer) and any(isinstance(p, Sequence) for p in padding):
        pairs = [_each(p, 2, "padding of an axis") for p in padding]
        low, high = (tuple(p[i] for p in pairs) for i in (0, 1))
        return _each(low, axes, "padding"), _each(high, axes, "padding")
    same = _each(padding, axes, "padding")
    return same, same


def _convolve(x: Tensor, w: Tensor, window: shapes.Window, groups: int) -> Tensor:
    natural = tuple(range(x.ndim))
    layout = shapes.Layout(natural, natural, natural)
    shape = shapes.convolution(x.shape, w.shape, window, groups, layout)
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
        x_layout=natural,
        w_layout=natural,
        y_layout=natural,
    )[0]


def conv(
    x: Any, w: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """Slide each filter of ``w`` over ``x`` and sum the products (cross-correlation).

    x : (N, C, ...)        w : (O, C / groups, ...), as many spatial axes as ``x``
    stride, dilation : an int, or one per spatial axis
    padding : an int, one per axis, a pair (before, after) per axis, 'SAME' or 'VALID'
    returns : (N, O, ...), (n + padding - dilation * (k - 1) - 1) // stride + 1 along each axis

    raises ShapeError : channels do not agree
    """
    value, weights = same_narrow(x, w)
    axes = value.ndim - 2
    strides, apart = _each(stride, axes, "stride"), _each(dilation, axes, "dilation")
    size = weights.shape[2:]
    extent = tuple(shapes.dilated(k, d) for k, d in zip(size, apart, strict=True))
    low, high = _padding(padding, axes, extent, value.shape[2:], strides)
    window = shapes.Window(size, strides, low, high, (1,) * axes, apart)
    return _convolve(value, weights, window, groups)


def conv_transpose(x: Any, w: Any, stride: Any = 1, padding: Any = 0, groups: int = 1) -> Tensor:
    """Spread each element of ``x`` over a window of the result: the adjoint of `conv`.

    x : (N, I, ...)        w : (I, O / groups, ...)
    returns : (N, O, ...), (n - 1) * stride + k - 2 * padding along each axis
    """
    value, weights = same_narrow(x, w)
    axes = value.ndim - 2
    strides, around = _each(stride, axes, "stride"), _each(padding, axes, "padding")
    inputs, outputs, *size = weights.shape
    flipped = weights.graph.emit(
        "reverse", [weights], [(weights.kind, weights.shape)], (), axes=tuple(range(2, axes + 2))
    )[0]
    grouped = reshape(flipped, (groups, inputs // groups, outputs, *size))
    turned = permute_dims(grouped, (0, 2, 1, *range(3, axes + 3)))
    turned = reshape(turned, (groups * outputs, inputs // groups, *size))
    edge = tuple(k - 1 - p for k, p in zip(size, around, strict=True))
    if min(edge, default=0) < 0:
        raise ValueError(f"padding {around} is more than the window of {tuple(size)} allows")
    window = shapes.Window(tuple(size), (1,) * axes, edge, edge, strides, (1,) * axes)
    return _convolve(value, turned, window, groups)


def _pool(op: str, x: Any, window: Any, stride: Any, padding: Any, **properties: Any) -> Tensor:
    value = lift(x)
    axes = value.ndim - 2 if isinstance(window, int) else len(tuple(window))
    size = _each(window, axes, "window")
    strides = size if stride is None else _each(stride, axes, "stride")
    low, high = _padding(padding, axes, size, value.shape[value.ndim - axes :], strides)
    ones = (1,) * axes
    shape = pooling.pool(value.shape, shapes.Window(size, strides, low, high, ones, ones))
    return value.graph.emit(
        op,
        [value],
        [(value.kind, shape)],
        (),
        window=size,
        strides=strides,
        low=low,
        high=high,
        **properties,
    )[0]


def max_pool(x: Any, window: Any, stride: Any = None, padding: Any = 0) -> Tensor:
    """Return the largest element of each window of the last axes; padding never wins.

    window : an int for all but the first two axes, or one per axis
    stride : that of the window where None        padding : as in `conv`
    """
    return _pool("max_pool", x, window, stride, padding)


def avg_pool(
    x: Any, window: Any, stride: Any = None, padding: Any = 0, count_include_pad: bool = False
) -> Tensor:
    """Return the mean of each window of the last axes; see `max_pool`.

    count_include_pad : divide by the window's size also where it reaches into the padding
    """
    (value,) = floats(x)
    return _pool(
        "avg_pool", value, window, stride, padding, count_include_pad=bool(count_include_pad)
    )


def global_avg_pool(x: Any) -> Tensor:
    """Return the mean over the spatial axes of an image (N, C, ...), as (N, C)."""
    (value,) = floats(x)
    return mean(value, axis=tuple(range(2, value.ndim)))


__all__ = [
    "avg_pool",
    "batch_norm",
    "celu",
    "conv",
    "conv_transpose",
    "elu",
    "gelu",
    "global_avg_pool",
    "glu",
    "group_norm",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "layer_norm",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "logsumexp",
    "max_pool",
    "mish",
    "one_hot",
    "relu",
    "relu6",
    "rms_norm",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softmax",
    "softplus",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "standardize",
    "swish",
    "tanh",
]


def __dir__() -> list[str]:
    """Leave out what is imported."""
    return __all__
