"""Pooling: the maximum or the mean over windows of images. For ``sw.nn``."""

from __future__ import annotations

from typing import Any

from stepwell.core.shapes import composite as shapes
from stepwell.core.shapes.contraction import Window
from stepwell.frontend.activations import floats
from stepwell.frontend.layers.convolution import each, padded
from stepwell.frontend.promotion import lift
from stepwell.frontend.reduction import mean
from stepwell.frontend.tensor import Tensor


def _pool(op: str, x: Any, window: Any, stride: Any, padding: Any, **properties: Any) -> Tensor:
    value = lift(x)
    axes = value.ndim - 2 if isinstance(window, int) else len(tuple(window))
    size = each(window, axes, "window")
    strides = size if stride is None else each(stride, axes, "stride")
    low, high = padded(padding, axes, size, value.shape[value.ndim - axes :], strides)
    ones = (1,) * axes
    shape = shapes.pool(value.shape, Window(size, strides, low, high, ones, ones))
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
    """Return the largest element of each window of the last axes; padding is never chosen.

    x : (N, C, ...) of numbers, which keep their dtype
    window : an int for all but the first two axes, or one per axis
    stride : None is the window's size        padding : as in `conv`
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
    count_include_pad : divide by the window's size even where it overlaps the padding
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
