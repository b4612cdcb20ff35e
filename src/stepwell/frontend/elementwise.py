"""Functions that act on each element by itself, under their Array API names.

Arguments are traced values, arrays or Python numbers, broadcast together and promoted to one
dtype (`promotion`). Results have the broadcast shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stepwell.core.dtypes import DType
from stepwell.frontend.errors import TraceError
from stepwell.frontend.promotion import (
    BOOL,
    FLOAT,
    as_dtype,
    broadcast,
    cast,
    full,
    is_number,
    lift,
    same_dtype,
    together,
)
from stepwell.frontend.tensor import Tensor


def _floating(x: Tensor) -> Tensor:
    """Return ``x`` as floats; integers become f32."""
    return x if x.kind.kind == "float" else cast(x, FLOAT)


def _emit(op: str, operands: list[Tensor], dtype: DType | None = None) -> Tensor:
    first = operands[0]
    return first.trace.emit(op, operands, [(dtype or first.kind, first.shape)])[0]


def _named(function: Callable[..., Tensor], name: str, doc: str) -> Callable[..., Tensor]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _unary(name: str, formula: str, op: str = "", floats: bool = True) -> Callable[[Any], Tensor]:
    """Return the function ``name``; ``floats`` converts integers first."""

    def function(x: Any, /) -> Tensor:
        value = lift(x)
        return _emit(op or name, [_floating(value) if floats else value])

    kinds = "; integers are converted to float32" if floats else ""
    return _named(function, name, f"Return ``{formula}`` element by element{kinds}.")


def _binary(
    name: str, formula: str, op: str = "", floats: bool = False, result: DType | None = None
) -> Callable[[Any, Any], Tensor]:
    def function(x1: Any, x2: Any, /) -> Tensor:
        values = together(x1, x2)
        if floats:
            values = [_floating(v) for v in values]
        return _emit(op or name, values, result)

    return _named(function, name, f"Return ``{formula}`` element by element, broadcast.")


acos = _unary("acos", "arccos(x)")
acosh = _unary("acosh", "arcosh(x)")
asin = _unary("asin", "arcsin(x)")
asinh = _unary("asinh", "arsinh(x)")
atan = _unary("atan", "arctan(x)")
atanh = _unary("atanh", "artanh(x)")
cbrt = _unary("cbrt", "the real cube root of x")
cos = _unary("cos", "cos(x), x in radians")
cosh = _unary("cosh", "cosh(x)")
erf = _unary("erf", "2/sqrt(pi) * integral(0..x) exp(-t*t) dt")
erfc = _unary("erfc", "1 - erf(x), without cancellation")
exp = _unary("exp", "e**x")
exp2 = _unary("exp2", "2**x")
expm1 = _unary("expm1", "e**x - 1, precise near 0")
log = _unary("log", "the natural logarithm of x")
log10 = _unary("log10", "log(x) / log(10)")
log1p = _unary("log1p", "log(1 + x), precise near 0")
log2 = _unary("log2", "log(x) / log(2)")
reciprocal = _unary("reciprocal", "1 / x")
rsqrt = _unary("rsqrt", "1 / sqrt(x)")
sin = _unary("sin", "sin(x), x in radians")
sinh = _unary("sinh", "sinh(x)")
sqrt = _unary("sqrt", "the square root of x")
tan = _unary("tan", "tan(x), x in radians")
tanh = _unary("tanh", "tanh(x)")
abs = _unary("abs", "|x|", floats=False)
negative = _unary("negative", "-x", "neg", floats=False)
square = _unary("square", "x * x", floats=False)
bitwise_count = _unary("bitwise_count", "how many bits of x are set", "popcount", floats=False)

subtract = _binary("subtract", "x1 - x2", "sub")
divide = _binary("divide", "x1 / x2 as floats", "div", floats=True)
atan2 = _binary("atan2", "the angle of the point (x2, x1)", floats=True)
hypot = _binary("hypot", "sqrt(x1*x1 + x2*x2)", floats=True)
copysign = _binary("copysign", "|x1| with the sign of x2", floats=True)
equal = _binary("equal", "x1 == x2", "eq", result=BOOL)
not_equal = _binary("not_equal", "x1 != x2", "ne", result=BOOL)
less = _binary("less", "x1 < x2", "lt", result=BOOL)
less_equal = _binary("less_equal", "x1 <= x2", "le", result=BOOL)
greater = _binary("greater", "x1 > x2", "gt", result=BOOL)
greater_equal = _binary("greater_equal", "x1 >= x2", "ge", result=BOOL)
maximum = _binary("maximum", "the larger of x1 and x2; NaN where one is NaN", "max")
minimum = _binary("minimum", "the smaller of x1 and x2; NaN where one is NaN", "min")


def _integers(name: str, formula: str, op: str) -> Callable[[Any, Any], Tensor]:
    def function(x1: Any, x2: Any, /) -> Tensor:
        values = together(x1, x2)
        if values[0].kind.kind == "float":
            raise TypeError(f"{name} takes integers or booleans, got {values[0].kind.name}")
        return _emit(op, values)

    return _named(function, name, f"Return ``{formula}`` bit by bit, broadcast.")


bitwise_and = _integers("bitwise_and", "x1 and x2", "and")
bitwise_or = _integers("bitwise_or", "x1 or x2", "or")
bitwise_xor = _integers("bitwise_xor", "x1 xor x2", "xor")
bitwise_left_shift = _integers("bitwise_left_shift", "x1 * 2**x2", "shift_left")
bitwise_right_shift = _integers("bitwise_right_shift", "floor(x1 / 2**x2)", "shift_right")


def add(x1: Any, x2: Any, /) -> Tensor:
    """Return ``x1 + x2`` element by element, broadcast; of booleans, their disjunction."""
    values = together(x1, x2)
    return _emit("or" if values[0].kind is BOOL else "add", values)


def multiply(x1: Any, x2: Any, /) -> Tensor:
    """Return ``x1 * x2`` element by element, broadcast; of booleans, their conjunction."""
    values = together(x1, x2)
    return _emit("and" if values[0].kind is BOOL else "mul", values)


def floor_divide(x1: Any, x2: Any, /) -> Tensor:
    """Return ``floor(x1 / x2)`` element by element, broadcast; dtype of the operands."""
    return _emit("floor_div", together(x1, x2))


def remainder(x1: Any, x2: Any, /) -> Tensor:
    """Return ``x1 - floor(x1 / x2) * x2`` element by element, with the sign of ``x2``."""
    return _emit("mod", together(x1, x2))


def fmod(x1: Any, x2: Any, /) -> Tensor:
    """Return ``x1 - trunc(x1 / x2) * x2`` element by element, with the sign of ``x1``."""
    return _emit("rem", together(x1, x2))


def pow(x1: Any, x2: Any, /) -> Tensor:
    """Return ``x1 ** x2`` element by element; a small integer exponent becomes products.

    Integers to the power of integers are integers, which wrap, but to a negative number floats.
    """
    if is_number(x2) and float(x2).is_integer() and 1 <= x2 <= 4:
        base = lift(x1)
        base = base if base.kind.kind == "float" else same_dtype(base, x2)[0]
        return _product(base, int(x2))
    if is_number(x2) and x2 == 0.5:
        return sqrt(x1)
    values = together(x1, x2)
    if values[0].kind is BOOL or (is_number(x2) and x2 < 0):
        values = [_floating(v) for v in values]
    return _emit("pow", values)


def _product(x: Tensor, times: int) -> Tensor:
    if times == 1:
        return x
    half = _product(x, times // 2)
    whole = _emit("mul", [half, half])
    return _emit("mul", [whole, x]) if times % 2 else whole


def bitwise_invert(x: Any, /) -> Tensor:
    """Return ``x`` with every bit flipped; of booleans, their negation."""
    value = lift(x)
    if value.kind.kind == "float":
        raise TypeError(f"bitwise_invert takes integers or booleans, got {value.kind.name}")
    return _emit("not", [value])


def positive(x: Any, /) -> Tensor:
    """Return ``x``."""
    return lift(x)


def sign(x: Any, /) -> Tensor:
    """Return -1, 0 or 1 with the sign of ``x``; NaN stays NaN."""
    return _emit("sign", [lift(x)])


def _rounding(name: str, formula: str) -> Callable[[Any], Tensor]:
    def function(x: Any, /) -> Tensor:
        value = lift(x)
        return _emit(name, [value]) if value.kind.kind == "float" else value

    return _named(function, name, f"Return {formula}; integers are returned as they are.")


ceil = _rounding("ceil", "the least integer that is not less than ``x``")
floor = _rounding("floor", "the greatest integer that is not greater than ``x``")
trunc = _rounding("trunc", "``x`` rounded toward zero")
round = _rounding("round", "``x`` rounded to the nearest integer, ties to even")


def _classify(name: str, formula: str) -> Callable[[Any], Tensor]:
    def function(x: Any, /) -> Tensor:
        value = lift(x)
        if value.kind.kind != "float":
            return full(value.shape, name == "isfinite", BOOL)
        return _emit(name, [value], BOOL)

    return _named(function, name, f"Return whether ``x`` is {formula}, as booleans.")


isnan = _classify("isnan", "NaN")
isinf = _classify("isinf", "an infinity")
isfinite = _classify("isfinite", "neither an infinity nor NaN")


def _boolean(x: Any) -> Tensor:
    value = lift(x)
    return value if value.kind is BOOL else not_equal(value, 0)


def _logical(name: str, op: str) -> Callable[[Any, Any], Tensor]:
    def function(x1: Any, x2: Any, /) -> Tensor:
        return _emit(op, together(_boolean(x1), _boolean(x2)))

    return _named(function, name, f"Return ``x1 {op} x2`` of truth values; numbers are true but 0.")


logical_and = _logical("logical_and", "and")
logical_or = _logical("logical_or", "or")
logical_xor = _logical("logical_xor", "xor")


def logical_not(x: Any, /) -> Tensor:
    """Return ``not x`` of truth values; numbers are true but 0."""
    return _emit("not", [_boolean(x)])


def where(condition: Any, x1: Any, x2: Any, /) -> Tensor:
    """Return ``x1`` where ``condition`` is true, else ``x2``; all three are broadcast."""
    chosen = _boolean(condition)
    a, b = together(x1, x2, shape=chosen.shape)
    return _emit("select", [broadcast(chosen, a.shape), a, b], a.kind)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Tensor:
    """Return ``x`` limited to ``min`` and ``max``; NaN stays NaN. None is no limit."""
    value = lift(x)
    low = value if min is None else maximum(value, _like(min, value))
    return low if max is None else minimum(low, _like(max, value))


def _like(limit: Any, value: Tensor) -> Any:
    return limit if is_number(limit) else cast(lift(limit), value.kind)


def astype(x: Any, dtype: Any, /, *, copy: bool = True) -> Tensor:
    """Return ``x`` converted to ``dtype``; floats are truncated toward zero and saturate."""
    return cast(lift(x), as_dtype(dtype))


def bitcast(x: Any, dtype: Any, /) -> Tensor:
    """Return the bits of ``x`` read as ``dtype``, which has as many."""
    value, kind = lift(x), as_dtype(dtype)
    if kind.bytes != value.kind.bytes or BOOL in (kind, value.kind):
        raise TypeError(f"cannot read {value.kind.name} as {kind.name}: they differ in width")
    return value if kind is value.kind else _emit("bitcast", [value], kind)


def logaddexp(x1: Any, x2: Any, /) -> Tensor:
    """Return ``log(exp(x1) + exp(x2))`` without overflow."""
    a, b = (_floating(v) for v in together(x1, x2))
    top = maximum(a, b)
    far = _emit("neg", [_emit("abs", [_emit("sub", [a, b])])])
    return where(isfinite(top), _emit("add", [top, log1p(exp(far))]), top)


def isclose(x1: Any, x2: Any, /, rtol: float = 1e-5, atol: float = 1e-8) -> Tensor:
    """Return whether ``|x1 - x2| <= atol + rtol * |x2|``; infinities equal themselves."""
    a, b = same_dtype(x1, x2)
    near = less_equal(abs(subtract(a, b)), add(atol, multiply(rtol, abs(b))))
    return logical_or(equal(a, b), logical_and(near, isfinite(b)))


def result_type(*arrays: Any) -> Any:
    """Return the NumPy dtype that ``arrays`` have together."""
    return same_dtype(*arrays)[0].dtype


def finfo(dtype: Any) -> Any:
    """Return NumPy's `finfo` of a floating dtype."""
    return np.finfo(as_dtype(dtype).numpy)


def iinfo(dtype: Any) -> Any:
    """Return NumPy's `iinfo` of an integer dtype."""
    return np.iinfo(as_dtype(dtype).numpy)


def check_axis(axis: Any, rank: int) -> int:
    """Return ``axis`` counted from the front."""
    if not isinstance(axis, int | np.integer):
        raise TraceError(f"an axis is a plain int, got {axis!r}")
    if not -rank <= axis < rank:
        raise IndexError(f"axis {axis} is out of range for {rank} axes")
    return int(axis) % rank
