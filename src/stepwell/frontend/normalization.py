"""Softmax and related functions, and normalizations, along axes.

Floats keep their dtype; integers become float32, as in JAX.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from stepwell.core.shapes import Shape, ShapeError
from stepwell.frontend import elementwise as e
from stepwell.frontend import reduction as r
from stepwell.frontend.activations import emitted, floats
from stepwell.frontend.elementwise import check_axis
from stepwell.frontend.manipulation import broadcast_to, reshape
from stepwell.frontend.promotion import SINGLE, cast
from stepwell.frontend.tensor import Tensor


def softmax(x: Any, axis: Any = -1, where: Any = None) -> Tensor:
    """Return ``exp(x) / sum(exp(x))`` along ``axis``, without overflow.

    x : an array of any shape; floats keep their dtype, integers become float32
    axis : an int, a tuple of them, or None for all
    where : booleans that broadcast to ``x``; masked elements are ignored and become 0
    raises AxisError : ``x`` has no such axis
    source : `jax.nn.softmax`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.softmax)(np.array([[0.0, 0.0], [1000.0, 0.0]]))
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    (value,) = floats(x)
    if where is None and isinstance(axis, int):
        return emitted("softmax", value, axis=check_axis(axis, value.ndim))
    chosen = _chosen(where, value)
    raised = e.exp(e.subtract(value, _greatest(value, axis, chosen)))
    raised = raised if chosen is None else e.where(chosen, raised, 0)
    return e.divide(raised, r.sum(raised, axis, keepdims=True))


def log_softmax(x: Any, axis: Any = -1, where: Any = None) -> Tensor:
    """Return ``log(softmax(x))`` along ``axis``, without overflow.

    x : an array of any shape; floats keep their dtype, integers become float32
    axis : an int, a tuple of them, or None for all
    where : booleans that broadcast to ``x``; the result is -inf where it is false
    raises AxisError : ``x`` has no such axis
    source : `jax.nn.log_softmax`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.log_softmax)(np.array([0.0, 0.0])).round(4)
    array([-0.6931, -0.6931])
    """
    (value,) = floats(x)
    if where is None and isinstance(axis, int):
        return emitted("log_softmax", value, axis=check_axis(axis, value.ndim))
    chosen = _chosen(where, value)
    shifted = e.subtract(value, _greatest(value, axis, chosen))
    raised = e.exp(shifted)
    raised = raised if chosen is None else e.where(chosen, raised, 0)
    found = e.subtract(shifted, e.log(r.sum(raised, axis, keepdims=True)))
    return found if chosen is None else e.where(chosen, found, -math.inf)


def logsumexp(
    a: Any,
    axis: Any = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: Any = None,
) -> Any:
    """Return ``log(sum(b * exp(a)))`` along ``axis``, without overflow.

    a : an array; floats keep their dtype, integers become float32
    axis : an int, a tuple of them, or None for all
    b : factors that broadcast to ``a``; the result is NaN if the sum is negative, unless
        ``return_sign``
    keepdims : leave the axes in the result, with size 1
    return_sign : return the logarithm of the sum's absolute value, and its sign
    where : booleans that broadcast to ``a``; masked elements are ignored
    raises AxisError : ``a`` has no such axis
    source : `jax.nn.logsumexp`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.logsumexp)(np.array([1000.0, 1000.0])).round(4)
    np.float64(1000.6931)
    """
    (value,) = floats(a)
    if b is None and where is None and not return_sign:
        return r.logsumexp(value, axis, keepdims=keepdims)
    chosen = _chosen(where, value)
    top = _greatest(value, axis, chosen)
    top = e.where(e.isfinite(top), top, 0)
    raised = e.exp(e.subtract(value, top))
    if b is not None:
        (factor,) = floats(b)
        raised = e.where(e.equal(factor, 0), 0, e.multiply(factor, raised))
    raised = raised if chosen is None else e.where(chosen, raised, 0)
    total = r.sum(raised, axis, keepdims=True)
    size = e.add(e.log(e.abs(total) if return_sign else total), top)
    if not keepdims:
        size, total = (r.sum(v, axis) for v in (size, total))
    return (size, e.sign(total)) if return_sign else size


def logmeanexp(x: Any, axis: Any = None, where: Any = None, keepdims: bool = False) -> Tensor:
    """Return ``log(mean(exp(x)))`` along ``axis``, without overflow.

    x : an array; floats keep their dtype, integers become float32
    axis : an int, a tuple of them, or None for all
    where : booleans that broadcast to ``x``; masked elements are ignored
    keepdims : leave the axes in the result, with size 1
    raises AxisError : ``x`` has no such axis
    source : `jax.nn.logmeanexp`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.logmeanexp)(np.array([1000.0, 1000.0]))
    array(1000.)
    """
    (value,) = floats(x)
    found = logsumexp(value, axis, keepdims=keepdims, where=where)
    if where is None:
        count: Any = math.prod(value.shape[a] for a in r.along(axis, value.ndim))
        return e.subtract(found, math.log(count) if count else -math.inf)
    chosen = _chosen(where, value)
    assert chosen is not None
    number = cast(r.sum(chosen, axis, keepdims=keepdims), value.kind)
    return e.subtract(found, e.log(number))


def _chosen(where: Any, value: Tensor) -> Tensor | None:
    return None if where is None else broadcast_to(e.truth(where), value.shape)


def _greatest(value: Tensor, axis: Any, chosen: Tensor | None) -> Tensor:
    masked = value if chosen is None else e.where(chosen, value, -math.inf)
    return r.max(masked, axis, keepdims=True)


def standardize(
    x: Any,
    axis: Any = -1,
    mean: Any = None,
    variance: Any = None,
    epsilon: Any = 1e-5,
    where: Any = None,
    *,
    algorithm: str = "fast",
) -> Tensor:
    """Return ``(x - mean) / sqrt(variance + epsilon)``.

    x : an array of any shape; floats keep their dtype, integers become float32
    axis : the axes of mean and variance: an int, a tuple of them, or None for all
    mean, variance : arrays that broadcast to ``x``; None computes them from ``x``
    where : booleans that broadcast to ``x``; mean and variance ignore masked elements
    algorithm : has no effect: the variance is always computed from the differences to the mean
    raises AxisError : ``x`` has no such axis
    source : `jax.nn.standardize`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.standardize)(np.array([1.0, 2.0, 3.0])).round(3)
    array([-1.225,  0.   ,  1.225])
    """
    (value,) = floats(x)
    middle = _mean(value, axis, where) if mean is None else floats(mean)[0]
    if variance is None:
        spread = _mean(e.square(e.subtract(value, middle)), axis, where)
    else:
        (spread,) = floats(variance)
    return e.multiply(e.subtract(value, middle), e.rsqrt(e.add(spread, epsilon)))


def _mean(value: Tensor, axis: Any, where: Any) -> Tensor:
    chosen = _chosen(where, value)
    if chosen is None:
        return r.mean(value, axis, keepdims=True)
    total = r.sum(e.where(chosen, value, 0), axis, keepdims=True)
    return e.divide(total, cast(r.sum(chosen, axis, keepdims=True), value.kind))


def layer_norm(x: Any, scale: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """Normalize each row of the last axis: ``(x - mean) / sqrt(var + eps) * scale + bias``.

    x : (..., n); floats keep their dtype, integers become float32
    scale, bias : (n,), or None for 1 and 0
    raises ShapeError : scale or bias has another shape
    source : Layer Normalization, Ba et al. 2016

    >>> import numpy as np, stepwell as sw
    >>> x = np.array([[1.0, 2.0, 3.0]])
    >>> sw.jit(sw.nn.layer_norm)(x).round(3)
    array([[-1.225,  0.   ,  1.225]])
    """
    given = [v for v in (scale, bias) if v is not None]
    values = floats(x, *given)
    value = values[0]
    _check_parameters("the last axis", value.shape[-1:], values[1:])
    normalize = value.graph.emit
    kind = (value.kind, value.shape)
    if bias is not None and scale is None:
        plain = normalize("layer_norm", [value], [kind], (), axis=value.ndim - 1, eps=float(eps))[0]
        return e.add(plain, values[1])
    return normalize("layer_norm", values, [kind], (), axis=value.ndim - 1, eps=float(eps))[0]


def rms_norm(x: Any, scale: Any, eps: float = 1e-5) -> Tensor:
    """Normalize each row of the last axis: ``x / sqrt(mean(x*x) + eps) * scale``.

    x : (..., n); floats keep their dtype, integers become float32
    scale : (n,)
    raises ShapeError : scale has another shape
    source : Root Mean Square Layer Normalization, Zhang and Sennrich 2019

    >>> import numpy as np, stepwell as sw
    >>> x = np.array([[1.0, 2.0, 3.0]])
    >>> sw.jit(sw.nn.rms_norm)(x, np.ones(3)).round(3)
    array([[0.463, 0.926, 1.389]])
    """
    values = floats(x, scale)
    value = values[0]
    _check_parameters("the last axis", value.shape[-1:], values[1:])
    kind = (value.kind, value.shape)
    return value.graph.emit("rms_norm", values, [kind], (), axis=value.ndim - 1, eps=float(eps))[0]


def batch_norm(
    x: Any, mean: Any, var: Any, scale: Any, bias: Any, eps: float = 1e-5, axis: int = 1
) -> Tensor:
    """Normalize with given statistics of each channel: for inference.

    ``(x - mean) / sqrt(var + eps) * scale + bias``

    x : any shape; floats keep their dtype, integers become float32
    mean, var, scale, bias : (c,), where c is the size of ``axis``
    raises AxisError : ``x`` has no such axis
    raises ShapeError : the four do not have the axis' size
    source : Batch Normalization, Ioffe and Szegedy 2015

    >>> import numpy as np, stepwell as sw
    >>> x, ones = np.ones((1, 2, 2), np.float32), np.ones(2, np.float32)
    >>> sw.jit(sw.nn.batch_norm)(x, ones, ones, ones, 2 * ones)
    array([[[2., 2.],
            [2., 2.]]], dtype=float32)
    """
    values = floats(x, scale, bias, mean, var)
    value = values[0]
    at = check_axis(axis, value.ndim)
    _check_parameters(f"axis {at}", value.shape[at : at + 1], values[1:])
    kind = (value.kind, value.shape)
    return value.graph.emit("batch_norm", values, [kind], (), axis=at, eps=float(eps))[0]


def group_norm(x: Any, groups: int, scale: Any, bias: Any, eps: float = 1e-5) -> Tensor:
    """Normalize each of ``groups`` groups of channels of images.

    x : (N, C, ...); floats keep their dtype, integers become float32
    groups : how many, known while tracing        eps : added to each variance
    scale, bias : (C,)
    raises ValueError : the groups do not divide the channels
    source : Group Normalization, Wu and He 2018

    >>> import numpy as np, stepwell as sw
    >>> x = np.array([[[1.0, 2.0], [3.0, 4.0]]])
    >>> sw.jit(lambda x, s, b: sw.nn.group_norm(x, 1, s, b))(x, np.ones(2), np.zeros(2)).round(3)
    array([[[-1.342, -0.447],
            [ 0.447,  1.342]]])
    """
    value, factor, offset = floats(x, scale, bias)
    n, c, *places = value.shape
    _check_parameters("axis 1", (c,), (factor, offset))
    if c % groups:
        raise ValueError(f"{groups} groups do not divide {c} channels")
    wide, each = SINGLE if value.kind.bytes < SINGLE.bytes else value.kind, (groups, c // groups, 1)
    rows = cast(reshape(value, (n, *each[:2], math.prod(places))), wide)
    centred = e.subtract(rows, r.mean(rows, axis=(2, 3), keepdims=True))
    variance = r.mean(e.square(centred), axis=(2, 3), keepdims=True)
    normal = e.multiply(centred, e.rsqrt(e.add(variance, float(eps))))
    scaled = e.multiply(normal, cast(reshape(factor, each), wide))
    moved = e.add(scaled, cast(reshape(offset, each), wide))
    return reshape(cast(moved, value.kind), value.shape)


def _check_parameters(axis: str, size: Shape, parameters: Sequence[Tensor]) -> None:
    """Refuse parameters that do not have one number for each position along an axis.

    axis : its name        size : its size, () if ``x`` has no such axis
    """
    if not size:
        raise ShapeError("the normalized value must have an axis, got a scalar")
    for each in parameters:
        if each.shape != size:
            raise ShapeError(
                f"a parameter of shape {each.shape} does not fit {axis}, which has size {size[0]}"
            )
