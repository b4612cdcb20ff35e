"""Activations and other functions of `jax.nn` without weights: its names, defaults and semantics.

Floats keep their dtype; integers become float32, as in JAX.
"""

from __future__ import annotations

import math
from typing import Any

from stepwell.frontend import elementwise as e
from stepwell.frontend.creation import iota
from stepwell.frontend.elementwise import check_axis
from stepwell.frontend.manipulation import expand_dims, moveaxis
from stepwell.frontend.promotion import (
    INTEGER,
    SINGLE,
    as_dtype,
    cast,
    lift,
    same_narrow,
)
from stepwell.frontend.tensor import Tensor


def floats(*values: Any) -> list[Tensor]:
    """Return values as floats of one dtype; integers become float32."""
    found = same_narrow(*values)
    return found if found[0].kind.kind == "float" else [cast(v, SINGLE) for v in found]


def emitted(op: str, x: Any, **properties: Any) -> Tensor:
    """Emit an op whose result has the dtype and shape of ``x``, which is converted to a float."""
    (value,) = floats(x)
    return value.graph.emit(op, [value], [(value.kind, value.shape)], (), **properties)[0]


def identity(x: Any) -> Tensor:
    """Return ``x``.

    x : an array of any shape and dtype
    source : `jax.nn.identity`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.identity)(np.arange(3))
    array([0, 1, 2])
    """
    return lift(x)


def relu(x: Any) -> Tensor:
    """Return ``max(x, 0)`` element by element; NaN stays NaN.

    x : an array of any shape; numbers keep their dtype
    source : `jax.nn.relu`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.relu)(np.float32([-1, 0, 2]))
    array([0., 0., 2.], dtype=float32)
    """
    value = lift(x)
    return value.graph.emit("relu", [value], [(value.kind, value.shape)])[0]


def relu6(x: Any) -> Tensor:
    """Return ``min(max(x, 0), 6)`` element by element.

    x : an array of any shape; floats keep their dtype, integers become float32
    source : `jax.nn.relu6`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.relu6)(np.float32([-1, 3, 7]))
    array([0., 3., 6.], dtype=float32)
    """
    return emitted("relu6", x)


def sigmoid(x: Any) -> Tensor:
    """Return ``1 / (1 + exp(-x))`` element by element.

    x : an array of any shape; floats keep their dtype, integers become float32
    source : `jax.nn.sigmoid`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.sigmoid)(np.array([-1.0, 0.0, 2.0])).round(4)
    array([0.2689, 0.5   , 0.8808])
    """
    return emitted("sigmoid", x)


def log_sigmoid(x: Any) -> Tensor:
    """Return ``log(sigmoid(x))`` element by element, which is ``-softplus(-x)``.

    x : an array of any shape; floats keep their dtype, integers become float32
    source : `jax.nn.log_sigmoid`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.log_sigmoid)(np.array([-50.0, 0.0])).round(4)
    array([-50.    ,  -0.6931])
    """
    (value,) = floats(x)
    return e.negative(softplus(e.negative(value)))


def log1mexp(x: Any) -> Tensor:
    """Return ``log(1 - exp(-x))`` element by element, for x > 0, exact near 0 and far from it.

    x : an array of any shape; floats keep their dtype, integers become float32
    source : `jax.nn.log1mexp`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.log1mexp)(np.array([1e-10, 1.0])).round(4)
    array([-23.0259,  -0.4587])
    """
    (value,) = floats(x)
    turned = e.negative(value)
    near, far = e.log(e.negative(e.expm1(turned))), e.log1p(e.negative(e.exp(turned)))
    return e.where(e.less(value, math.log(2)), near, far)


def silu(x: Any) -> Tensor:
    """Return ``x * sigmoid(x)`` element by element; `swish` is the same function.

    x : an array of any shape; floats keep their dtype, integers become float32
    source : `jax.nn.silu`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.silu)(np.array([-1.0, 0.0, 2.0])).round(4)
    array([-0.2689,  0.    ,  1.7616])
    """
    return emitted("silu", x)


swish = silu


def softplus(x: Any) -> Tensor:
    """Return ``log(1 + exp(x))`` element by element, without overflow.

    x : an array of any shape; floats keep their dtype, integers become float32
    source : `jax.nn.softplus`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.softplus)(np.array([0.0, 1000.0])).round(4)
    array([6.931e-01, 1.000e+03])
    """
    return emitted("softplus", x)


def mish(x: Any) -> Tensor:
    """Return ``x * tanh(softplus(x))`` element by element.

    x : an array of any shape; floats keep their dtype, integers become float32
    source : `jax.nn.mish`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.mish)(np.array([-1.0, 0.0, 2.0])).round(4)
    array([-0.3034,  0.    ,  1.944 ])
    """
    (value,) = floats(x)
    return e.multiply(value, e.tanh(softplus(value)))


def tanh(x: Any, /) -> Tensor:
    """Return the hyperbolic tangent of ``x`` element by element.

    x : an array of any shape; floats keep their dtype, integers become float32
    source : `jax.nn.tanh`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.tanh)(np.array([0.0, 1.0])).round(4)
    array([0.    , 0.7616])
    """
    (value,) = floats(x)
    return e.tanh(value)


def soft_sign(x: Any) -> Tensor:
    """Return ``x / (|x| + 1)`` element by element.

    x : an array of any shape; floats keep their dtype, integers become float32
    source : `jax.nn.soft_sign`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.soft_sign)(np.float32([-1, 0, 3]))
    array([-0.5 ,  0.  ,  0.75], dtype=float32)
    """
    (value,) = floats(x)
    return e.divide(value, e.add(e.abs(value), 1))


def hard_sigmoid(x: Any) -> Tensor:
    """Return ``relu6(x + 3) / 6`` element by element.

    x : an array of any shape; floats keep their dtype, integers become float32
    source : `jax.nn.hard_sigmoid`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.hard_sigmoid)(np.float32([-4, 0, 4]))
    array([0. , 0.5, 1. ], dtype=float32)
    """
    (value,) = floats(x)
    return e.divide(relu6(e.add(value, 3)), 6)


def hard_silu(x: Any) -> Tensor:
    """Return ``x * hard_sigmoid(x)`` element by element; `hard_swish` is the same function.

    x : an array of any shape; floats keep their dtype, integers become float32
    source : `jax.nn.hard_silu`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.hard_silu)(np.float32([0, 3, 4]))
    array([0., 3., 4.], dtype=float32)
    """
    (value,) = floats(x)
    return e.multiply(value, hard_sigmoid(value))


hard_swish = hard_silu


def hard_tanh(x: Any) -> Tensor:
    """Return -1 below -1, 1 above 1, else ``x``, element by element.

    x : an array of any shape; floats keep their dtype, integers become float32
    source : `jax.nn.hard_tanh`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.hard_tanh)(np.float32([-4, 0.5, 4]))
    array([-1. ,  0.5,  1. ], dtype=float32)
    """
    (value,) = floats(x)
    return e.where(e.greater(value, 1), 1, e.where(e.less(value, -1), -1, value))


def sparse_plus(x: Any) -> Tensor:
    """Return 0 up to -1, ``(x + 1)**2 / 4`` up to 1, else ``x``, element by element.

    x : an array of any shape; floats keep their dtype, integers become float32
    source : `jax.nn.sparse_plus`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.sparse_plus)(np.float32([-2, 0, 3]))
    array([0.  , 0.25, 3.  ], dtype=float32)
    """
    (value,) = floats(x)
    middle = e.divide(e.square(e.add(value, 1)), 4)
    return e.where(e.less_equal(value, -1), 0, e.where(e.greater_equal(value, 1), value, middle))


def sparse_sigmoid(x: Any) -> Tensor:
    """Return 0 up to -1, ``(x + 1) / 2`` up to 1, else 1, element by element.

    x : an array of any shape; floats keep their dtype, integers become float32
    source : `jax.nn.sparse_sigmoid`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.sparse_sigmoid)(np.float32([-2, 0, 3]))
    array([0. , 0.5, 1. ], dtype=float32)
    """
    (value,) = floats(x)
    return e.multiply(e.clip(e.add(value, 1), 0, 2), 0.5)


def squareplus(x: Any, b: Any = 4) -> Tensor:
    """Return ``(x + sqrt(x**2 + b)) / 2`` element by element.

    x : an array of any shape; floats keep their dtype, integers become float32
    b : a number, or an array that broadcasts with ``x``
    source : `jax.nn.squareplus`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.squareplus)(np.float32([0, 1.5]))
    array([1., 2.], dtype=float32)
    """
    value, least = floats(x, b) if not isinstance(b, int | float) else (*floats(x), b)
    return e.divide(e.add(value, e.sqrt(e.add(e.square(value), least))), 2)


def gelu(x: Any, approximate: bool = True) -> Tensor:
    """Return ``x * P(X <= x)`` for a standard normal X, element by element.

    x : an array of any shape; floats keep their dtype, integers become float32
    approximate : use the tanh formula; True by default as in JAX, where PyTorch and SciPy
        mean False
    source : `jax.nn.gelu`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.gelu)(np.array([-1.0, 0.0, 2.0])).round(4)
    array([-0.1588,  0.    ,  1.9546])
    """
    return emitted("gelu", x, approximate="tanh" if approximate else "none")


def leaky_relu(x: Any, negative_slope: float = 0.01) -> Tensor:
    """Return ``x`` where it is not negative, else ``negative_slope * x``.

    x : an array of any shape; floats keep their dtype, integers become float32
    source : `jax.nn.leaky_relu`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.leaky_relu)(np.array([-1.0, 2.0]))
    array([-0.01,  2.  ])
    """
    (value,) = floats(x)
    return e.where(e.greater_equal(value, 0), value, e.multiply(value, negative_slope))


def _negative(value: Tensor) -> Tensor:
    """Return ``min(value, 0)``; at 0 with the derivative from below, as in JAX."""
    return e.where(e.greater(value, 0), 0, value)


def elu(x: Any, alpha: float = 1.0) -> Tensor:
    """Return ``x`` where it is positive, else ``alpha * (exp(x) - 1)``.

    x : an array of any shape; floats keep their dtype, integers become float32
    source : `jax.nn.elu`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.elu)(np.array([-1.0, 2.0])).round(4)
    array([-0.6321,  2.    ])
    """
    (value,) = floats(x)
    negative = e.multiply(alpha, e.expm1(_negative(value)))
    return e.where(e.greater(value, 0), value, negative)


def celu(x: Any, alpha: float = 1.0) -> Tensor:
    """Return ``x`` where it is positive, else ``alpha * (exp(x / alpha) - 1)``.

    x : an array of any shape; floats keep their dtype, integers become float32
    source : `jax.nn.celu`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(lambda x: sw.nn.celu(x, 2.0))(np.array([-1.0, 2.0])).round(4)
    array([-0.7869,  2.    ])
    """
    (value,) = floats(x)
    negative = e.multiply(alpha, e.expm1(e.divide(_negative(value), alpha)))
    return e.where(e.greater(value, 0), value, negative)


def selu(x: Any) -> Tensor:
    """Return `elu` with the alpha and scale that keep mean and variance of normalized inputs.

    x : an array of any shape; floats keep their dtype, integers become float32
    source : `jax.nn.selu`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.selu)(np.array([-1.0, 2.0])).round(4)
    array([-1.1113,  2.1014])
    """
    (value,) = floats(x)
    return e.multiply(1.0507009873554805, elu(value, 1.6732632423543772))


def glu(x: Any, axis: int = -1) -> Tensor:
    """Return the first half along ``axis`` times the sigmoid of the second half.

    x : an array of any shape; floats keep their dtype, integers become float32
    axis : an axis of even size, which becomes half as long
    raises ValueError : the axis has an odd size
    source : `jax.nn.glu`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.glu)(np.float32([1, 2, 0, 0]))
    array([0.5, 1. ], dtype=float32)
    """
    (value,) = floats(x)
    at = check_axis(axis, value.ndim)
    size = value.shape[at]
    if size % 2:
        raise ValueError(f"the axis of glu must have an even size, got {size}")
    head = (slice(None),) * at
    first, second = value[(*head, slice(0, size // 2))], value[(*head, slice(size // 2, None))]
    return e.multiply(first, sigmoid(second))


def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: int = -1) -> Tensor:
    """Return 1 at index ``x`` of a new ``axis`` of ``num_classes``, and 0 elsewhere.

    x : integers of any shape; one out of range gives zeros only
    num_classes : the number of classes, known while tracing
    dtype : float32 by default
    axis : the position of the new axis in the result
    raises AxisError : the result has no such axis
    source : `jax.nn.one_hot`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(lambda x: sw.nn.one_hot(x, 3))(np.array([0, 2]))
    array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    index = lift(x)
    classes = iota((*index.shape, num_classes), index.ndim, INTEGER)
    same = e.equal(expand_dims(cast(index, INTEGER), -1), classes)
    found = cast(same, SINGLE if dtype is None else as_dtype(dtype))
    return moveaxis(found, -1, check_axis(axis, found.ndim))
