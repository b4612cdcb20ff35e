"""Distributions whose samples are functions of one uniform random number each."""

from __future__ import annotations

import math
from typing import Any

from stepwell.core.dtypes import DType
from stepwell.core.shapes import Shape
from stepwell.frontend import elementwise as e
from stepwell.frontend.drawing import (
    drawing,
    float_dtype,
    opened,
    parameter,
    spread,
    unit,
    wide_dtype,
)
from stepwell.frontend.normal_quantile import normal_quantile
from stepwell.frontend.operands import WIDE, array
from stepwell.frontend.promotion import cast, is_number
from stepwell.frontend.tensor import Tensor


@drawing("shape", "dtype")
def uniform(
    key: Any, shape: Any = None, dtype: Any = float, minval: Any = 0.0, maxval: Any = 1.0
) -> Tensor:
    """Return uniform samples from [minval, maxval); rounding may give maxval.

    key : (2,) uint32, from `key`
    shape : an int or a tuple of them; None is the broadcast shape of the parameters
    dtype : of floats; float is float64. The numbers are multiples of 2^-52 in float64, 2^-24 in
        float32
    minval, maxval : numbers or arrays
    raises TypeError : the dtype is not a float dtype, or the key is invalid
    raises ValueError : the parameters do not broadcast to the shape
    source : `jax.random.uniform`

    >>> import numpy as np, stepwell as sw
    >>> sw.random.uniform(sw.random.key(7), 3).round(4)
    array([0.4552, 0.9053, 0.0581])
    """
    kind = float_dtype(dtype)
    drawn = unit(key, spread(shape, minval, maxval), kind)
    if is_number(minval) and is_number(maxval) and (minval, maxval) == (0, 1):
        return drawn
    low, high = parameter(minval, kind), parameter(maxval, kind)
    wide = high - low
    return cast(e.add(e.multiply(drawn, wide), low), kind)


@drawing("shape", "dtype")
def normal(
    key: Any, shape: Any = None, dtype: Any = float, loc: Any = 0.0, scale: Any = 1.0
) -> Tensor:
    """Return samples of the normal distribution.

    key : (2,) uint32, from `key`
    shape : an int or a tuple of them; None is the broadcast shape of the parameters
    dtype : of floats; float is float64
    loc, scale : mean and standard deviation, numbers or arrays
    raises TypeError : the dtype is not a float dtype, or the key is invalid
    raises ValueError : the parameters do not broadcast to the shape
    source : `jax.random.normal`

    >>> import numpy as np, stepwell as sw
    >>> sw.random.normal(sw.random.key(7), 3).round(4)
    array([-0.1126,  1.3125, -1.5707])
    """
    kind = float_dtype(dtype)
    found = standard_normal(key, spread(shape, loc, scale), kind)
    return moved(found, loc, scale)


def standard_normal(key: Any, shape: Shape, kind: DType, start: int = 0) -> Tensor:
    """Return samples of the normal distribution with mean 0 and standard deviation 1."""
    wide = wide_dtype(kind)
    return cast(normal_quantile(opened(unit(key, shape, wide, start))), kind)


def moved(found: Tensor, loc: Any, scale: Any) -> Tensor:
    """Return samples scaled by ``scale`` and shifted by ``loc``."""
    if not (is_number(scale) and scale == 1):
        found = e.multiply(found, parameter(scale, found.kind))
    if not (is_number(loc) and loc == 0):
        found = e.add(found, parameter(loc, found.kind))
    return found


@drawing("shape", "dtype")
def truncated_normal(
    key: Any, lower: Any = -2.0, upper: Any = 2.0, shape: Any = None, dtype: Any = float
) -> Tensor:
    """Return samples of the normal distribution truncated to [lower, upper].

    key : (2,) uint32, from `key`
    lower, upper : numbers or arrays
    shape : an int or a tuple of them; None is the broadcast shape of the parameters
    dtype : of floats; float is float64
    raises TypeError : the dtype is not a float dtype, or the key is invalid
    raises ValueError : the parameters do not broadcast to the shape
    source : `jax.random.truncated_normal`

    >>> import numpy as np, stepwell as sw
    >>> sw.random.truncated_normal(sw.random.key(7), -1.0, 1.0, 3).round(4)
    array([-0.0768,  0.7611, -0.8476])
    """
    kind = float_dtype(dtype)
    wide = wide_dtype(kind)
    low, high = (cast(array(v), wide) for v in (lower, upper))
    first, last = (e.multiply(e.erfc(e.multiply(v, -math.sqrt(0.5))), 0.5) for v in (low, high))
    drawn = opened(unit(key, spread(shape, lower, upper), wide))
    found = normal_quantile(e.add(first, e.multiply(drawn, e.subtract(last, first))))
    return cast(e.minimum(e.maximum(found, low), high), kind)


@drawing("shape", "dtype")
def exponential(key: Any, shape: Any = None, dtype: Any = float, scale: Any = 1.0) -> Tensor:
    """Return samples of the exponential distribution.

    key : (2,) uint32, from `key`
    shape : an int or a tuple of them; None is the broadcast shape of the parameters
    dtype : of floats; float is float64
    scale : the mean, a number or an array
    raises TypeError : the dtype is not a float dtype, or the key is invalid
    raises ValueError : the parameters do not broadcast to the shape
    source : `jax.random.exponential`

    >>> import numpy as np, stepwell as sw
    >>> sw.random.exponential(sw.random.key(7), 3).round(4)
    array([0.6073, 2.3574, 0.0599])
    """
    kind = float_dtype(dtype)
    drawn = unit(key, spread(shape, scale), wide_dtype(kind))
    return moved(cast(e.negative(e.log1p(e.negative(drawn))), kind), 0, scale)


@drawing("shape", "dtype")
def gumbel(
    key: Any, shape: Any = None, dtype: Any = float, loc: Any = 0.0, scale: Any = 1.0
) -> Tensor:
    """Return samples of the Gumbel distribution.

    key : (2,) uint32, from `key`
    shape : an int or a tuple of them; None is the broadcast shape of the parameters
    dtype : of floats; float is float64
    loc, scale : the mode and the scale, numbers or arrays
    raises TypeError : the dtype is not a float dtype, or the key is invalid
    raises ValueError : the parameters do not broadcast to the shape
    source : `jax.random.gumbel`

    >>> import numpy as np, stepwell as sw
    >>> sw.random.gumbel(sw.random.key(7), 3).round(4)
    array([ 0.2394,  2.3081, -1.0456])
    """
    kind = float_dtype(dtype)
    return moved(standard_gumbel(key, spread(shape, loc, scale), kind), loc, scale)


def standard_gumbel(key: Any, shape: Shape, kind: DType) -> Tensor:
    """Return samples of the Gumbel distribution at 0 with scale 1."""
    drawn = opened(unit(key, shape, wide_dtype(kind)))
    return cast(e.negative(e.log(e.negative(e.log(drawn)))), kind)


@drawing("shape", "dtype")
def laplace(
    key: Any, shape: Any = None, dtype: Any = float, loc: Any = 0.0, scale: Any = 1.0
) -> Tensor:
    """Return samples of the Laplace distribution.

    key : (2,) uint32, from `key`
    shape : an int or a tuple of them; None is the broadcast shape of the parameters
    dtype : of floats; float is float64
    loc, scale : the mean and the scale, numbers or arrays
    raises TypeError : the dtype is not a float dtype, or the key is invalid
    raises ValueError : the parameters do not broadcast to the shape
    source : `jax.random.laplace`

    >>> import numpy as np, stepwell as sw
    >>> sw.random.laplace(sw.random.key(7), 3).round(4)
    array([-0.0939,  1.6642, -2.1521])
    """
    kind = float_dtype(dtype)
    drawn = opened(unit(key, spread(shape, loc, scale), wide_dtype(kind)))
    rises = e.log(e.multiply(drawn, 2.0))
    falls = e.negative(e.log(e.multiply(e.subtract(1.0, drawn), 2.0)))
    return moved(cast(e.where(e.less(drawn, 0.5), rises, falls), kind), loc, scale)


@drawing("shape", "dtype")
def logistic(
    key: Any, shape: Any = None, dtype: Any = float, loc: Any = 0.0, scale: Any = 1.0
) -> Tensor:
    """Return samples of the logistic distribution.

    key : (2,) uint32, from `key`
    shape : an int or a tuple of them; None is the broadcast shape of the parameters
    dtype : of floats; float is float64
    loc, scale : the mean and the scale, numbers or arrays
    raises TypeError : the dtype is not a float dtype, or the key is invalid
    raises ValueError : the parameters do not broadcast to the shape
    source : `jax.random.logistic`

    >>> import numpy as np, stepwell as sw
    >>> sw.random.logistic(sw.random.key(7), 3).round(4)
    array([-0.1798,  2.2579, -2.7853])
    """
    kind = float_dtype(dtype)
    drawn = opened(unit(key, spread(shape, loc, scale), wide_dtype(kind)))
    found = e.subtract(e.log(drawn), e.log1p(e.negative(drawn)))
    return moved(cast(found, kind), loc, scale)


@drawing("shape", "dtype")
def cauchy(
    key: Any, shape: Any = None, dtype: Any = float, loc: Any = 0.0, scale: Any = 1.0
) -> Tensor:
    """Return samples of the Cauchy distribution.

    key : (2,) uint32, from `key`
    shape : an int or a tuple of them; None is the broadcast shape of the parameters
    dtype : of floats; float is float64
    loc, scale : the median and the scale, numbers or arrays
    raises TypeError : the dtype is not a float dtype, or the key is invalid
    raises ValueError : the parameters do not broadcast to the shape
    source : `jax.random.cauchy`

    >>> import numpy as np, stepwell as sw
    >>> sw.random.cauchy(sw.random.key(7), 3).round(4)
    array([-0.1418,  3.2626, -5.4156])
    """
    kind = float_dtype(dtype)
    drawn = opened(unit(key, spread(shape, loc, scale), wide_dtype(kind)))
    return moved(cast(e.tan(e.multiply(e.subtract(drawn, 0.5), math.pi)), kind), loc, scale)


@drawing("shape", "dtype")
def rayleigh(key: Any, shape: Any = None, dtype: Any = float, scale: Any = 1.0) -> Tensor:
    """Return samples of the Rayleigh distribution.

    key : (2,) uint32, from `key`
    shape : an int or a tuple of them; None is the broadcast shape of the parameters
    dtype : of floats; float is float64
    scale : the mode, a number or an array
    raises TypeError : the dtype is not a float dtype, or the key is invalid
    raises ValueError : the parameters do not broadcast to the shape
    source : `jax.random.rayleigh`

    >>> import numpy as np, stepwell as sw
    >>> sw.random.rayleigh(sw.random.key(7), 3).round(4)
    array([1.1021, 2.1713, 0.3461])
    """
    kind = float_dtype(dtype)
    drawn = unit(key, spread(shape, scale), wide_dtype(kind))
    found = e.sqrt(e.multiply(e.log1p(e.negative(drawn)), -2.0))
    return moved(cast(found, kind), 0, scale)


@drawing("shape")
def bernoulli(key: Any, p: Any = 0.5, shape: Any = None) -> Tensor:
    """Return booleans that are true with probability ``p``.

    key : (2,) uint32, from `key`
    p : probabilities in [0, 1]
    shape : an int or a tuple of them; None is the broadcast shape of the parameters
    raises TypeError : the key is invalid
    raises ValueError : the parameters do not broadcast to the shape
    source : `jax.random.bernoulli`

    >>> import numpy as np, stepwell as sw
    >>> sw.random.bernoulli(sw.random.key(7), 0.5, 4)
    array([ True, False,  True,  True])
    """
    sizes = spread(shape, p)
    return e.less(unit(key, sizes, WIDE), parameter(p, WIDE))
