"""Normalizations that update running statistics, or act on single images or filters."""

from __future__ import annotations

from typing import Any

from stepwell.core.shapes import ShapeError
from stepwell.frontend import elementwise as e
from stepwell.frontend import reduction as r
from stepwell.frontend.activations import floats
from stepwell.frontend.elementwise import check_axis
from stepwell.frontend.manipulation import reshape
from stepwell.frontend.promotion import SINGLE, cast, lift
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.transformations.custom import stop_gradient


def _wide(x: Tensor) -> Tensor:
    """Return ``x`` in the dtype of means and variances: float32 at least."""
    return cast(x, SINGLE) if x.kind.bytes < SINGLE.bytes else x


def _standard(x: Tensor, axes: tuple[int, ...], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``x`` standardized along axes, its mean and its variance, with these axes kept."""
    mean = r.mean(x, axis=axes, keepdims=True)
    centred = e.subtract(x, mean)
    variance = r.mean(e.square(centred), axis=axes, keepdims=True)
    return e.multiply(centred, e.rsqrt(e.add(variance, float(eps)))), mean, variance


def _along(parameter: Any, axis: int, x: Tensor, name: str) -> Tensor:
    """Return a parameter of one number per position along an axis, to broadcast with ``x``."""
    value = lift(parameter)
    if value.shape != x.shape[axis : axis + 1]:
        raise ShapeError(
            f"the {name} is {x.shape[axis : axis + 1]}, the size of axis {axis}, got shape "
            f"{value.shape}"
        )
    shape = tuple(n if a == axis else 1 for a, n in enumerate(x.shape))
    return cast(reshape(value, shape), x.kind)


def _scaled(x: Tensor, scale: Any, bias: Any, axis: int) -> Tensor:
    found = x if scale is None else e.multiply(x, _along(scale, axis, x, "scale"))
    return found if bias is None else e.add(found, _along(bias, axis, x, "bias"))


def batch_norm_training(
    x: Any,
    mean: Any,
    var: Any,
    scale: Any = None,
    bias: Any = None,
    momentum: float = 0.9,
    eps: float = 1e-5,
    axis: int = 1,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize each channel with the mean and variance of this batch, and update running ones.

    `batch_norm` is the same layer in inference, by the running statistics.

    x : any shape; floats keep their dtype, integers become float32
    mean, var : (c,), the running statistics, where c is the size of ``axis``; they keep their dtype
    scale, bias : (c,), or None for 1 and 0
    momentum : the weight of the running statistics: ``momentum * mean + (1 - momentum) * m``,
        where m is the mean or the (biased) variance of the batch
    eps : is added to the variance of the batch
    returns : ``x`` normalized, and the new mean and variance, through which no gradient flows
    raises AxisError : ``x`` has no such axis
    raises ShapeError : a parameter does not have the axis' size
    source : Batch Normalization, Ioffe and Szegedy 2015; momentum as in Flax and ONNX

    >>> import numpy as np, stepwell as sw
    >>> x, zero, one = np.float32([[1], [3]]), np.zeros(1, np.float32), np.ones(1, np.float32)
    >>> sw.jit(sw.nn.batch_norm_training)(x, zero, one)[1:]
    (array([0.2], dtype=float32), array([1.], dtype=float32))
    """
    (value,) = floats(x)
    at = check_axis(axis, value.ndim)
    others = tuple(a for a in range(value.ndim) if a != at)
    normal, centre, spread = _standard(_wide(value), others, eps)
    new: list[Tensor] = []
    for name, old, now in (("mean", mean, centre), ("variance", var, spread)):
        running = lift(old)
        kept = e.multiply(_along(running, at, normal, f"running {name}"), momentum)
        moved = e.add(kept, e.multiply(stop_gradient(now), 1 - momentum))
        new.append(cast(reshape(moved, running.shape), floats(running)[0].kind))
    return cast(_scaled(normal, scale, bias, at), value.kind), new[0], new[1]


def instance_norm(x: Any, scale: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """Normalize each channel of each image.

    x : (N, C, ...); floats keep their dtype, integers become float32
    scale, bias : (C,), or None for 1 and 0        eps : is added to each variance
    raises ShapeError : ``x`` has fewer than 2 axes, or scale or bias has another shape
    source : Instance Normalization, Ulyanov et al. 2016

    >>> import numpy as np, stepwell as sw
    >>> x = np.array([[[1.0, 2.0, 3.0], [4.0, 4.0, 4.0]]])
    >>> sw.jit(sw.nn.instance_norm)(x).round(3)
    array([[[-1.225,  0.   ,  1.225],
            [ 0.   ,  0.   ,  0.   ]]])
    """
    (value,) = floats(x)
    if value.ndim < 2:
        raise ShapeError(f"images are (N, C, ...), got shape {value.shape}")
    normal, _, _ = _standard(_wide(value), tuple(range(2, value.ndim)), eps)
    return cast(_scaled(normal, scale, bias, 1), value.kind)


def weight_standardize(w: Any, gain: Any = None, eps: float = 1e-5) -> Tensor:
    """Bring each filter to mean 0 and variance 1, before it is used in a convolution.

    w : (O, ...), as `conv` takes it; floats keep their dtype, integers become float32
    gain : (O,), by which filters are multiplied, or None for 1
    eps : is added to each variance
    raises ShapeError : ``w`` has no axis, or the gain another shape
    source : Weight Standardization, Qiao et al. 2019

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.weight_standardize)(np.array([[1.0, 2.0, 3.0]])).round(3)
    array([[-1.225,  0.   ,  1.225]])
    """
    (value,) = floats(w)
    if not value.ndim:
        raise ShapeError("filters are (O, ...), got one number")
    normal, _, _ = _standard(_wide(value), tuple(range(1, value.ndim)), eps)
    return cast(_scaled(normal, gain, None, 0), value.kind)
