"""Ufuncs of `scipy.special` in a trace, for programs that call them on traced values.

SciPy itself is not imported: a program that calls one of its ufuncs has imported it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from stepwell.frontend import elementwise as e
from stepwell.frontend.activations import log_sigmoid, sigmoid
from stepwell.frontend.normal_quantile import normal_quantile
from stepwell.frontend.promotion import full
from stepwell.frontend.tensor import Tensor


def _number(value: float, like: Tensor) -> Tensor:
    return full(like.shape, value, like.kind)


def logit(x: Tensor) -> Tensor:
    """Return ``log(x / (1 - x))``, the inverse of `sigmoid`."""
    return e.log(e.divide(x, e.subtract(1.0, x)))


def xlogy(x: Tensor, y: Tensor) -> Tensor:
    """Return ``x log(y)``: 0 for x = 0, unless y is NaN."""
    return _times_log(e.log, x, y, 1.0)


def xlog1py(x: Tensor, y: Tensor) -> Tensor:
    """Return ``x log(1 + y)``: 0 for x = 0, unless y is NaN."""
    return _times_log(e.log1p, x, y, 0.0)


def _times_log(log: Callable[[Any], Tensor], x: Tensor, y: Tensor, root: float) -> Tensor:
    """Return ``x log(y)``; where x is 0, the logarithm is that of ``root``, which is 0."""
    none = e.logical_and(e.equal(x, 0.0), e.logical_not(e.isnan(y)))
    return e.multiply(x, log(e.where(none, _number(root, y), y)))


def entr(x: Tensor) -> Tensor:
    """Return ``-x log(x)``: 0 for 0, -inf for negative x."""
    return e.where(e.less(x, 0.0), _number(-math.inf, x), e.negative(xlogy(x, x)))


def rel_entr(x: Tensor, y: Tensor) -> Tensor:
    """Return ``x log(x / y)`` for positive x and y; 0 for x = 0 and y >= 0; otherwise inf."""
    return _entropy(x, y, lambda x, y: e.multiply(x, e.log(e.divide(x, y))), _number(0.0, x))


def kl_div(x: Tensor, y: Tensor) -> Tensor:
    """Return ``x log(x / y) - x + y`` for positive x and y; y for x = 0 and y >= 0; else inf."""
    return _entropy(x, y, lambda x, y: e.add(e.subtract(rel_entr(x, y), x), y), y)


def _entropy(x: Tensor, y: Tensor, of: Callable[..., Tensor], at_zero: Tensor) -> Tensor:
    """Return ``of(x, y)`` for positive x and y, and ``at_zero`` for x = 0 and y >= 0."""
    inside = e.logical_and(e.greater(x, 0.0), e.greater(y, 0.0))
    found = of(*(e.where(inside, each, _number(1.0, each)) for each in (x, y)))
    none = e.logical_and(e.equal(x, 0.0), e.greater_equal(y, 0.0))
    other = e.where(none, at_zero, _number(math.inf, x))
    other = e.where(e.logical_or(e.isnan(x), e.isnan(y)), _number(math.nan, x), other)
    return e.where(inside, found, other)


def ndtr(x: Tensor) -> Tensor:
    """Return the normal distribution function."""
    return e.multiply(0.5, e.erfc(e.multiply(x, -math.sqrt(0.5))))


def ndtri(p: Tensor) -> Tensor:
    """Return the quantile of the normal distribution: NaN outside of [0, 1]."""
    inside = e.logical_and(e.greater(p, 0.0), e.less(p, 1.0))
    found = normal_quantile(e.where(inside, p, _number(0.5, p)))
    found = e.where(inside, found, _number(math.nan, p))
    found = e.where(e.equal(p, 0.0), _number(-math.inf, p), found)
    return e.where(e.equal(p, 1.0), _number(math.inf, p), found)


def huber(delta: Tensor, r: Tensor) -> Tensor:
    """Return ``r^2 / 2`` up to delta, linear in ``|r|`` beyond; inf for negative delta."""
    size = e.abs(r)
    near = e.multiply(0.5, e.multiply(r, r))
    far = e.multiply(delta, e.subtract(size, e.multiply(0.5, delta)))
    found = e.where(e.less_equal(size, delta), near, far)
    return e.where(e.less(delta, 0.0), _number(math.inf, r), found)


def exp10(x: Tensor) -> Tensor:
    """Return ``10^x``."""
    return e.pow(_number(10.0, x), x)


SPECIAL: dict[str, Callable[..., Tensor]] = {
    **{f.__name__: f for f in (e.cbrt, e.exp2, e.expm1, e.log1p, e.erf, e.erfc)},
    **{f.__name__: f for f in (exp10, ndtr, ndtri)},
    **{f.__name__: f for f in (logit, xlogy, xlog1py, entr, rel_entr, kl_div, huber)},
    "expit": sigmoid,
    "log_expit": log_sigmoid,
}
"""The supported ufuncs of `scipy.special`, by SciPy's name."""
