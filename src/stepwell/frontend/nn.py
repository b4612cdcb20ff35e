"""Neural network functions: activations, normalization, convolution, pooling. ``sw.nn``.

Images are (N, C, ...) with any number of spatial axes, weights (O, I, ...).
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

import numpy as np

from stepwell.core.shapes import Shape
from stepwell.core.shapes import composite as pooling
from stepwell.core.shapes import contraction as shapes
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
    mish,
    one_hot,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_sign,
    softplus,
    sparse_plus,
    sparse_sigmoid,
    squareplus,
    swish,
    tanh,
)
from stepwell.frontend.manipulation import permute_dims, reshape
from stepwell.frontend.normalization import (
    batch_norm,
    group_norm,
    layer_norm,
    log_softmax,
    logsumexp,
    rms_norm,
    softmax,
    standardize,
)
from stepwell.frontend.promotion import lift, same_narrow
from stepwell.frontend.reduction import mean
from stepwell.frontend.tensor import Tensor


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


def convolved(x: Tensor, w: Tensor, window: shapes.Window, groups: int) -> Tensor:
    """Return a convolution of images (N, C, ...) with filters (O, C / groups, ...)."""
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

    x : (N, C, ...)        w : (O, C / groups, ...), as many spatial axes as ``x``; of one dtype, or
        converted to one
    stride, dilation : an int, or one per spatial axis
    padding : an int, one per axis, a pair (before, after) per axis, 'SAME' or 'VALID'
    returns : (N, O, ...), (n + padding - dilation * (k - 1) - 1) // stride + 1 along each axis, or
        0
    raises ShapeError : channels or groups do not agree
    raises ValueError : stride, padding or dilation is not one number per spatial axis
    source : PyTorch's `conv2d` and its kin

    >>> import numpy as np, stepwell as sw
    >>> x, w = np.ones((1, 1, 3, 3), np.float32), np.ones((1, 1, 2, 2), np.float32)
    >>> sw.jit(sw.nn.conv)(x, w)[0, 0]
    array([[4., 4.],
           [4., 4.]], dtype=float32)
    """
    value, weights = same_narrow(x, w)
    axes = value.ndim - 2
    strides, apart = _each(stride, axes, "stride"), _each(dilation, axes, "dilation")
    size = weights.shape[2:]
    extent = tuple(shapes.dilated(k, d) for k, d in zip(size, apart, strict=True))
    low, high = _padding(padding, axes, extent, value.shape[2:], strides)
    window = shapes.Window(size, strides, low, high, (1,) * axes, apart)
    return convolved(value, weights, window, groups)


def conv_transpose(x: Any, w: Any, stride: Any = 1, padding: Any = 0, groups: int = 1) -> Tensor:
    """Spread each element of ``x`` over a window of the result: the adjoint of `conv`.

    x : (N, I, ...)        w : (I, O / groups, ...); of one dtype, or converted to one
    stride, padding : an int, or one per spatial axis
    returns : (N, O, ...), (n - 1) * stride + k - 2 * padding along each axis
    raises ValueError : the padding is more than a window allows
    source : PyTorch's `conv_transpose2d` and its kin

    >>> import numpy as np, stepwell as sw
    >>> x, w = np.ones((1, 1, 2), np.float32), np.float32([[[1, 2]]])
    >>> sw.jit(lambda x, w: sw.nn.conv_transpose(x, w, stride=2))(x, w)
    array([[[1., 2., 1., 2.]]], dtype=float32)
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
    return convolved(value, turned, window, groups)


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

    x : (N, C, ...) of numbers, whose dtype stays
    window : an int for all but the first two axes, or one per axis
    stride : that of the window where None        padding : as in `conv`
    returns : (N, C, ...), (n + padding - window) // stride + 1 along each axis, or 0
    raises ValueError : stride or padding is not one number per spatial axis
    source : PyTorch's `max_pool2d` and its kin

    >>> import numpy as np, stepwell as sw
    >>> x = np.arange(8, dtype=np.float32).reshape(1, 1, 2, 4)
    >>> sw.jit(lambda x: sw.nn.max_pool(x, 2))(x)
    array([[[[5., 7.]]]], dtype=float32)
    """
    return _pool("max_pool", x, window, stride, padding)


def avg_pool(
    x: Any, window: Any, stride: Any = None, padding: Any = 0, count_include_pad: bool = False
) -> Tensor:
    """Return the mean of each window of the last axes.

    x, window, stride, padding, returns, raises : as in `max_pool`; integers become float32
    count_include_pad : divide by the window's size also where it reaches into the padding
    source : PyTorch's `avg_pool2d`, but for `count_include_pad`, which is False here

    >>> import numpy as np, stepwell as sw
    >>> x = np.arange(8, dtype=np.float32).reshape(1, 1, 2, 4)
    >>> sw.jit(lambda x: sw.nn.avg_pool(x, 2))(x)
    array([[[[2.5, 4.5]]]], dtype=float32)
    """
    (value,) = floats(x)
    return _pool(
        "avg_pool", value, window, stride, padding, count_include_pad=bool(count_include_pad)
    )


def global_avg_pool(x: Any) -> Tensor:
    """Return the mean over the spatial axes of images.

    x : (N, C, ...); floats keep their dtype, integers become float32
    returns : (N, C)
    source : ONNX's GlobalAveragePool, without the axes of size 1

    >>> import numpy as np, stepwell as sw
    >>> x = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)
    >>> sw.jit(sw.nn.global_avg_pool)(x)
    array([[1.5, 5.5]], dtype=float32)
    """
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


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(f"module 'stepwell.nn' has no attribute '{name}'")
    if name in _NOT_HERE:
        raise AttributeError(f"stepwell.nn has no '{name}', which jax.nn has: {_NOT_HERE[name]}")
    near = get_close_matches(name, __all__, 1, 0.6)
    told = f"; the nearest is {near[0]}" if near else ""
    raise AttributeError(f"module 'stepwell.nn' has no attribute '{name}'{told}")


_NOT_HERE = {
    "dot_product_attention": "write sw.nn.softmax(q @ k.T * scale) @ v, which is one program",
    "initializers": "use sw.random",
    **dict.fromkeys(
        ("get_scaled_dot_general_config", "scaled_dot_general", "scaled_matmul"),
        "there are no scaled formats",
    ),
    "log1mexp": "write np.log(-np.expm1(-x))",
    "logmeanexp": "write sw.nn.logsumexp(x, axis) - np.log(n)",
}
"""What `jax.nn` has and this module has not, and what to write."""
