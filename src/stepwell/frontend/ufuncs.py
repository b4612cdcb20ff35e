"""NumPy's ufuncs and operators on traced values: `__array_ufunc__`.

NumPy 2 itself decides dtypes (`ufunc.resolve_dtypes`). A ufunc without a counterpart is refused by
name, with the nearest supported one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from stepwell.core.dtypes import DType
from stepwell.frontend import elementwise as e
from stepwell.frontend import linear_algebra as linear
from stepwell.frontend import reduction as r
from stepwell.frontend.checks import check, check_fits, fits
from stepwell.frontend.errors import TraceError
from stepwell.frontend.known import NotKnown, by_numpy
from stepwell.frontend.promotion import (
    BOOL,
    INTEGER,
    SINGLE,
    as_dtype,
    cast,
    check_castable,
    converted,
    fresh,
    full,
    has_bfloat16,
    has_traced,
    is_number,
    kind_of,
    lift,
    ours,
)
from stepwell.frontend.table import UFUNCS, call_named, counterpart, stored, ufunc_refusal
from stepwell.frontend.tensor import Tensor
from stepwell.frontend.widening import remark


def rounded(x: Tensor, digits: int | None) -> Any:
    """Return ``round(x)``, a Python integer, or ``round(x, digits)``."""
    if x.shape:
        raise TypeError("type numpy.ndarray doesn't define __round__ method")
    if digits is not None:
        return call_named("round", (x, digits), {})
    return weakened(cast(x if x.kind.kind != "float" else e.round(x), INTEGER))


def item(x: Tensor, *index: Any) -> Tensor:
    """Return ``x.item()``, ``x.item(k)`` of the elements in order, or ``x.item(i, j)``."""
    place = index[0] if len(index) == 1 and isinstance(index[0], tuple) else index
    if not place and x.size != 1:
        raise ValueError("can only convert an array of size 1 to a Python scalar")
    if place and len(place) not in (1, x.ndim):
        raise ValueError("incorrect number of indices for array")
    flat = len(place) < 2 or not x.ndim
    element = x.reshape(-1)[place[0] if place else 0] if flat else x[place]
    kind = {"float": "f64", "bool": "bool"}.get(x.kind.kind, "i64")
    return weakened(cast(element, as_dtype(kind)))


def ufunc(function: Any, *inputs: Any, dtype: Any = None) -> Any:
    """Return the result of the NumPy ufunc for ``inputs``, computed by our counterpart."""
    try:
        return by_numpy(function, inputs, {} if dtype is None else {"dtype": dtype})
    except NotKnown:
        return _computed(function, inputs, dtype)


def _computed(function: Any, inputs: Sequence[Any], dtype: Any) -> Any:
    name, compute = function.__name__, counterpart(function)
    if compute is None:
        raise TraceError(ufunc_refusal(function))
    inputs = tuple(_array(v) if isinstance(v, list | tuple) else v for v in inputs)
    if has_bfloat16(inputs):
        return _of_bfloat16(function, compute, inputs, dtype)
    *operands, result = _resolved(function, inputs, dtype)
    if name in _COMPARES and (known := _compared(function, inputs, operands)) is not None:
        return known
    beyond: list[Tensor | None] = []
    for value, kind in zip(inputs, operands, strict=True):
        if name in _COMPARES:
            beyond.append(fits(value, kind))
        else:
            check_fits(value, kind)
    if name == "power" and operands[0].kind in ("signed", "unsigned"):
        _check_exponent(inputs)
    values = [
        v if name == "power" and at and is_number(v) else converted(v, k)
        for at, (v, k) in enumerate(zip(inputs, operands, strict=True))
    ]
    _check_numbers(name, inputs, values)
    found = compute(*values)
    if function.nout > 1:
        return found
    if any(test is not None for test in beyond):
        found = _with_beyond_range(function, inputs, beyond, found)
    found = cast(found, result)
    if found.shape == () and function in _PYTHON and all(map(_is_weak, inputs)):
        return weakened(found)
    return found


def _array(values: Any) -> Any:
    return lift(values) if has_traced(values) else np.asarray(values)


def _of_bfloat16(
    function: Any, compute: Callable[..., Any], inputs: Sequence[Any], dtype: Any
) -> Any:
    """Return the result of a ufunc for bfloat16 operands, if it supports float32."""
    kinds = [
        np.dtype(np.float32) if isinstance(v, Tensor) and v.kind.name == "bf16" else kind_of(v)
        for v in inputs
    ]
    try:
        function.resolve_dtypes((*kinds, *(None,) * function.nout))
    except TypeError:
        types = " and ".join(str(getattr(v, "dtype", type(v).__name__)) for v in inputs)
        raise TypeError(f"numpy.{function.__name__} is not defined for {types}") from None
    if dtype is not None:
        inputs = [converted(v, as_dtype(dtype)) for v in inputs]
    elif function.__name__ in _BY_BITS:
        raise TraceError(
            f"numpy.{function.__name__} of bfloat16 is not known to Stepwell; convert with "
            "astype(numpy.float32)"
        )
    return compute(*inputs)


_BY_BITS = {"frexp", "ldexp", "nextafter", "spacing"}
"""Ufuncs that depend on the bits of floats."""


def _check_numbers(name: str, inputs: tuple[Any, ...], values: list[Any]) -> None:
    """Make the program raise Python's exception for operations on Python numbers."""
    if name not in _DIVIDING or not all(map(_is_weak, inputs)):
        return
    by = values[1]
    known = by.graph.ranges.of(by)
    if known is None or known[0] <= 0 <= known[1]:
        kind = "float" if any(kind_of(v) is float for v in inputs) else "integer"
        check(e.not_equal(by, 0), "ZeroDivisionError", [_DIVIDING[name][kind]])


_DIVIDING = {
    "divide": {"integer": "division by zero", "float": "float division by zero"},
    "floor_divide": {
        "integer": "integer division or modulo by zero",
        "float": "float floor division by zero",
    },
    "remainder": {"integer": "integer modulo by zero", "float": "float modulo"},
    "divmod": {"integer": "integer division or modulo by zero", "float": "float divmod()"},
}
"""Python's messages for division of its own numbers by zero."""


def _resolved(function: Any, inputs: Sequence[Any], dtype: Any) -> list[DType]:
    """Return the dtypes that NumPy computes in, and that of the first result."""
    kinds = [kind_of(v) for v in inputs]
    if all(isinstance(k, type) for k in kinds):
        kinds = [np.dtype(k) for k in kinds]
    wanted = (*(None,) * function.nin, *(np.dtype(dtype),) * function.nout)
    given = {} if dtype is None else {"signature": wanted}
    try:
        found: Any = function.resolve_dtypes((*kinds, *(None,) * function.nout), **given)
    except TypeError as error:
        if "boolean" in str(error):
            raise
        types = " and ".join(k.__name__ if isinstance(k, type) else str(k) for k in kinds)
        raise TypeError(f"numpy.{function.__name__} is not defined for {types}") from None
    if np.float64 in found[: function.nin]:
        remark(inputs)
    return [ours(k) for k in found[: function.nin + 1]]


def _is_weak(value: Any) -> bool:
    return value.weak if isinstance(value, Tensor) else is_number(value)


_COMPARES = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}


def _compared(function: Any, inputs: Sequence[Any], kinds: Sequence[Any]) -> Tensor | None:
    """Return the comparison of integers with a number out of their dtype's range, else None."""
    for at, number in enumerate(inputs):
        if not isinstance(number, int) or kinds[at].kind not in ("signed", "unsigned"):
            continue
        limits = np.iinfo(kinds[at].numpy)
        if limits.min <= number <= limits.max:
            continue
        other = lift(inputs[1 - at])
        beyond = 1 if number > 0 else -1
        return full(other.shape, bool(function(*((beyond, 0) if at == 0 else (0, beyond)))), BOOL)
    return None


def _with_beyond_range(
    function: Any, inputs: Sequence[Any], fits: Sequence[Tensor | None], found: Tensor
) -> Tensor:
    """Return a comparison corrected for traced integers out of the dtype's range."""
    for at, test in enumerate(fits):
        if test is not None:
            above, below = (bool(function(*((n, 0) if at == 0 else (0, n)))) for n in (1, -1))
            other = e.where(e.greater(fresh(inputs[at]), 0), above, below)
            found = e.where(test, found, other)
    return found


def _check_exponent(inputs: Sequence[Any]) -> None:
    """Raise for integers raised to negative numbers, while tracing or at run time."""
    base, exponent = (v if is_number(v) else lift(v) for v in inputs)
    size = base.size if isinstance(base, Tensor) else 1
    if not isinstance(exponent, Tensor):
        if exponent < 0 and isinstance(base, Tensor) and base.kind.kind == "unsigned":
            lift(exponent, base.kind)  # raises: it does not fit
        if exponent < 0 and size:
            raise ValueError(_NEGATIVE)
        return
    found = exponent.graph.ranges.of(exponent) if exponent.kind.kind == "signed" else None
    if not size or not exponent.size or (found is None or found[0] >= 0):
        return
    least = r.min(exponent) if exponent.shape else exponent
    check(e.greater_equal(least, 0), "ValueError", (_NEGATIVE,))


_NEGATIVE = "Integers to negative integer powers are not allowed."


def weakened(value: Tensor) -> Tensor:
    """Return ``value`` marked as a Python number."""
    found = fresh(value)
    found.weak = value.shape == () and value.kind.name in ("i1", "i64", "f64")
    return found


_PYTHON = {
    *(np.add, np.subtract, np.multiply, np.divide, np.floor_divide, np.remainder, np.power),
    *(np.negative, np.positive, np.absolute, np.equal, np.not_equal, np.less, np.less_equal),
    *(np.greater, np.greater_equal, np.invert, np.left_shift, np.right_shift),
    *(np.bitwise_and, np.bitwise_or, np.bitwise_xor),
}
"""Operators whose result on Python numbers is a Python number."""


def _fmax(a: Tensor, b: Tensor) -> Tensor:
    return e.where(e.isnan(b), a, e.where(e.isnan(a), b, e.maximum(a, b)))


def _fmin(a: Tensor, b: Tensor) -> Tensor:
    return e.where(e.isnan(b), a, e.where(e.isnan(a), b, e.minimum(a, b)))


def _divmod(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    return e.floor_divide(a, b), e.remainder(a, b)


def _scaled(over: int, under: int) -> Callable[[Tensor], Tensor]:
    """Return multiplication by ``over / under``, where 0 stands for pi, rounded as in NumPy."""

    def function(x: Tensor) -> Tensor:
        wide = cast(x, SINGLE) if x.kind.bytes < SINGLE.bytes else x
        kind: Any = wide.kind.numpy.type
        return cast(e.multiply(wide, float(kind(over or math.pi) / kind(under or math.pi))), x.kind)

    return function


_BY_NAME: dict[str, Callable[..., Any]] = {
    name: getattr(e, name)
    for name in (
        *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod"),
        *("maximum", "minimum", "hypot", "copysign", "exp", "exp2", "expm1", "log", "log1p"),
        *("log2", "log10", "sqrt", "square", "cbrt", "reciprocal", "sin", "cos", "tan", "sinh"),
        *("cosh", "tanh", "sign", "floor", "ceil", "trunc", "isnan", "isinf", "isfinite"),
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
        *("logical_and", "logical_or", "logical_xor", "logical_not", "negative"),
        *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_count", "logaddexp"),
    )
} | {
    "absolute": e.abs,
    "fabs": e.abs,
    "power": e.pow,
    "float_power": e.pow,
    "arccos": e.acos,
    "arccosh": e.acosh,
    "arcsin": e.asin,
    "arcsinh": e.asinh,
    "arctan": e.atan,
    "arctanh": e.atanh,
    "arctan2": e.atan2,
    "invert": e.bitwise_invert,
    "left_shift": e.bitwise_left_shift,
    "right_shift": e.bitwise_right_shift,
    "rint": e.round,
    "positive": lambda x: fresh(x),
    "conjugate": lambda x: fresh(x),
    "fmax": _fmax,
    "fmin": _fmin,
    "divmod": _divmod,
    "matmul": linear.matmul,
    "vecdot": linear.vecdot,
    "deg2rad": _scaled(0, 180),
    "radians": _scaled(0, 180),
    "rad2deg": _scaled(180, 0),
    "degrees": _scaled(180, 0),
}
UFUNCS.update(_BY_NAME)


_IGNORED = {"casting", "order", "subok", "signature", "sig", "extobj"}


def call_ufunc(function: Any, method: str, inputs: tuple[Any, ...], keywords: Any) -> Any:
    """Return the result of a call of a ufunc, or of one of its methods."""
    if counterpart(function) is None:
        raise TraceError(ufunc_refusal(function))
    if method in ("outer", "reduce", "accumulate", "reduceat"):
        try:
            return by_numpy(getattr(function, method), inputs, dict(keywords))
        except NotKnown:
            pass
    given = {k: v for k, v in keywords.items() if k not in _IGNORED}
    if method == "__call__":
        return _call(function, inputs, **given)
    methods = import_module("stepwell.frontend.ufunc_methods")
    return methods.call_method(function, method, inputs, given)


def _call(
    function: Any,
    inputs: tuple[Any, ...],
    out: Any = None,
    where: Any = True,
    dtype: Any = None,
    **more: Any,
) -> Any:
    name = function.__name__
    no_more(name, more)
    positional = inputs[function.nin :]
    out = positional if positional else out
    found = ufunc(function, *inputs[: function.nin], dtype=dtype)
    if function.nout > 1:
        if out is None:
            return found
        if where is not True:
            raise TraceError(f"numpy.{name}: where= is not known to Stepwell")
        return tuple(stored(f, o, name=name) for f, o in zip(found, out, strict=True))
    target = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    if where is True:
        return stored(found, target, name=name)
    if not isinstance(target, Tensor):
        raise TraceError(
            f"numpy.{name}: where= without out= leaves elements that nobody wrote; "
            "give out=, or choose with numpy.where"
        )
    check_castable(f"numpy.{name}", found.kind, target.kind)
    return stored(e.where(lift(where), cast(found, target.kind), target), target)


def no_more(name: str, keywords: Any) -> None:
    """Refuse arguments that are left over."""
    if left := sorted(k for k, v in keywords.items() if v is not None):
        raise TraceError(f"numpy.{name}: {left[0]}= is not known to Stepwell")
