"""Elementwise functions of `jax.lax`, of arrays of one dtype and one shape.

Unlike NumPy's they convert and broadcast only Python numbers and scalars.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np

from stepwell.core.dtypes import DTYPES, DType
from stepwell.core.shapes import show
from stepwell.frontend import elementwise as e
from stepwell.frontend.promotion import (
    BOOL,
    as_dtype,
    broadcast,
    cast,
    is_number,
    lift,
    same_narrow,
)
from stepwell.frontend.table import UFUNCS, complete
from stepwell.frontend.tensor import Tensor

FLOATS, INTEGERS = ("float",), ("signed", "unsigned")
NUMBERS, BITS = (*FLOATS, *INTEGERS), ("bool", *INTEGERS)


def operands(name: str, *values: Any, kinds: tuple[str, ...] = ()) -> list[Tensor]:
    """Return values of one dtype and shape, as ``jax.lax`` requires; convert numbers.

    raises TypeError : dtypes or shapes differ, or the dtype is not of ``kinds``
    """
    found = same_narrow(*values)
    given = [v for v in map(_typed, values) if v is not None]
    if len({k.name for k in given}) > 1:
        listed = ", ".join(str(k.numpy if k.name != "bf16" else "bfloat16") for k in given)
        raise TypeError(f"lax.{name} requires arguments to have the same dtypes, got {listed}")
    shapes = {v.shape for v in found if v.shape}
    if len(shapes) > 1:
        listed = ", ".join(f"[{show(v.shape)}]" for v in found)
        raise TypeError(f"lax.{name} requires arguments to have the same shape, got {listed}")
    if kinds and found[0].kind.kind not in kinds:
        raise TypeError(f"lax.{name} does not accept dtype {found[0].kind.numpy}")
    shape = shapes.pop() if shapes else ()
    return [broadcast(v, shape) for v in found]


def _typed(value: Any) -> DType | None:
    if is_number(value) or (isinstance(value, Tensor) and value.weak):
        return None
    return lift(value).kind


def _unary(
    name: str, compute: Callable[[Tensor], Tensor], doc: str, kinds: tuple[str, ...]
) -> Callable[[Any], Tensor]:
    def function(x: Any) -> Tensor:
        return compute(operands(name, x, kinds=kinds)[0])

    return _documented(function, name, doc)


def _accurate(name: str, compute: Callable[[Tensor], Tensor], doc: str) -> Callable[..., Tensor]:
    def function(x: Any, *, accuracy: Any = None) -> Tensor:
        return compute(operands(name, x, kinds=FLOATS)[0])

    return _documented(
        function, name, f"{doc} ``accuracy`` has no effect: errors are within 2 ulp."
    )


def _binary(
    name: str, compute: Callable[[Tensor, Tensor], Tensor], doc: str, kinds: tuple[str, ...]
) -> Callable[[Any, Any], Tensor]:
    def function(x: Any, y: Any) -> Tensor:
        a, b = operands(name, x, y, kinds=kinds)
        return compute(a, b)

    return _documented(function, name, doc)


def _documented(function: Any, name: str, doc: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return {doc}"
    return function


def _emitter(op: str) -> Callable[..., Tensor]:
    def compute(*values: Tensor) -> Tensor:
        first = values[0]
        return first.graph.emit(op, list(values), [(first.kind, first.shape)])[0]

    return compute


def _ufunc(name: str) -> Callable[..., Tensor]:
    def compute(*values: Tensor) -> Tensor:
        complete()
        return UFUNCS[name](*values)

    return compute


def _divided(x: Tensor, y: Tensor) -> Tensor:
    """Return ``x / y``; integer quotients are truncated, and -1 where y is 0."""
    if x.kind.kind == "float":
        return e.divide(x, y)
    safe = e.where(e.equal(y, 0), 1, y)
    if x.kind.kind == "unsigned":
        return e.where(e.equal(y, 0), np.iinfo(x.kind.numpy).max, e.floor_divide(x, safe))
    down = e.floor_divide(x, safe)
    cut = e.logical_and(e.less(down, 0), e.not_equal(e.multiply(down, safe), x))
    return e.where(e.equal(y, 0), -1, e.add(down, cast(cut, x.kind)))


def _remainder(x: Tensor, y: Tensor) -> Tensor:
    """Return the remainder of `div`, with the sign of ``x``."""
    if x.kind.kind == "float":
        return e.fmod(x, y)
    return e.where(e.equal(y, 0), x, e.fmod(x, e.where(e.equal(y, 0), 1, y)))


def _power(x: Tensor, y: Tensor) -> Tensor:
    return e.pow(x, y)


def _shifted(op: str, sign: bool | None = None) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a shift; by the dtype's width or more it shifts all bits out."""

    def compute(x: Tensor, y: Tensor) -> Tensor:
        value = x
        if sign is False and x.kind.kind == "signed":
            value = e.bitcast(x, DTYPES[f"u{x.kind.name}"])
        if sign is True and x.kind.kind == "unsigned":
            value = e.bitcast(x, DTYPES[x.kind.name[1:]])
        width = 8 * x.kind.bytes
        count = cast(y, value.kind)
        beyond = e.logical_or(e.less(y, 0), e.greater_equal(y, width))
        found = value.graph.emit(
            op, [value, e.where(beyond, width - 1, count)], [(value.kind, value.shape)]
        )[0]
        gone = e.where(beyond, found if sign is True else 0, found)
        return gone if gone.kind is x.kind else e.bitcast(gone, x.kind)

    return compute


def _count(op: str) -> Callable[[Tensor], Tensor]:
    return lambda x: _emitter(op)(x)


abs_ = _unary("abs", e.abs, "``|x|``.", NUMBERS)
acos = _unary("acos", e.acos, "arccos(x).", FLOATS)
acosh = _unary("acosh", e.acosh, "arcosh(x).", FLOATS)
asin = _unary("asin", e.asin, "arcsin(x).", FLOATS)
asinh = _unary("asinh", e.asinh, "arsinh(x).", FLOATS)
atan = _unary("atan", e.atan, "arctan(x).", FLOATS)
atanh = _unary("atanh", e.atanh, "artanh(x).", FLOATS)
bitwise_not = _unary("bitwise_not", e.bitwise_invert, "``~x``.", BITS)
cbrt = _accurate("cbrt", e.cbrt, "the real cube root of x.")
ceil = _unary("ceil", e.ceil, "x rounded up.", FLOATS)
clz = _unary("clz", _count("clz"), "the number of leading zero bits of integers.", INTEGERS)
cos = _accurate("cos", e.cos, "cos(x).")
cosh = _unary("cosh", e.cosh, "cosh(x).", FLOATS)
erf = _unary("erf", e.erf, "the error function of x.", FLOATS)
erfc = _unary("erfc", e.erfc, "1 - erf(x), without cancellation.", FLOATS)
exp = _accurate("exp", e.exp, "e**x.")
exp2 = _accurate("exp2", e.exp2, "2**x.")
expm1 = _accurate("expm1", e.expm1, "e**x - 1, precise near 0.")
floor = _unary("floor", e.floor, "x rounded down.", FLOATS)
is_finite = _unary("is_finite", e.isfinite, "whether x is neither infinite nor NaN.", FLOATS)
log = _accurate("log", e.log, "the natural logarithm of x.")
log1p = _accurate("log1p", e.log1p, "log(1 + x), precise near 0.")
logistic = _accurate("logistic", _emitter("sigmoid"), "``1 / (1 + exp(-x))``.")
neg = _unary("neg", e.negative, "``-x``.", NUMBERS)
population_count = _unary(
    "population_count", _count("popcount"), "the number of set bits, in the dtype of x.", INTEGERS
)
reciprocal = _unary("reciprocal", e.reciprocal, "``1 / x``.", FLOATS)
rsqrt = _accurate("rsqrt", e.rsqrt, "``1 / sqrt(x)``.")
sign = _unary("sign", e.sign, "-1, 0 or 1; NaN stays NaN.", NUMBERS)
sin = _accurate("sin", e.sin, "sin(x).")
sinh = _unary("sinh", e.sinh, "sinh(x).", FLOATS)
sqrt = _accurate("sqrt", e.sqrt, "the square root of x.")
square = _unary("square", e.square, "``x * x``.", NUMBERS)
tan = _accurate("tan", e.tan, "tan(x).")
tanh = _accurate("tanh", e.tanh, "tanh(x).")

add = _binary("add", e.add, "``x + y``.", (*NUMBERS, "bool"))
atan2 = _binary("atan2", e.atan2, "the angle of the point (y, x).", FLOATS)
bitwise_and = _binary("bitwise_and", e.bitwise_and, "``x & y``.", BITS)
bitwise_or = _binary("bitwise_or", e.bitwise_or, "``x | y``.", BITS)
bitwise_xor = _binary("bitwise_xor", e.bitwise_xor, "``x ^ y``.", BITS)
div = _binary(
    "div",
    _divided,
    "``x / y``; truncated for integers, with all bits set for y = 0.",
    NUMBERS,
)
eq = _binary("eq", e.equal, "``x == y``.", ())
ge = _binary("ge", e.greater_equal, "``x >= y``.", ())
gt = _binary("gt", e.greater, "``x > y``.", ())
le = _binary("le", e.less_equal, "``x <= y``.", ())
lt = _binary("lt", e.less, "``x < y``.", ())
max_ = _binary("max", e.maximum, "the maximum of x and y; NaN where either is NaN.", ())
min_ = _binary("min", e.minimum, "the minimum of x and y; NaN where either is NaN.", ())
ne = _binary("ne", e.not_equal, "``x != y``.", ())
pow_ = _binary("pow", _power, "``x**y``.", NUMBERS)
rem = _binary(
    "rem", _remainder, "the remainder of `div`, with the sign of x; x for integer y = 0.", NUMBERS
)
shift_left = _binary("shift_left", _shifted("shift_left"), "``x << y``.", INTEGERS)
shift_right_arithmetic = _binary(
    "shift_right_arithmetic",
    _shifted("shift_right", True),
    "``x >> y``, shifting in the sign.",
    INTEGERS,
)
shift_right_logical = _binary(
    "shift_right_logical",
    _shifted("shift_right", False),
    "``x >> y``, shifting in zeros.",
    INTEGERS,
)
sub = _binary("sub", e.subtract, "``x - y``.", NUMBERS)


def mul(x: Any, y: Any, *, out_dtype: Any = None) -> Tensor:
    """Return ``x * y``, in ``out_dtype`` if given."""
    a, b = operands("mul", x, y, kinds=(*NUMBERS, "bool"))
    if out_dtype is not None:
        a, b = (cast(v, as_dtype(out_dtype)) for v in (a, b))
    return e.multiply(a, b)


def nextafter(x1: Any, x2: Any) -> Tensor:
    """Return the float after ``x1`` in the direction of ``x2``."""
    return _ufunc("nextafter")(*operands("nextafter", x1, x2, kinds=FLOATS))


def integer_pow(x: Any, y: int) -> Tensor:
    """Return ``x**y`` for a plain integer ``y``."""
    (value,) = operands("integer_pow", x, kinds=NUMBERS)
    if y < 0 and value.kind.kind != "float":
        raise TypeError(f"lax.integer_pow of integers takes no negative power, got {y}")
    return e.pow(value, y)


class RoundingMethod(Enum):
    """How numbers halfway between two integers are rounded.

    value, names, module, qualname, type, start, boundary : of `enum.Enum`
    source : `jax.lax.RoundingMethod`

    >>> import stepwell as sw
    >>> sw.lax.RoundingMethod.TO_NEAREST_EVEN.value
    1
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round_(x: Any, rounding_method: Any = RoundingMethod.AWAY_FROM_ZERO) -> Tensor:
    """Return ``x`` rounded to integers, halves away from zero by default."""
    (value,) = operands("round", x, kinds=FLOATS)
    if rounding_method is RoundingMethod.TO_NEAREST_EVEN or rounding_method == 1:
        return e.round(value)
    size = e.abs(value)
    down = e.floor(size)
    up = e.greater_equal(e.subtract(size, down), 0.5)
    return e.copysign(e.where(up, e.add(down, 1), down), value)


def clamp(min: Any, x: Any, max: Any) -> Tensor:
    """Return ``x`` clamped to ``min`` .. ``max``.

    min, max : of the dtype of ``x``, of its shape or scalar
    """
    low, value, high = operands("clamp", min, x, max)
    return _emitter("clamp")(value, low, high)


def fma(x: Any, y: Any, z: Any) -> Tensor:
    """Return ``x * y + z`` with one rounding, for floats of one shape."""
    return _emitter("fma")(*operands("fma", x, y, z, kinds=FLOATS))


def select(pred: Any, on_true: Any, on_false: Any) -> Tensor:
    """Return ``on_true`` where ``pred`` is true, else ``on_false``."""
    return select_n(pred, on_false, on_true)


def select_n(which: Any, *cases: Any) -> Tensor:
    """Return each element from the case that ``which`` selects: a boolean of two, or int32.

    which : of the shape of the cases, or scalar
    """
    if not cases:
        raise TypeError("lax.select_n needs at least one case")
    values = operands("select_n", *cases)
    number = lift(which)
    if number.kind is BOOL:
        if len(values) > 2:
            raise TypeError(f"lax.select_n with booleans takes two cases, got {len(values)}")
        number = cast(number, as_dtype("i32"))
    if number.kind.kind not in INTEGERS:
        raise TypeError(f"lax.select_n: which must be booleans or int32, got {number.dtype}")
    if number.shape not in ((), values[0].shape):
        raise TypeError(
            f"lax.select_n: which must have the shape of the cases or no axes, got "
            f"[{show(number.shape)}] and [{show(values[0].shape)}]"
        )
    found = values[-1]
    for at in reversed(range(len(values) - 1)):
        found = e.where(e.less_equal(number, at), values[at], found)
    return found
