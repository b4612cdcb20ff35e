"""Python's `math` functions for traced numbers: in float64, with Python's exceptions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stepwell.frontend import elementwise as e
from stepwell.frontend.checks import check
from stepwell.frontend.errors import TraceError
from stepwell.frontend.promotion import as_dtype, cast, full, has_traced, is_number, lift
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.ufuncs import weakened

DOMAIN, RANGE = ("ValueError", "math domain error"), ("OverflowError", "math range error")


def _real(value: Any) -> Tensor:
    kind = as_dtype("f64")
    if is_number(value):
        return full((), float(value), kind)
    found = lift(value)
    if found.shape:
        raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
    return cast(found, kind)


def _check(good: Tensor, error: tuple[str, str]) -> None:
    check(good, error[0], [error[1]])


def _within(good: Callable[[Tensor], Tensor]) -> Callable[..., None]:
    """Return a check that raises ValueError unless the argument is NaN or ``good``."""

    def look(result: Tensor, *values: Tensor) -> None:
        (value,) = values
        _check(e.logical_or(good(value), e.isnan(value)), DOMAIN)

    return look


def _finite(result: Tensor, *values: Tensor) -> None:
    """Raise OverflowError if finite arguments give an infinity."""
    good = e.logical_not(e.isinf(result))
    for value in values:
        good = e.logical_or(good, e.logical_not(e.isfinite(value)))
    _check(good, RANGE)


def _number(result: Tensor, *values: Tensor) -> None:
    """Raise ValueError if the result is NaN though no argument is."""
    good = e.logical_not(e.isnan(result))
    for value in values:
        good = e.logical_or(good, e.isnan(value))
    _check(good, DOMAIN)


def _function(
    compute: Callable[..., Tensor], look: Callable[..., None] | None = None
) -> Callable[..., Any]:
    def function(*args: Any) -> Any:
        values = [_real(value) for value in args]
        result = compute(*values)
        if look is not None:
            look(result, *values)
        return weakened(result)

    return function


def _whole(compute: Callable[[Tensor], Tensor]) -> Callable[..., Any]:
    """Return a function that returns an integer."""

    def function(value: Any) -> Any:
        x = _real(value)
        _check(e.logical_not(e.isnan(x)), ("ValueError", "cannot convert float NaN to integer"))
        words = "cannot convert float infinity to integer"
        _check(e.logical_not(e.isinf(x)), ("OverflowError", words))
        return weakened(cast(compute(x), as_dtype("i64")))

    return function


def _log(value: Any, base: Any = None) -> Any:
    found = _PLAIN_LOG(value)
    return found if base is None else found / _PLAIN_LOG(base)


def _of_integers(function: Any) -> Callable[..., Any]:
    def compute(first: Any, *others: Any) -> Any:
        for value in (first, *others):
            if not is_number(value) and lift(value).kind.kind == "float":
                raise TypeError("'float' object cannot be interpreted as an integer")
        found = cast(lift(first), as_dtype("i64"))
        for value in others:
            found = Tensor.operators["ufunc"](function, found, cast(lift(value), found.kind))
        return weakened(found if others else e.abs(found))

    return compute


def _isclose(a: Any, b: Any, *, rel_tol: float = 1e-9, abs_tol: float = 0.0) -> Any:
    x, y = _real(a), _real(b)
    most = e.maximum(e.multiply(rel_tol, e.maximum(e.abs(x), e.abs(y))), abs_tol)
    finite = e.logical_and(e.isfinite(x), e.isfinite(y))
    near = e.logical_and(finite, e.less_equal(e.abs(e.subtract(x, y)), most))
    return weakened(e.logical_or(e.equal(x, y), near))


_POSITIVE = _within(lambda x: e.greater(x, 0))
_PLAIN_LOG = _function(e.log, _POSITIVE)
_BOUNDED = _within(e.isfinite)
_UNIT = _within(lambda x: e.less_equal(e.abs(x), 1))

MATHS: dict[Any, Callable[..., Any]] = {
    math.sin: _function(e.sin, _BOUNDED),
    math.cos: _function(e.cos, _BOUNDED),
    math.tan: _function(e.tan, _BOUNDED),
    math.asin: _function(e.asin, _UNIT),
    math.acos: _function(e.acos, _UNIT),
    math.atan: _function(e.atan),
    math.atan2: _function(e.atan2),
    math.sinh: _function(e.sinh, _finite),
    math.cosh: _function(e.cosh, _finite),
    math.tanh: _function(e.tanh),
    math.asinh: _function(e.asinh),
    math.acosh: _function(e.acosh, _within(lambda x: e.greater_equal(x, 1))),
    math.atanh: _function(e.atanh, _within(lambda x: e.less(e.abs(x), 1))),
    math.exp: _function(e.exp, _finite),
    math.expm1: _function(e.expm1, _finite),
    math.log: _log,
    math.log2: _function(e.log2, _POSITIVE),
    math.log10: _function(e.log10, _POSITIVE),
    math.log1p: _function(e.log1p, _within(lambda x: e.greater(x, -1))),
    math.sqrt: _function(e.sqrt, _within(lambda x: e.greater_equal(x, 0))),
    math.fabs: _function(e.abs),
    math.hypot: _function(e.hypot, _finite),
    math.fmod: _function(e.fmod, _number),
    math.copysign: _function(e.copysign),
    math.erf: _function(e.erf),
    math.erfc: _function(e.erfc),
    math.floor: _whole(e.floor),
    math.ceil: _whole(e.ceil),
    math.trunc: _whole(e.trunc),
    math.isnan: lambda x: weakened(e.isnan(_real(x))),
    math.isinf: lambda x: weakened(e.isinf(_real(x))),
    math.isfinite: lambda x: weakened(e.isfinite(_real(x))),
    math.degrees: _function(lambda x: e.multiply(x, 180 / math.pi)),
    math.cbrt: _function(lambda x: Tensor.operators["ufunc"](np.cbrt, x)),
    math.exp2: _function(e.exp2, _finite),
    math.gcd: _of_integers(np.gcd),
    math.lcm: _of_integers(np.lcm),
    math.isclose: _isclose,
    math.radians: _function(lambda x: e.multiply(x, math.pi / 180)),
}
"""The traced implementations, by Python's own functions."""
_INSTEAD = {
    **{name: f"numpy.{name}" for name in ("frexp", "ldexp", "modf", "nextafter")},
    "dist": "math.hypot or numpy.linalg.norm of the difference",
    "fsum": "sum or numpy.sum",
    "isqrt": "int(math.sqrt(n))",
    "remainder": "math.fmod or %",
    "sumprod": "numpy.dot",
    "ulp": "numpy.spacing",
}


def check_known(function: Any, args: Sequence[Any]) -> None:
    """Refuse a function of `math` that takes traced numbers and has no traced implementation.

    `math.prod` multiplies its elements by their operators.
    """
    if getattr(function, "__module__", None) != "math" or function in MATHS:
        return
    if function is not math.prod and any(map(has_traced, args)):
        name = function.__name__
        instead = f"; use {_INSTEAD[name]}" if name in _INSTEAD else ""
        raise TraceError(f"math.{name} of a traced value is not known to Stepwell{instead}")
