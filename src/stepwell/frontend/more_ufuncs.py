"""Ufuncs that are composed of others, or computed from the bits of floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from stepwell.core.dtypes import DType
from stepwell.frontend import elementwise as e
from stepwell.frontend import reduction as r
from stepwell.frontend.lax_control import while_loop
from stepwell.frontend.linear_algebra import matmul
from stepwell.frontend.promotion import as_dtype, cast, full, together
from stepwell.frontend.table import UFUNCS
from stepwell.frontend.tensor import Tensor

_BITS = {8: as_dtype("i64"), 4: as_dtype("i32"), 2: as_dtype("i16")}
_MANTISSA = {"f64": 52, "f32": 23, "f16": 10}
_BIAS = {"f64": 1023, "f32": 127, "f16": 15}


def _bits(x: Tensor) -> Tensor:
    return e.bitcast(x, _BITS[x.kind.bytes])


def _number(value: int, like: Tensor) -> Tensor:
    return full((), value, like.kind)


def signbit(x: Tensor) -> Tensor:
    """Return whether the sign of a float is negative, also for zeros and NaN."""
    if x.kind.name == "bf16":
        x = cast(x, as_dtype("f32"))
    return e.less(_bits(x), 0)


def nextafter(x1: Tensor, x2: Tensor) -> Tensor:
    """Return the next float after ``x1`` towards ``x2``."""
    x, y = together(x1, x2)
    bits = _bits(x)
    away = e.equal(e.less(x, y), e.greater(x, 0))
    stepped = e.add(bits, e.where(away, _number(1, bits), _number(-1, bits)))
    least = e.where(signbit(y), _number(-(1 << (8 * x.kind.bytes - 1)), bits), _number(0, bits))
    stepped = e.where(e.equal(x, 0), e.add(least, 1), stepped)
    found = e.bitcast(stepped, x.kind)
    found = e.where(e.equal(x, y), y, found)
    return e.where(e.logical_or(e.isnan(x), e.isnan(y)), e.add(x, y), found)


def spacing(x: Tensor) -> Tensor:
    """Return the distance to the next float away from zero, with the sign of ``x``.

    For f16 NumPy returns the distance to the next greater float.
    """
    far = full(x.shape, np.inf, x.kind)
    half = x.kind.name == "f16"
    size = x if half else e.abs(x)
    found = e.subtract(nextafter(size, far), size)
    found = e.where(e.isfinite(x), found, full((), np.nan, x.kind))
    return found if half else e.where(e.less(x, 0), e.negative(found), found)


def logaddexp2(x1: Tensor, x2: Tensor) -> Tensor:
    """Return ``log2(2**x1 + 2**x2)`` without overflow."""
    a, b = together(x1, x2)
    top = e.maximum(a, b)
    far = e.negative(e.abs(e.subtract(a, b)))
    sum = e.multiply(e.log1p(e.exp2(far)), _float(1 / np.log(2), a.kind))
    found = e.where(e.equal(a, b), e.add(a, 1), e.add(top, sum))  # exact where both are equal
    return e.where(e.isfinite(top), found, top)


def _float(value: float, kind: DType) -> Tensor:
    return full((), float(value), kind)


def heaviside(x1: Tensor, x2: Tensor) -> Tensor:
    """Return 0 where ``x1`` is negative, 1 where positive, ``x2`` where 0."""
    x, y = together(x1, x2)
    step = e.where(e.greater(x, 0), _float(1, x.kind), _float(0, x.kind))
    return e.where(e.isnan(x), x, e.where(e.equal(x, 0), y, step))


def gcd(x1: Tensor, x2: Tensor) -> Tensor:
    """Return the greatest common divisor, by Euclid's algorithm on all elements at once."""
    kind, (x, y) = _sizes(x1, x2)

    def going(pair: Any) -> Any:
        return r.any(e.not_equal(pair[1], 0))

    def step(pair: Any) -> Any:
        a, b = pair
        over = e.equal(b, 0)
        rest = e.remainder(a, e.where(over, _number(1, b), b))
        return e.where(over, a, b), e.where(over, b, rest)

    return e.bitcast(while_loop(going, step, (x, y))[0], kind)


def _sizes(x1: Tensor, x2: Tensor) -> tuple[DType, list[Tensor]]:
    """Return the common dtype of two integers, and their absolute values."""
    values = together(x1, x2)
    kind = values[0].kind
    if kind.kind == "signed":
        values = [e.bitcast(e.abs(v), as_dtype(f"u{kind.name}")) for v in values]
    return kind, values


def lcm(x1: Tensor, x2: Tensor) -> Tensor:
    """Return the least common multiple, 0 if either is 0."""
    kind, (x, y) = _sizes(x1, x2)
    divisor = gcd(x, y)
    none = e.equal(divisor, 0)
    divisor = e.where(none, _number(1, divisor), divisor)
    return e.bitcast(e.multiply(e.floor_divide(x, divisor), y), kind)


def frexp(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return a mantissa in 0.5 .. 1 and the exponent of 2 that multiplies it."""
    mantissa, bias = _MANTISSA[x.kind.name], _BIAS[x.kind.name]
    tiny = e.less(e.abs(x), _float(2.0 ** (1 - bias), x.kind))
    lifted = e.where(tiny, e.multiply(x, _float(2.0**mantissa, x.kind)), x)
    bits = _bits(lifted)
    mask = (1 << (8 * x.kind.bytes - 1 - mantissa)) - 1
    raised = e.bitwise_and(e.bitwise_right_shift(bits, mantissa), _number(mask, bits))
    same = e.logical_or(e.equal(x, 0), e.logical_not(e.isfinite(x)))
    kept = e.bitwise_and(bits, _number(~(mask << mantissa), bits))
    halves = e.bitwise_or(kept, _number((bias - 1) << mantissa, bits))
    exponent = e.subtract(cast(raised, as_dtype("i32")), bias - 1)
    exponent = e.subtract(exponent, e.where(tiny, mantissa, 0))
    found = e.where(same, x, e.bitcast(halves, x.kind))
    return found, cast(e.where(same, 0, exponent), as_dtype("i32"))


def ldexp(x1: Tensor, x2: Tensor) -> Tensor:
    """Return ``x1 * 2**x2``, in three steps so that no power of 2 overflows."""
    kind = x1.kind
    bias, mantissa = _BIAS[kind.name], _MANTISSA[kind.name]
    most = 3 * (bias - 1)
    shape = np.broadcast_shapes(x1.shape, x2.shape)
    power = e.clip(cast(x2, as_dtype("i64")), -most, most)
    found = e.add(x1, full(shape, -0.0, kind))
    for parts in (3, 2, 1):
        part = e.clip(e.where(e.less(power, 0), -1, 1), -1, 1)
        size = e.floor_divide(e.add(e.abs(power), parts - 1), parts)
        step = e.multiply(part, size)
        raised = e.bitwise_left_shift(e.add(step, bias), mantissa)
        bits = cast(raised, _BITS[kind.bytes])
        found = e.multiply(found, e.bitcast(bits, kind))
        power = e.subtract(power, step)
    return found


def modf(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the fractional and the integral part, both with the sign of ``x``."""
    whole = e.trunc(x)
    rest = e.where(e.isinf(x), _float(0, x.kind), e.subtract(x, whole))
    return e.copysign(rest, x), whole


def matvec(x1: Tensor, x2: Tensor) -> Tensor:
    """Return products of matrices with vectors."""
    _check_axes("matvec", (x1, 2), (x2, 1))
    return matmul(x1, x2[..., None])[..., 0]


def vecmat(x1: Tensor, x2: Tensor) -> Tensor:
    """Return products of vectors with matrices."""
    _check_axes("vecmat", (x1, 1), (x2, 2))
    return matmul(x1[..., None, :], x2)[..., 0, :]


def _check_axes(name: str, *wanted: tuple[Tensor, int]) -> None:
    for at, (value, least) in enumerate(wanted):
        if value.ndim < least:
            raise ValueError(
                f"{name}: Input operand {at} does not have enough dimensions "
                f"(has {value.ndim}, requires {least})"
            )


for _function in (
    *(signbit, nextafter, spacing, logaddexp2, heaviside, gcd, lcm, frexp, ldexp, modf),
    *(matvec, vecmat),
):
    UFUNCS[_function.__name__] = _function
