"""Weight initializers: functions that return functions of a key, a shape and a dtype.

``init = sw.nn.initializers.glorot_uniform(); w = init(key, (n, m))``. They work inside and outside
of a function given to `stepwell.jit`. The default dtype is float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stepwell.core.dtypes import DType
from stepwell.frontend import creation
from stepwell.frontend import distributions as d
from stepwell.frontend import elementwise as e
from stepwell.frontend import reduction as r
from stepwell.frontend.creation import checked_shape
from stepwell.frontend.drawing import drawing, float_dtype, wide_dtype
from stepwell.frontend.elementwise import check_axis
from stepwell.frontend.lax_control import fori_loop
from stepwell.frontend.linear_algebra import matmul
from stepwell.frontend.manipulation import moveaxis, reshape, swapaxes
from stepwell.frontend.promotion import cast
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.tracing import active_trace
from stepwell.runtime.entry import numpy_dtype

Initializer = Callable[..., Any]
Axes = int | Sequence[int]

__all__ = [
    "constant",
    "delta_orthogonal",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]


def _kind(*dtypes: Any) -> DType:
    """Return the first dtype that is not None, checked to be of floats; float32 if all are None."""
    given = [dtype for dtype in dtypes if dtype is not None]
    return float_dtype(given[0] if given else np.float32)


def zeros(key: Any, shape: Any, dtype: Any = None) -> Any:
    """Return zeros.

    key : unused, may be None        shape : a tuple of ints
    dtype : of floats; None is float32
    raises TypeError : the dtype is not a float dtype
    source : `jax.nn.initializers.zeros`

    >>> import stepwell as sw
    >>> sw.nn.initializers.zeros(None, (2,))
    array([0., 0.], dtype=float32)
    """
    return constant(0.0)(key, shape, dtype)


def ones(key: Any, shape: Any, dtype: Any = None) -> Any:
    """Return ones.

    key : unused, may be None        shape : a tuple of ints
    dtype : of floats; None is float32
    raises TypeError : the dtype is not a float dtype
    source : `jax.nn.initializers.ones`

    >>> import stepwell as sw
    >>> sw.nn.initializers.ones(None, (2,))
    array([1., 1.], dtype=float32)
    """
    return constant(1.0)(key, shape, dtype)


def constant(value: Any, dtype: Any = None) -> Initializer:
    """Return an initializer that fills arrays with a value.

    value : a number, or an array that broadcasts to the shape
    dtype : the default dtype, of floats; None is float32
    returns : a function of a key, which is unused, a shape and a dtype
    source : `jax.nn.initializers.constant`

    >>> import stepwell as sw
    >>> sw.nn.initializers.constant(0.5)(None, (2,))
    array([0.5, 0.5], dtype=float32)
    """

    own = dtype

    def init(key: Any, shape: Any, dtype: Any = None) -> Any:
        kind, sizes = _kind(dtype, own), checked_shape(shape)
        if active_trace() is None:
            return np.full(sizes, value, numpy_dtype(kind.name))
        return creation.full(sizes, value, kind)

    return init


def uniform(scale: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Return an initializer that draws from the uniform distribution over [0, scale).

    scale : a number        dtype : the default dtype, of floats; None is float32
    returns : a function of a key, a shape and a dtype
    source : `jax.nn.initializers.uniform`

    >>> import stepwell as sw
    >>> sw.nn.initializers.uniform(10.0)(sw.random.key(7), (2,)).round(3)
    array([8.441, 4.262], dtype=float32)
    """

    own = dtype

    def init(key: Any, shape: Any, dtype: Any = None) -> Any:
        return d.uniform(key, shape, _kind(dtype, own), 0.0, scale)

    return init


def normal(stddev: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Return an initializer that draws from the normal distribution with mean 0.

    stddev : its standard deviation
    dtype : the default dtype, of floats; None is float32
    returns : a function of a key, a shape and a dtype
    source : `jax.nn.initializers.normal`

    >>> import stepwell as sw
    >>> sw.nn.initializers.normal(5.0)(sw.random.key(7), (2,)).round(3)
    array([ 5.057, -0.931], dtype=float32)
    """

    own = dtype

    def init(key: Any, shape: Any, dtype: Any = None) -> Any:
        return d.normal(key, shape, _kind(dtype, own), 0.0, stddev)

    return init


def truncated_normal(
    stddev: Any = 1e-2, dtype: Any = None, lower: Any = -2.0, upper: Any = 2.0
) -> Initializer:
    """Return an initializer that draws from a truncated normal distribution.

    stddev : the standard deviation before truncation; it scales the bounds too
    dtype : the default dtype, of floats; None is float32
    lower, upper : the bounds, in standard deviations
    returns : a function of a key, a shape and a dtype
    source : `jax.nn.initializers.truncated_normal`

    >>> import stepwell as sw
    >>> sw.nn.initializers.truncated_normal(5.0)(sw.random.key(7), (2,)).round(3)
    array([ 4.74 , -0.888], dtype=float32)
    """

    own = dtype

    def init(key: Any, shape: Any, dtype: Any = None) -> Any:
        return d.truncated_normal(key, lower, upper, shape, _kind(dtype, own)) * stddev

    return init


_OF_TRUNCATED = 0.87962566103423978
"""The standard deviation of the standard normal distribution truncated to [-2, 2]."""
_MODES: dict[str, Callable[[float, float], float]] = {
    "fan_in": lambda n, m: n,
    "fan_out": lambda n, m: m,
    "fan_avg": lambda n, m: (n + m) / 2,
    "fan_geo_avg": lambda n, m: math.sqrt(n * m),
}


def _fans(shape: Sequence[int], in_axis: Axes, out_axis: Axes, batch_axis: Axes) -> Any:
    """Return the fan-in and fan-out of weights: axes of windows multiply both."""
    groups = [(a,) if isinstance(a, int) else tuple(a) for a in (in_axis, out_axis, batch_axis)]
    rank = len(shape)
    if rank < len(groups[0]) + len(groups[1]) or rank <= max(map(len, groups[:2])):
        raise ValueError(
            f"weights of shape {tuple(shape)} have no axes {in_axis} and {out_axis} of inputs and "
            "results: a matrix at least is needed"
        )
    axes = [[check_axis(a, rank) for a in group] for group in groups]
    inputs, outputs, batch = (math.prod(shape[a] for a in group) for group in axes)
    window = math.prod(shape) / max(inputs * outputs * batch, 1)
    return inputs * window, outputs * window


def variance_scaling(
    scale: Any,
    mode: str,
    distribution: str,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
    dtype: Any = None,
) -> Initializer:
    """Return an initializer that draws weights of mean 0 and variance ``scale / n``.

    scale : a number
    mode : defines n: 'fan_in' the number of inputs, 'fan_out' that of results, 'fan_avg' their
        mean, 'fan_geo_avg' their geometric mean; other axes than those below are windows, which
        multiply both
    distribution : 'normal', 'truncated_normal' (to two standard deviations, then scaled to the
        variance) or 'uniform'
    in_axis, out_axis, batch_axis : an int or a tuple of them; `stepwell.nn.conv` has results at 0
        and inputs at 1
    dtype : the default dtype, of floats; None is float32
    returns : a function of a key, a shape and a dtype
    raises ValueError : the mode or distribution is unknown; at a call, if the shape lacks axes
    source : `jax.nn.initializers.variance_scaling`

    >>> import stepwell as sw
    >>> init = sw.nn.initializers.variance_scaling(1.0, "fan_in", "normal")
    >>> init(sw.random.key(7), (4, 2)).shape
    (4, 2)
    """
    if mode not in _MODES:
        raise ValueError(f"the mode is one of {', '.join(map(repr, _MODES))}, got {mode!r}")
    if distribution not in ("normal", "truncated_normal", "uniform"):
        raise ValueError(
            f"the distribution is 'normal', 'truncated_normal' or 'uniform', got {distribution!r}"
        )

    own = dtype

    def init(key: Any, shape: Any, dtype: Any = None) -> Any:
        sizes, kind = checked_shape(shape), _kind(dtype, own)
        number = _MODES[mode](*_fans(sizes, in_axis, out_axis, batch_axis))
        deviation = math.sqrt(scale / number) if number else 0.0
        if distribution == "normal":
            return d.normal(key, sizes, kind, 0.0, deviation)
        if distribution == "uniform":
            limit = math.sqrt(3) * deviation
            return d.uniform(key, sizes, kind, -limit, limit)
        return d.truncated_normal(key, -2.0, 2.0, sizes, kind) * (deviation / _OF_TRUNCATED)

    return init


def _named(name: str, scale: float, mode: str, distribution: str, who: str) -> Callable[..., Any]:
    """Return the factory of a named initializer."""

    def make(
        in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: Any = None
    ) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""Return `variance_scaling` by {scale:g}, {mode!r} and {distribution!r}.

    in_axis, out_axis, batch_axis, dtype, returns, raises : as in `variance_scaling`
    source : `jax.nn.initializers.{name}`; {who}

    >>> import stepwell as sw
    >>> sw.nn.initializers.{name}()(sw.random.key(7), (4, 2)).shape
    (4, 2)
    """
    return make


_GLOROT, _LECUN, _HE = "Glorot and Bengio 2010", "LeCun et al. 1998", "He et al. 2015"
glorot_uniform = _named("glorot_uniform", 1.0, "fan_avg", "uniform", _GLOROT)
glorot_normal = _named("glorot_normal", 1.0, "fan_avg", "truncated_normal", _GLOROT)
lecun_uniform = _named("lecun_uniform", 1.0, "fan_in", "uniform", _LECUN)
lecun_normal = _named("lecun_normal", 1.0, "fan_in", "truncated_normal", _LECUN)
he_uniform = _named("he_uniform", 2.0, "fan_in", "uniform", _HE)
he_normal = _named("he_normal", 2.0, "fan_in", "truncated_normal", _HE)
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


def orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Return an initializer that draws uniformly from the orthonormal matrices.

    scale : multiplies the matrix
    column_axis : the axis of the columns; all other axes together are the rows
    dtype : the default dtype, of floats; None is float32
    returns : a function of a key, a shape and a dtype; the rows are orthonormal, or the columns if
        they are fewer
    raises ValueError : at a call, if the shape has fewer than two axes
    raises AxisError : at a call, if the shape has no such axis
    source : `jax.nn.initializers.orthogonal`; Saxe et al. 2013

    >>> import numpy as np, stepwell as sw
    >>> w = sw.nn.initializers.orthogonal()(sw.random.key(7), (2, 3))
    >>> (w @ w.T).round(5) + 0.0
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """

    own = dtype

    def init(key: Any, shape: Any, dtype: Any = None) -> Any:
        sizes = checked_shape(shape)
        if len(sizes) < 2:
            raise ValueError(f"an orthogonal matrix needs two axes, got shape {sizes}")
        check_axis(column_axis, len(sizes))
        return _orthogonal(key, sizes, _kind(dtype, own), column_axis) * scale

    return init


@drawing("shape", "dtype", "column_axis")
def _orthogonal(key: Any, shape: Any, dtype: Any, column_axis: int) -> Tensor:
    """Return orthonormal rows or columns, by Gram-Schmidt on random normal vectors.

    Projections are subtracted twice, to remove the rounding errors of the first time. The vectors
    are Q of a QR decomposition whose R has a positive diagonal, which makes the distribution
    uniform.
    """
    others = [n for a, n in enumerate(shape) if a != column_axis % len(shape)]
    rows, columns = math.prod(others), shape[column_axis]
    fewer, more = sorted((rows, columns))
    kind = float_dtype(dtype)
    drawn = d.normal(key, (fewer, more), wide_dtype(kind))

    def orthonormal(i: Any, done: Any) -> Any:
        row = drawn[i]
        for _ in range(2):
            row = e.subtract(row, matmul(matmul(done, row), done))
        return done.at[i].set(e.divide(row, e.sqrt(r.sum(e.square(row)))))

    found = fori_loop(0, fewer, orthonormal, creation.zeros((fewer, more), drawn.kind))
    found = swapaxes(found, 0, 1) if rows > columns else found
    return moveaxis(cast(reshape(found, (*others, columns)), kind), -1, column_axis)


def delta_orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """Return an initializer of filters: an orthogonal matrix at the window's center, else 0.

    scale, column_axis, dtype : as in `orthogonal`
    returns : a function of a key, a shape (..., I, O) of 3 to 5 axes and a dtype
    raises ValueError : at a call, if the shape has fewer or more axes, or O is less than I
    source : `jax.nn.initializers.delta_orthogonal`; Xiao et al. 2018

    >>> import stepwell as sw
    >>> w = sw.nn.initializers.delta_orthogonal()(sw.random.key(7), (3, 2, 2))
    >>> (abs(w).sum(axis=(1, 2)) > 0).tolist()
    [False, True, False]
    """

    own = dtype

    def init(key: Any, shape: Any, dtype: Any = None) -> Any:
        sizes = checked_shape(shape)
        if not 3 <= len(sizes) <= 5:
            raise ValueError(f"delta_orthogonal makes 3 to 5 axes, got shape {sizes}")
        if sizes[-1] < sizes[-2]:
            raise ValueError(f"there must be as many results as inputs, got shape {sizes}")
        matrix = orthogonal(scale, column_axis, own)(key, sizes[-2:], dtype)
        middle = tuple((n - 1) // 2 for n in sizes[:-2])
        if active_trace() is None:
            found = np.zeros(sizes, matrix.dtype)
            found[middle] = matrix
            return found
        return creation.zeros(sizes, matrix.kind).at[middle].set(matrix)

    return init
