"""Activations and what else of `jax.nn` needs no weights: its names, defaults and meaning.

Floats keep their dtype; integers become float32, where JAX does so.
"""

from __future__ import annotations

import math
from typing import Any

from stepwell.frontend import elementwise as e
from stepwell.frontend import reduction as r
from stepwell.frontend.creation import iota
from stepwell.frontend.elementwise import check_axis
from stepwell.frontend.manipulation import broadcast_to, expand_dims, moveaxis
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


def _emitted(op: str, x: Any, **properties: Any) -> Tensor:
    (value,) = floats(x)
    return value.graph.emit(op, [value], [(value.kind, value.shape)], (), **properties)[0]


def identity(x: Any) -> Tensor:
    """Return ``x``."""
    return lift(x)


def relu(x: Any) -> Tensor:
    """Return ``max(x, 0)``; NaN stays NaN."""
    value = lift(x)
    return value.graph.emit("relu", [value], [(value.kind, value.shape)])[0]


def relu6(x: Any) -> Tensor:
    """Return ``min(max(x, 0), 6)``."""
    return _emitted("relu6", x)


def sigmoid(x: Any) -> Tensor:
    """Return ``1 / (1 + exp(-x))``."""
    return _emitted("sigmoid", x)


def log_sigmoid(x: Any) -> Tensor:
    """Return ``log(sigmoid(x))``, which is ``-softplus(-x)``."""
    (value,) = floats(x)
    return e.negative(softplus(e.negative(value)))


def silu(x: Any) -> Tensor:
    """Return ``x * sigmoid(x)``."""
    return _emitted("silu", x)


swish = silu


def softplus(x: Any) -> Tensor:
    """Return ``log(1 + exp(x))`` without overflow."""
    return _emitted("softplus", x)


def mish(x: Any) -> Tensor:
    """Return ``x * tanh(softplus(x))``."""
    (value,) = floats(x)
    return e.multiply(value, e.tanh(softplus(value)))


def tanh(x: Any) -> Tensor:
    """Return the hyperbolic tangent of ``x``."""
    (value,) = floats(x)
    return e.tanh(value)


def soft_sign(x: Any) -> Tensor:
    """Return ``x / (|x| + 1)``."""
    (value,) = floats(x)
    return e.divide(value, e.add(e.abs(value), 1))


def hard_sigmoid(x: Any) -> Tensor:
    """Return ``relu6(x + 3) / 6``."""
    (value,) = floats(x)
    return e.divide(relu6(e.add(value, 3)), 6)


def hard_silu(x: Any) -> Tensor:
    """Return ``x * hard_sigmoid(x)``."""
    (value,) = floats(x)
    return e.multiply(value, hard_sigmoid(value))


hard_swish = hard_silu


def hard_tanh(x: Any) -> Tensor:
    """Return -1 below -1, 1 above 1, else ``x``."""
    (value,) = floats(x)
    return e.where(e.greater(value, 1), 1, e.where(e.less(value, -1), -1, value))


def sparse_plus(x: Any) -> Tensor:
    """Return 0 up to -1, ``(x + 1)**2 / 4`` up to 1, else ``x``."""
    (value,) = floats(x)
    middle = e.divide(e.square(e.add(value, 1)), 4)
    return e.where(e.less_equal(value, -1), 0, e.where(e.greater_equal(value, 1), value, middle))


def sparse_sigmoid(x: Any) -> Tensor:
    """Return 0 up to -1, ``(x + 1) / 2`` up to 1, else 1."""
    (value,) = floats(x)
    return e.multiply(e.clip(e.add(value, 1), 0, 2), 0.5)


def squareplus(x: Any, b: Any = 4) -> Tensor:
    """Return ``(x + sqrt(x**2 + b)) / 2``."""
    value, least = floats(x, b) if not isinstance(b, int | float) else (*floats(x), b)
    return e.divide(e.add(value, e.sqrt(e.add(e.square(value), least))), 2)


def gelu(x: Any, approximate: bool = True) -> Tensor:
    """Return ``x * P(X <= x)`` for a standard normal X, by the tanh formula if ``approximate``.

    approximate : True by default, as in JAX; PyTorch's ``gelu`` and `scipy` mean False
    """
    return _emitted("gelu", x, approximate="tanh" if approximate else "none")


def leaky_relu(x: Any, negative_slope: float = 0.01) -> Tensor:
    """Return ``x`` where it is not negative, else ``negative_slope * x``."""
    (value,) = floats(x)
    return e.where(e.greater_equal(value, 0), value, e.multiply(value, negative_slope))


def elu(x: Any, alpha: float = 1.0) -> Tensor:
    """Return ``x`` where it is positive, else ``alpha * (exp(x) - 1)``."""
    (value,) = floats(x)
    negative = e.multiply(alpha, e.expm1(e.minimum(value, 0)))
    return e.where(e.greater(value, 0), value, negative)


def celu(x: Any, alpha: float = 1.0) -> Tensor:
    """Return ``x`` where it is positive, else ``alpha * (exp(x / alpha) - 1)``."""
    (value,) = floats(x)
    negative = e.multiply(alpha, e.expm1(e.divide(e.minimum(value, 0), alpha)))
    return e.where(e.greater(value, 0), value, negative)


def selu(x: Any) -> Tensor:
    """Return ``scale * elu(x, alpha)`` by which normalized inputs stay normalized."""
    (value,) = floats(x)
    return e.multiply(1.0507009873554805, elu(value, 1.6732632423543772))


def glu(x: Any, axis: int = -1) -> Tensor:
    """Return the first half along ``axis`` times the sigmoid of the second.

    raises ValueError : the axis has an odd size
    """
    (value,) = floats(x)
    at = check_axis(axis, value.ndim)
    size = value.shape[at]
    if size % 2:
        raise ValueError(f"the axis of glu must have an even size, got {size}")
    head = (slice(None),) * at
    first, second = value[(*head, slice(0, size // 2))], value[(*head, slice(size // 2, None))]
    return e.multiply(first, sigmoid(second))


def softmax(x: Any, axis: Any = -1, where: Any = None) -> Tensor:
    """Return ``exp(x) / sum(exp(x))`` along ``axis``, without overflow.

    axis : an int, a tuple of them, or None for all
    where : booleans; what is not chosen counts nothing and becomes 0
    """
    (value,) = floats(x)
    if where is None and isinstance(axis, int):
        return _emitted("softmax", value, axis=check_axis(axis, value.ndim))
    chosen = _chosen(where, value)
    raised = e.exp(e.subtract(value, _greatest(value, axis, chosen)))
    raised = raised if chosen is None else e.where(chosen, raised, 0)
    return e.divide(raised, r.sum(raised, axis, keepdims=True))


def log_softmax(x: Any, axis: Any = -1, where: Any = None) -> Tensor:
    """Return ``log(softmax(x))`` along ``axis``, -inf where ``where`` is false."""
    (value,) = floats(x)
    if where is None and isinstance(axis, int):
        return _emitted("log_softmax", value, axis=check_axis(axis, value.ndim))
    chosen = _chosen(where, value)
    shifted = e.subtract(value, _greatest(value, axis, chosen))
    raised = e.exp(shifted)
    raised = raised if chosen is None else e.where(chosen, raised, 0)
    found = e.subtract(shifted, e.log(r.sum(raised, axis, keepdims=True)))
    return found if chosen is None else e.where(chosen, found, -math.inf)


def _chosen(where: Any, value: Tensor) -> Tensor | None:
    return None if where is None else broadcast_to(e.truth(where), value.shape)


def _greatest(value: Tensor, axis: Any, chosen: Tensor | None) -> Tensor:
    masked = value if chosen is None else e.where(chosen, value, -math.inf)
    return r.max(masked, axis, keepdims=True)


def logsumexp(
    a: Any,
    axis: Any = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: Any = None,
) -> Any:
    """Return ``log(sum(b * exp(a)))`` along ``axis`` without overflow.

    b : factors; where a sum is negative the result is NaN, unless ``return_sign``
    return_sign : return the logarithm of the sum's size, and its sign
    where : booleans; what is not chosen counts nothing
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


def standardize(
    x: Any,
    axis: Any = -1,
    mean: Any = None,
    variance: Any = None,
    epsilon: Any = 1e-5,
    where: Any = None,
) -> Tensor:
    """Return ``(x - mean) / sqrt(variance + epsilon)`` along ``axis``.

    mean, variance : those of ``x`` where None
    where : booleans; what is not chosen counts nothing in mean and variance
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


def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: int = -1) -> Tensor:
    """Return 1 at index ``x`` of a new ``axis`` of ``num_classes``, else 0, as float32.

    x : integers; one that is no class has 0 everywhere
    """
    index = lift(x)
    classes = iota((*index.shape, num_classes), index.ndim, INTEGER)
    same = e.equal(expand_dims(cast(index, INTEGER), -1), classes)
    found = cast(same, SINGLE if dtype is None else as_dtype(dtype))
    return moveaxis(found, -1, check_axis(axis, found.ndim))


__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "logsumexp",
    "mish",
    "one_hot",
    "relu",
    "relu6",
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
