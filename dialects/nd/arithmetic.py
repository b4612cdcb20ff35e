"""Elementwise arithmetic: + - * /, rounding, division with remainder."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, traits_def
from xdsl.traits import Commutative

from stepwell.core.fma import fma
from stepwell.dialects.nd.base import FLOAT, NUMBER
from stepwell.dialects.nd.elementwise import Binary, Elementwise, Unary, in_numpy, same_type
from stepwell.dialects.readings import Array


@irdl_op_definition
class NegOp(Unary):
    """``y = -x``; flips the sign of zero and NaN too. Integers wrap: ``-x = 2^n - x``."""

    name = "nd.neg"
    ELEMENTS: ClassVar = NUMBER


@irdl_op_definition
class AbsOp(Unary):
    """``y = |x|``. The least signed integer is its own absolute value (it wraps)."""

    name = "nd.abs"
    ELEMENTS: ClassVar = NUMBER


@irdl_op_definition
class SignOp(Unary):
    """``y = -1, 0 or 1`` if x is negative, zero (of either sign) or positive; NaN stays NaN."""

    name = "nd.sign"
    ELEMENTS: ClassVar = NUMBER


@irdl_op_definition
class SquareOp(Unary):
    """``y = x * x``. Integers wrap."""

    name = "nd.square"
    ELEMENTS: ClassVar = NUMBER


@irdl_op_definition
class ReciprocalOp(Unary):
    """``y = 1 / x``, correctly rounded. ``1 / ±0 = ±inf``."""

    name = "nd.reciprocal"
    ELEMENTS: ClassVar = FLOAT


@irdl_op_definition
class CeilOp(Unary):
    """``y`` = the least integer not below x. Keeps the sign of zero, infinities and NaN."""

    name = "nd.ceil"
    ELEMENTS: ClassVar = FLOAT


@irdl_op_definition
class FloorOp(Unary):
    """``y`` = the greatest integer not above x. Keeps the sign of zero, infinities and NaN."""

    name = "nd.floor"
    ELEMENTS: ClassVar = FLOAT


@irdl_op_definition
class RoundOp(Unary):
    """``y`` = the nearest integer, ties to even (IEEE roundToIntegralTiesToEven)."""

    name = "nd.round"
    ELEMENTS: ClassVar = FLOAT


@irdl_op_definition
class TruncOp(Unary):
    """``y`` = x without its fraction, toward zero. Keeps the sign of zero."""

    name = "nd.trunc"
    ELEMENTS: ClassVar = FLOAT


@irdl_op_definition
class AddOp(Binary):
    """``y = a + b``. Integers wrap."""

    name = "nd.add"
    ELEMENTS: ClassVar = NUMBER
    traits = traits_def(Commutative())


@irdl_op_definition
class SubOp(Binary):
    """``y = a - b``. Integers wrap."""

    name = "nd.sub"
    ELEMENTS: ClassVar = NUMBER


@irdl_op_definition
class MulOp(Binary):
    """``y = a * b``. Integers wrap."""

    name = "nd.mul"
    ELEMENTS: ClassVar = NUMBER
    traits = traits_def(Commutative())


@irdl_op_definition
class DivOp(Binary):
    """``y = a / b`` as in IEEE 754; for integers truncated toward zero.

    * An integer divided by 0 is 0; the least signed integer divided by -1 is itself (it wraps).
    """

    name = "nd.div"
    ELEMENTS: ClassVar = NUMBER


@irdl_op_definition
class FloorDivOp(Binary):
    """``y = floor(a / b)`` of the exact quotient, as in Python and NumPy.

    * For floats it is ``(a - mod(a, b)) / b`` rounded to an integer; if b is 0 it is ``a / b``.
    * An integer divided by 0 is 0; the least signed integer divided by -1 is itself (it wraps).
    """

    name = "nd.floor_div"
    ELEMENTS: ClassVar = NUMBER


@irdl_op_definition
class RemOp(Binary):
    """``y = a - b * trunc(a / b)``, exact: C's ``%`` and ``fmod``; it has the sign of a.

    * An integer's remainder by 0 is 0. A float's is NaN; ``rem(a, ±inf) = a`` for finite a.
    """

    name = "nd.rem"
    ELEMENTS: ClassVar = NUMBER


@irdl_op_definition
class ModOp(Binary):
    """``y = a - b * floor(a / b)``: Python's ``%``; it has the sign of b.

    * An integer modulo 0 is 0, a float NaN. A zero result has the sign of b.
    * For floats it is ``rem(a, b)``, plus b if that is not 0 and has the opposite sign.
    """

    name = "nd.mod"
    ELEMENTS: ClassVar = NUMBER


@irdl_op_definition
class FmaOp(Elementwise):
    """``y = a * b + c`` rounded once (for f16 and bf16 in f32, then to the type)."""

    name = "nd.fma"
    ELEMENTS: ClassVar = FLOAT
    a = operand_def(TensorType)
    b = operand_def(TensorType)
    c = operand_def(TensorType)

    def __init__(self, a: SSAValue, b: SSAValue, c: SSAValue) -> None:
        super().__init__(operands=[a, b, c], result_types=[a.type])


OPS = (
    NegOp,
    AbsOp,
    SignOp,
    SquareOp,
    ReciprocalOp,
    CeilOp,
    FloorOp,
    RoundOp,
    TruncOp,
    AddOp,
    SubOp,
    MulOp,
    DivOp,
    FloorDivOp,
    RemOp,
    ModOp,
    FmaOp,
)
same_type(*OPS)


def _divide(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return a / b
    return np.where(b == 0, a.dtype.type(0), _truncated(a, np.where(b == 0, b.dtype.type(1), b)))


def _truncated(a: Array, b: Array) -> Array:
    quotient = np.floor_divide(a, b)
    return quotient + ((quotient * b != a) & ((a < 0) != (b < 0)))


def _remainder(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.fmod(a, b)
    return np.where(b == 0, a.dtype.type(0), np.fmod(a, np.where(b == 0, b.dtype.type(1), b)))


def _modulo(a: Array, b: Array) -> Array:
    rest = _remainder(a, b)
    rest = np.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)
    return (
        rest if a.dtype.kind != "f" else np.where(rest == 0, np.copysign(a.dtype.type(0), b), rest)
    )


def _floor_divide(a: Array, b: Array) -> Array:
    if a.dtype.kind != "f":
        return np.where(
            b == 0, a.dtype.type(0), np.floor_divide(a, np.where(b == 0, b.dtype.type(1), b))
        )
    rest = np.fmod(a, b)
    quotient = (a - rest) / b
    quotient = np.where((rest != 0) & ((rest < 0) != (b < 0)), quotient - a.dtype.type(1), quotient)
    below = np.floor(quotient)
    nearest = np.where(quotient - below > 0.5, below + a.dtype.type(1), below)
    nearest = np.where(quotient == 0, np.copysign(a.dtype.type(0), a / b), nearest)
    return np.where(b == 0, a / b, nearest)


in_numpy(
    {
        NegOp: np.negative,
        AbsOp: np.abs,
        SignOp: lambda x: np.where(x == 0, x.dtype.type(0), np.sign(x)),
        SquareOp: np.square,
        ReciprocalOp: lambda x: x.dtype.type(1) / x,
        CeilOp: np.ceil,
        FloorOp: np.floor,
        RoundOp: np.rint,
        TruncOp: np.trunc,
        AddOp: np.add,
        SubOp: np.subtract,
        MulOp: np.multiply,
        DivOp: _divide,
        FloorDivOp: _floor_divide,
        RemOp: _remainder,
        ModOp: _modulo,
        FmaOp: fma,
    }
)
