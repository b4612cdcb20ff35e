"""Elementwise functions.

Arguments are traced values, arrays or Python numbers, broadcast together and promoted to one dtype
as by NumPy (`promotion`). Results have the broadcast shape. Functions listed in `ufuncs` are called
as NumPy's ufuncs; the others are registered in the table here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stepwell.core.dtypes import DTYPES, DType
from stepwell.frontend.errors import TraceError
from stepwell.frontend.promotion import (
    BOOL,
    as_dtype,
    broadcast,
    cast,
    common,
    fresh,
    full,
    is_number,
    lift,
    same_dtype,
    together,
    wrapped_number,
)
from stepwell.frontend.table import call_named, method, public
from stepwell.frontend.tensor import Tensor

BYTE, DOUBLE = DTYPES["i8"], as_dtype("f64")


def _floating(x: Tensor) -> Tensor:
    """Return ``x`` as floats, integers as in NumPy: the narrowest dtype that holds each of them."""
    if x.kind.kind == "float":
        return x
    return cast(x, DTYPES[{1: "f16", 2: "f32"}.get(x.kind.bytes, "f64")])


def _emit(op: str, operands: list[Tensor], dtype: DType | None = None) -> Tensor:
    first = operands[0]
    return first.graph.emit(op, operands, [(dtype or first.kind, first.shape)])[0]


def _named(function: Callable[..., Tensor], name: str, doc: str) -> Callable[..., Tensor]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _unary(name: str, formula: str, op: str = "", floats: bool = True) -> Callable[[Any], Tensor]:
    """Return the function ``name``; ``floats`` converts integers first."""

    def function(x: Any, /) -> Tensor:
        value = lift(x)
        return _emit(op or name, [_floating(value) if floats else value])

    kinds = "; integers are converted to floats" if floats else ""
    return _named(function, name, f"Return ``{formula}`` element by element{kinds}.")


def _binary(
    name: str, formula: str, op: str = "", floats: bool = False
) -> Callable[[Any, Any], Tensor]:
    def function(x1: Any, x2: Any, /) -> Tensor:
        values = together(x1, x2)
        if floats:
            values = [_floating(v) for v in values]
        return _emit(op or name, values)

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
erf = public()(_unary("erf", "2/sqrt(pi) * integral(0..x) exp(-t*t) dt"))
erfc = public()(_unary("erfc", "1 - erf(x), without cancellation"))
exp = _unary("exp", "e**x")
exp2 = _unary("exp2", "2**x")
expm1 = _unary("expm1", "e**x - 1, precise near 0")
log = _unary("log", "the natural logarithm of x")
log10 = _unary("log10", "log(x) / log(10)")
log1p = _unary("log1p", "log(1 + x), precise near 0")
log2 = _unary("log2", "log(x) / log(2)")
reciprocal = _unary("reciprocal", "1 / x")
rsqrt = public()(_unary("rsqrt", "1 / sqrt(x)"))
sin = _unary("sin", "sin(x), x in radians")
sinh = _unary("sinh", "sinh(x)")
sqrt = _unary("sqrt", "the square root of x")
tan = _unary("tan", "tan(x), x in radians")
tanh = _unary("tanh", "tanh(x)")

divide = _binary("divide", "x1 / x2 as floats", "div", floats=True)
atan2 = _binary("atan2", "the angle of the point (x2, x1)", floats=True)
hypot = _binary("hypot", "sqrt(x1*x1 + x2*x2)", floats=True)
copysign = _binary("copysign", "|x1| with the sign of x2", floats=True)


def _comparison(name: str, formula: str, op: str) -> Callable[[Any, Any], Tensor]:
    def function(x1: Any, x2: Any, /) -> Tensor:
        wide = _is_first_signed(x1, x2)
        if wide is None:
            return _emit(op, together(x1, x2), BOOL)
        signed, unsigned = (x1, x2) if wide else (x2, x1)
        # a negative number is less than any unsigned one
        known = getattr(np, name)(*((-1, 0) if wide else (0, -1)))
        other = cast(lift(signed), unsigned.kind)
        found = _emit(op, together(*((other, x2) if wide else (x1, other))), BOOL)
        return where(less(signed, 0), bool(known), found)

    return _named(function, name, f"Return ``{formula}`` element by element, broadcast.")


def _is_first_signed(x1: Any, x2: Any) -> bool | None:
    """Whether the first of two integers is the signed one; None if an integer dtype holds both."""
    kinds = [v.kind.name if isinstance(v, Tensor) and not v.weak else "" for v in (x1, x2)]
    if "ui64" not in kinds:
        return None
    other = kinds[1 - kinds.index("ui64")]
    return kinds[1] == "ui64" if other in ("i8", "i16", "i32", "i64") else None


equal = _comparison("equal", "x1 == x2", "eq")
not_equal = _comparison("not_equal", "x1 != x2", "ne")
less = _comparison("less", "x1 < x2", "lt")
less_equal = _comparison("less_equal", "x1 <= x2", "le")
greater = _comparison("greater", "x1 > x2", "gt")
greater_equal = _comparison("greater_equal", "x1 >= x2", "ge")


def _integers(name: str, formula: str, op: str) -> Callable[[Any, Any], Tensor]:
    def function(x1: Any, x2: Any, /) -> Tensor:
        values = together(x1, x2)
        if values[0].kind.kind == "float":
            raise TypeError(f"{name} takes integers or booleans, got {values[0].kind.name}")
        return _emit(op, _narrow(values) if op.startswith("shift") else values)

    return _named(function, name, f"Return ``{formula}`` bit by bit, broadcast.")


bitwise_and = _integers("bitwise_and", "x1 and x2", "and")
bitwise_or = _integers("bitwise_or", "x1 or x2", "or")
bitwise_xor = _integers("bitwise_xor", "x1 xor x2", "xor")
bitwise_left_shift = _integers("bitwise_left_shift", "x1 * 2**x2", "shift_left")
bitwise_right_shift = _integers("bitwise_right_shift", "floor(x1 / 2**x2)", "shift_right")


def _narrow(values: list[Tensor]) -> list[Tensor]:
    """Return booleans as int8, in which NumPy computes functions without a loop for booleans."""
    return [cast(v, BYTE) if v.kind is BOOL else v for v in values]


def abs(x: Any, /) -> Tensor:
    """Return ``|x|`` element by element; booleans stay as they are."""
    value = lift(x)
    return value if value.kind is BOOL else _emit("abs", [value])


def negative(x: Any, /) -> Tensor:
    """Return ``-x`` element by element; TypeError for booleans."""
    value = lift(x)
    if value.kind is BOOL:
        raise TypeError("negative (-x) takes no booleans; use ~x or logical_not")
    return _emit("neg", [value])


def square(x: Any, /) -> Tensor:
    """Return ``x * x`` element by element; as int8 for booleans."""
    return _emit("square", _narrow([lift(x)]))


def bitwise_count(x: Any, /) -> Tensor:
    """Return the number of bits set in ``|x|``, as uint8; TypeError for floats."""
    value = lift(x)
    if value.kind.kind == "float":
        raise TypeError(f"bitwise_count takes integers or booleans, got {value.kind.name}")
    if value.kind is BOOL:
        return cast(value, as_dtype("ui8"))
    value = abs(value) if value.kind.kind == "signed" else value
    return cast(_emit("popcount", [value]), as_dtype("ui8"))


def subtract(x1: Any, x2: Any, /) -> Tensor:
    """Return ``x1 - x2`` element by element, broadcast; TypeError for booleans."""
    values = together(x1, x2)
    if values[0].kind is BOOL:
        raise TypeError("subtract (x - y) takes no booleans; use x ^ y or logical_xor")
    return _emit("sub", values)


def maximum(x1: Any, x2: Any, /) -> Tensor:
    """Return the larger of ``x1`` and ``x2``, broadcast; NaN where one is NaN."""
    values = together(x1, x2)
    return _emit("or" if values[0].kind is BOOL else "max", values)


def minimum(x1: Any, x2: Any, /) -> Tensor:
    """Return the smaller of ``x1`` and ``x2``, broadcast; NaN where one is NaN."""
    values = together(x1, x2)
    return _emit("and" if values[0].kind is BOOL else "min", values)


def add(x1: Any, x2: Any, /) -> Tensor:
    """Return ``x1 + x2`` element by element, broadcast; for booleans, their disjunction."""
    values = together(x1, x2)
    return _emit("or" if values[0].kind is BOOL else "add", values)


def multiply(x1: Any, x2: Any, /) -> Tensor:
    """Return ``x1 * x2`` element by element, broadcast; for booleans, their conjunction."""
    values = together(x1, x2)
    return _emit("and" if values[0].kind is BOOL else "mul", values)


def floor_divide(x1: Any, x2: Any, /) -> Tensor:
    """Return ``floor(x1 / x2)`` element by element, broadcast; dtype of the operands."""
    return _emit("floor_div", _narrow(together(x1, x2)))


def remainder(x1: Any, x2: Any, /) -> Tensor:
    """Return ``x1 - floor(x1 / x2) * x2`` element by element, with the sign of ``x2``."""
    return _emit("mod", _narrow(together(x1, x2)))


def fmod(x1: Any, x2: Any, /) -> Tensor:
    """Return ``x1 - trunc(x1 / x2) * x2`` element by element, with the sign of ``x1``."""
    return _emit("rem", _narrow(together(x1, x2)))


def pow(x1: Any, x2: Any, /) -> Tensor:
    """Return ``x1 ** x2`` element by element; a small integer exponent becomes products.

    Integer powers of integers are integers, which wrap; a negative exponent gives floats.
    """
    if is_number(x2) and float(x2).is_integer() and 1 <= x2 <= 4:
        base = lift(x1)
        base = base if base.kind.kind == "float" else same_dtype(base, x2)[0]
        return _product(base, int(x2))
    if is_number(x2) and x2 == 0.5:
        return sqrt(x1)
    values = together(x1, x2)
    if is_number(x2) and x2 < 0:
        values = [_floating(v) for v in values]
    return _emit("pow", _narrow(values))


def _product(x: Tensor, times: int) -> Tensor:
    if times == 1:
        return x
    half = _product(x, times // 2)
    whole = _emit("mul", [half, half])
    return _emit("mul", [whole, x]) if times % 2 else whole


def bitwise_invert(x: Any, /) -> Tensor:
    """Return ``x`` with every bit flipped; for booleans, their negation."""
    value = lift(x)
    if value.kind.kind == "float":
        raise TypeError(f"bitwise_invert takes integers or booleans, got {value.kind.name}")
    return _emit("not", [value])


def positive(x: Any, /) -> Tensor:
    """Return ``x``; TypeError for booleans."""
    return _number("positive (+x)", lift(x))


def sign(x: Any, /) -> Tensor:
    """Return -1, 0 or 1 with the sign of ``x``; NaN stays NaN."""
    return _emit("sign", [_number("sign", lift(x))])


def _number(name: str, value: Tensor) -> Tensor:
    if value.kind is BOOL:
        raise TypeError(f"{name} takes no booleans; convert with astype first")
    return value


def _rounding(name: str, formula: str) -> Callable[[Any], Tensor]:
    def function(x: Any, /) -> Tensor:
        value = lift(x)
        if value.kind is BOOL and name == "round":
            return cast(value, DTYPES["f16"])
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


def truth(x: Any) -> Tensor:
    """Return whether each element of ``x`` is nonzero."""
    value = lift(x)
    return value if value.kind is BOOL else not_equal(value, 0)


def _logical(name: str, op: str) -> Callable[[Any, Any], Tensor]:
    def function(x1: Any, x2: Any, /) -> Tensor:
        return _emit(op, together(truth(x1), truth(x2)))

    return _named(function, name, f"Return ``x1 {op} x2`` of truth values; numbers are true but 0.")


logical_and = _logical("logical_and", "and")
logical_or = _logical("logical_or", "or")
logical_xor = _logical("logical_xor", "xor")


def logical_not(x: Any, /) -> Tensor:
    """Return ``not x`` of truth values; nonzero numbers are true."""
    return _emit("not", [truth(x)])


@public()
def where(condition: Any, x: Any = None, y: Any = None) -> Tensor:
    """Return ``x`` where ``condition`` is true, else ``y``; all three are broadcast."""
    if x is None and y is None:
        return call_named("nonzero", (condition,), {})
    if x is None or y is None:
        raise ValueError("either both or neither of x and y should be given")
    chosen = truth(condition)
    kind = common(*(v if is_number(v) else lift(v) for v in (x, y)))
    x, y = (full((), wrapped_number(v, kind), kind) if is_number(v) else v for v in (x, y))
    a, b = together(x, y, shape=chosen.shape)
    return _emit("select", [broadcast(chosen, a.shape), a, b], a.kind)


@public(method=True)
def clip(
    a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None
) -> Tensor:
    """Return ``a`` clamped to ``a_min`` .. ``a_max``, in the dtype that all promote to.

    None is no limit; NaN stays NaN, and where ``a_min > a_max`` the result is ``a_max``.
    min, max : aliases of the limits
    """
    if min is not None or max is not None:
        if a_min is not None or a_max is not None:
            raise ValueError("Passing `min` or `max` keyword argument when `a_min` and `a_max` are")
        a_min, a_max = min, max
    a_min, a_max = _limit(a, a_min, -1), _limit(a, a_max, 1)
    given = [limit for limit in (a_min, a_max) if limit is not None]
    value, *limits = same_dtype(a, *given)
    low = value if a_min is None else maximum(value, limits.pop(0))
    return fresh(low if a_max is None else minimum(low, limits.pop()))


def _limit(a: Any, limit: Any, sign: int) -> Any:
    """Return a limit, or None if it is an integer outside the range of the dtype of ``a``."""
    value = a if is_number(a) else lift(a)
    if not isinstance(limit, int) or isinstance(value, int | float):
        return limit
    if value.weak or value.kind.kind not in ("signed", "unsigned"):
        return limit
    ends = np.iinfo(value.kind.numpy)
    return None if (limit < ends.min if sign < 0 else limit > ends.max) else limit


@public()
def astype(x: Any, dtype: Any, *, copy: bool = True) -> Tensor:
    """Return ``x`` converted to ``dtype``; floats are truncated toward zero."""
    found = cast(lift(x), as_dtype(dtype))
    return fresh(found) if copy else found


@method("astype")
def _astype(
    x: Tensor, dtype: Any, order: str = "K", casting: str = "unsafe", copy: bool = True
) -> Tensor:
    kind = as_dtype(dtype)
    if casting != "unsafe" and not np.can_cast(x.dtype, kind.numpy, casting):  # pyright: ignore
        raise TypeError(
            f"Cannot cast array data from {x.dtype!r} to {kind.numpy!r} according to the rule "
            f"'{casting}'"
        )
    return astype(x, dtype, copy=copy)


@public()
def bitcast(x: Any, dtype: Any) -> Tensor:
    """Return the bits of ``x`` reinterpreted as ``dtype``, of the same width."""
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


def axes_of(axis: Any) -> tuple[Any, ...]:
    """Return ``axis``, an int or a sequence of ints, as a tuple; each is checked later."""
    if isinstance(axis, int | np.integer | Tensor):
        return (axis,)
    try:
        if not isinstance(axis, str):
            return tuple(axis)
    except TypeError:
        pass
    raise TypeError(f"an axis is a plain int, or a tuple of them, got {axis!r}")


def check_axis(axis: Any, rank: int) -> int:
    """Return ``axis`` counted from the front."""
    if not isinstance(axis, int | np.integer):
        raise TraceError(f"an axis is a plain int, got {axis!r}")
    if not -rank <= axis < rank:
        raise np.exceptions.AxisError(f"axis {axis} is out of range for {rank} axes")
    return int(axis) % rank
