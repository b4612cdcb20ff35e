"""Elementwise transcendental functions: powers, logarithms, trigonometric, hyperbolic, erf."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from xdsl.irdl import irdl_op_definition

from stepwell.dialects.nd.base import FLOAT, NUMBER
from stepwell.dialects.nd.elementwise import Binary, Unary, in_numpy, same_type
from stepwell.dialects.readings import Array


class Analytic(Unary):
    """A unary floating-point function; NaN stays NaN."""

    ELEMENTS: ClassVar = FLOAT


@irdl_op_definition
class ExpOp(Analytic):
    """``y = e^x``. ``exp(-inf) = 0``; overflows to inf."""

    name = "nd.exp"


@irdl_op_definition
class Exp2Op(Analytic):
    """``y = 2^x``."""

    name = "nd.exp2"


@irdl_op_definition
class Expm1Op(Analytic):
    """``y = e^x - 1`` without cancellation near 0; keeps -0."""

    name = "nd.expm1"


@irdl_op_definition
class LogOp(Analytic):
    """``y = ln x``. ``log(±0) = -inf``; NaN below 0."""

    name = "nd.log"


@irdl_op_definition
class Log2Op(Analytic):
    """``y`` = the logarithm of x to base 2."""

    name = "nd.log2"


@irdl_op_definition
class Log10Op(Analytic):
    """``y`` = the logarithm of x to base 10."""

    name = "nd.log10"


@irdl_op_definition
class Log1pOp(Analytic):
    """``y = ln(1 + x)`` without cancellation near 0; NaN below -1; keeps -0."""

    name = "nd.log1p"


@irdl_op_definition
class SqrtOp(Analytic):
    """``y = √x``, correctly rounded. NaN below 0; ``sqrt(-0) = -0``."""

    name = "nd.sqrt"


@irdl_op_definition
class RsqrtOp(Analytic):
    """``y = 1 / √x``. ``rsqrt(±0) = ±inf``; NaN below 0; ``rsqrt(inf) = 0``."""

    name = "nd.rsqrt"


@irdl_op_definition
class CbrtOp(Analytic):
    """``y = ∛x``, with the sign of x."""

    name = "nd.cbrt"


@irdl_op_definition
class SinOp(Analytic):
    """``y = sin x``, x in radians; NaN at ±inf."""

    name = "nd.sin"


@irdl_op_definition
class CosOp(Analytic):
    """``y = cos x``, x in radians; NaN at ±inf."""

    name = "nd.cos"


@irdl_op_definition
class TanOp(Analytic):
    """``y = tan x``, x in radians; NaN at ±inf."""

    name = "nd.tan"


@irdl_op_definition
class AsinOp(Analytic):
    """``y = arcsin x`` in [-π/2, π/2]; NaN where |x| > 1."""

    name = "nd.asin"


@irdl_op_definition
class AcosOp(Analytic):
    """``y = arccos x`` in [0, π]; NaN where |x| > 1."""

    name = "nd.acos"


@irdl_op_definition
class AtanOp(Analytic):
    """``y = arctan x`` in [-π/2, π/2]."""

    name = "nd.atan"


@irdl_op_definition
class SinhOp(Analytic):
    """``y = (e^x - e^-x) / 2``."""

    name = "nd.sinh"


@irdl_op_definition
class CoshOp(Analytic):
    """``y = (e^x + e^-x) / 2``."""

    name = "nd.cosh"


@irdl_op_definition
class TanhOp(Analytic):
    """``y = sinh x / cosh x``; ±1 at ±inf."""

    name = "nd.tanh"


@irdl_op_definition
class AsinhOp(Analytic):
    """``y`` = the inverse hyperbolic sine of x."""

    name = "nd.asinh"


@irdl_op_definition
class AcoshOp(Analytic):
    """``y ≥ 0`` = the inverse hyperbolic cosine of x; NaN where x < 1."""

    name = "nd.acosh"


@irdl_op_definition
class AtanhOp(Analytic):
    """``y`` = the inverse hyperbolic tangent of x; ±inf at ±1, NaN beyond."""

    name = "nd.atanh"


@irdl_op_definition
class ErfOp(Analytic):
    """``y = 2/√π ∫ e^(-t²) dt`` from 0 to x; ±1 at ±inf."""

    name = "nd.erf"


@irdl_op_definition
class ErfcOp(Analytic):
    """``y = 1 - erf(x)`` without cancellation for large x; 0 at inf, 2 at -inf."""

    name = "nd.erfc"


@irdl_op_definition
class PowOp(Binary):
    """``y = a ^ b``.

    * Floats follow C's pow: ``pow(x, ±0) = pow(1, y) = 1`` even for NaN; a negative base with a
      non-integer exponent gives NaN.
    * Integers wrap. With a negative exponent 1 and -1 give their power, all others 0.
    """

    name = "nd.pow"
    ELEMENTS: ClassVar = NUMBER


@irdl_op_definition
class Atan2Op(Binary):
    """``y`` = the angle of the point (b, a) in [-π, π], as C's ``atan2(a, b)``."""

    name = "nd.atan2"
    ELEMENTS: ClassVar = FLOAT


@irdl_op_definition
class HypotOp(Binary):
    """``y = √(a² + b²)`` without undue overflow; inf if either is infinite, even with a NaN."""

    name = "nd.hypot"
    ELEMENTS: ClassVar = FLOAT


OPS = (
    ExpOp,
    Exp2Op,
    Expm1Op,
    LogOp,
    Log2Op,
    Log10Op,
    Log1pOp,
    SqrtOp,
    RsqrtOp,
    CbrtOp,
    SinOp,
    CosOp,
    TanOp,
    AsinOp,
    AcosOp,
    AtanOp,
    SinhOp,
    CoshOp,
    TanhOp,
    AsinhOp,
    AcoshOp,
    AtanhOp,
    ErfOp,
    ErfcOp,
    PowOp,
    Atan2Op,
    HypotOp,
)
same_type(*OPS)


def _in_f64(meaning: Callable[..., Any]) -> Callable[..., Any]:
    """Compute in f64: rounded to f32 the result is correct except very near ties."""

    def rule(*operands: Array) -> Array:
        result = meaning(*(np.asarray(x, np.float64) for x in operands))
        return np.asarray(result).astype(operands[0].dtype)

    return rule


def _each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """Apply a function of the standard library to each element."""
    return lambda x: np.vectorize(function, otypes=[np.float64])(x)


def _power_in_f64(a: Array, b: Array) -> Array:
    return np.where(b == 2, a * a, np.power(a, b))  # NumPy's power is not exact for squares


_float_power = _in_f64(_power_in_f64)


def _power(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return _float_power(a, b)
    one = a.dtype.type(1)
    positive = np.power(a, np.where(b < 0, b.dtype.type(0), b))
    if a.dtype.kind == "u":
        return positive
    unit = np.where(a == 1, one, np.where(a == -1, np.where(b & one, -one, one), one - one))
    return np.where(b < 0, unit, positive)


in_numpy(
    {
        op: _in_f64(meaning)
        for op, meaning in {
            ExpOp: np.exp,
            Exp2Op: np.exp2,
            Expm1Op: np.expm1,
            LogOp: np.log,
            Log2Op: np.log2,
            Log10Op: np.log10,
            Log1pOp: np.log1p,
            SqrtOp: np.sqrt,
            RsqrtOp: lambda x: 1 / np.sqrt(x),
            CbrtOp: np.cbrt,
            SinOp: np.sin,
            CosOp: np.cos,
            TanOp: np.tan,
            AsinOp: np.arcsin,
            AcosOp: np.arccos,
            AtanOp: np.arctan,
            SinhOp: np.sinh,
            CoshOp: np.cosh,
            TanhOp: np.tanh,
            AsinhOp: np.arcsinh,
            AcoshOp: np.arccosh,
            AtanhOp: np.arctanh,
            ErfOp: _each(math.erf),
            ErfcOp: _each(math.erfc),
            Atan2Op: np.arctan2,
            HypotOp: np.hypot,
        }.items()
    }
)
in_numpy({PowOp: _power})
