"""Losses of numbers and of vectors' directions. For ``sw.nn``.

Names and order of parameters follow Optax. Each function returns one loss per element or vector:
take the mean. Float16 and bfloat16 are computed in float32 and rounded once.
"""

from __future__ import annotations

import math
from typing import Any

from stepwell.core.dtypes import DType
from stepwell.core.shapes import ShapeError
from stepwell.frontend import elementwise as e
from stepwell.frontend import reduction as r
from stepwell.frontend.activations import floats, softplus
from stepwell.frontend.promotion import SINGLE, cast, is_number, lift
from stepwell.frontend.tensor import Tensor


def widened(*values: Any) -> tuple[DType, list[Tensor]]:
    """Return the dtype of a loss, and its operands in the dtype that it is computed in."""
    given = floats(*values)
    kind = given[0].kind
    return kind, [cast(v, SINGLE) if kind.bytes < SINGLE.bytes else v for v in given]


def total(x: Tensor, axis: Any, where: Any = None) -> Tensor:
    """Return the sum along ``axis`` of the elements that ``where`` selects."""
    return r.sum(x if where is None else e.where(where, x, 0), axis)


def _errors(predictions: Any, targets: Any) -> tuple[DType, Tensor]:
    """Return ``predictions - targets``; the targets have the same shape or are one number."""
    if targets is None:
        kind, (error,) = widened(predictions)
        return kind, error
    kind, (found, wanted) = widened(predictions, targets)
    if wanted.shape not in ((), found.shape):
        raise ShapeError(
            f"predictions and targets have one shape, got {found.shape} and {wanted.shape}"
        )
    return kind, e.subtract(found, wanted)


def squared_error(predictions: Any, targets: Any = None) -> Tensor:
    """Return ``(predictions - targets)**2`` element by element; its mean is the mean square error.

    predictions : any shape; floats keep their dtype, integers become float32
    targets : the same shape, or one number; None is 0
    raises ShapeError : targets have another shape: they are not broadcast
    source : `optax.squared_error`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.squared_error)(np.array([1.0, 2.0]), np.array([3.0, 2.0]))
    array([4., 0.])
    """
    kind, error = _errors(predictions, targets)
    return cast(e.square(error), kind)


def l2_loss(predictions: Any, targets: Any = None) -> Tensor:
    """Return ``(predictions - targets)**2 / 2`` element by element, whose gradient is the error.

    predictions, targets, raises : as in `squared_error`
    source : `optax.l2_loss`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.l2_loss)(np.array([1.0, 2.0]), np.array([3.0, 2.0]))
    array([2., 0.])
    """
    kind, error = _errors(predictions, targets)
    return cast(e.multiply(e.square(error), 0.5), kind)


def huber_loss(predictions: Any, targets: Any = None, *, delta: Any = 1.0) -> Tensor:
    """Return half the squared error up to ``delta``, and its tangent line beyond.

    predictions, targets, raises : as in `squared_error`
    delta : a number: the slope of the line
    source : `optax.huber_loss`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.huber_loss)(np.array([0.5, 3.0]))
    array([0.125, 2.5  ])
    """
    kind, error = _errors(predictions, targets)
    size = e.abs(error)
    near = e.minimum(size, delta)
    square = e.multiply(e.square(near), 0.5)
    return cast(e.add(square, e.multiply(e.subtract(size, near), delta)), kind)


def log_cosh(predictions: Any, targets: Any = None) -> Tensor:
    """Return ``log(cosh(predictions - targets))`` element by element, without overflow.

    predictions, targets, raises : as in `squared_error`
    source : `optax.log_cosh`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.log_cosh)(np.array([0.0, 1.0, 90.0])).round(3)
    array([ 0.   ,  0.434, 89.307])
    """
    kind, error = _errors(predictions, targets)
    size = e.where(e.less(error, 0), e.negative(error), error)
    found = e.add(size, softplus(e.multiply(size, -2.0)))
    return cast(e.subtract(found, math.log(2)), kind)


def hinge_loss(predictor_outputs: Any, targets: Any) -> Tensor:
    """Return ``max(0, 1 - predictor_outputs * targets)`` element by element.

    predictor_outputs : any shape; floats keep their dtype, integers become float32
    targets : -1 or 1, of a shape that broadcasts with it
    source : `optax.hinge_loss`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.hinge_loss)(np.array([0.5, 2.0, 1.0]), np.array([1.0, 1.0, -1.0]))
    array([0.5, 0. , 2. ])
    """
    kind, (found, wanted) = widened(predictor_outputs, targets)
    return cast(e.maximum(e.subtract(1, e.multiply(found, wanted)), 0), kind)


def cosine_similarity(
    predictions: Any, targets: Any, *, epsilon: Any = 0.0, axis: Any = -1, where: Any = None
) -> Tensor:
    """Return the cosine of the angle between vectors along ``axis``.

    predictions, targets : shapes that broadcast together; floats keep their dtype, integers become
        float32
    epsilon : a lower bound of a vector's sum of squares; with 0, the cosine with a vector of
        zeros is NaN
    axis : an int, a tuple of them, or None for all
    where : booleans that broadcast to them; False excludes an element
    returns : the broadcast shape without ``axis``
    raises AxisError : there is no such axis
    source : `optax.cosine_similarity`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.cosine_similarity)(np.array([3.0, 4.0]), np.array([[4.0, 3.0], [0.0, -2.0]]))
    array([ 0.96, -0.8 ])
    """
    kind, (a, b) = widened(predictions, targets)
    chosen = None if where is None else e.truth(lift(where))
    along, across = (_length(v, epsilon, axis, chosen) for v in (a, b))
    product = e.multiply(e.divide(a, along), e.divide(b, across))
    return cast(total(product, axis, chosen), kind)


def _length(x: Tensor, epsilon: Any, axis: Any, where: Tensor | None) -> Tensor:
    square = e.square(x)
    if where is not None:
        square = e.where(where, square, 0)
    found = r.sum(square, axis, keepdims=True)
    if not (is_number(epsilon) and epsilon == 0):
        found = e.maximum(found, epsilon)
    return e.sqrt(found)


def cosine_distance(
    predictions: Any, targets: Any, *, epsilon: Any = 0.0, axis: Any = -1, where: Any = None
) -> Tensor:
    """Return ``1 - cosine_similarity(predictions, targets)``.

    predictions, targets, epsilon, axis, where, returns, raises : as in `cosine_similarity`
    source : `optax.cosine_distance`

    >>> import numpy as np, stepwell as sw
    >>> sw.jit(sw.nn.cosine_distance)(np.array([1.0, 0.0]), np.array([0.0, 2.0]))
    array(1.)
    """
    kind, (a, b) = widened(predictions, targets)
    near = cosine_similarity(a, b, epsilon=epsilon, axis=axis, where=where)
    return cast(e.subtract(1, near), kind)
