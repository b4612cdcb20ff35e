"""The elementwise ops of `nd`, each as a scalar body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects import arith, math
from xdsl.ir import Operation, SSAValue

from stepwell.dialects.nd import arithmetic, bitwise, compare, transcendental
from stepwell.dialects.types import dtype, tensor_type
from stepwell.dialects.upstream.missing import ErfcOp, RemFOp
from stepwell.lowering.nd_to_linalg.body import Body
from stepwell.lowering.nd_to_linalg.generic import Scalars, elementwise, mapped
from stepwell.lowering.nd_to_linalg.table import Lowering, lower


def register(bodies: Mapping[Any, Scalars]) -> None:
    """Register a rule for each op: a generic over identity maps with its scalar body."""
    for op, body in bodies.items():
        lower(op)(_rule(body))


def _rule(body: Scalars) -> Any:
    def rule(lowering: Lowering, op: Operation, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return elementwise(lowering, op, operands, body)

    return rule


def _body_of(op: Any) -> Scalars:
    """Return the body that is a single op."""
    return lambda b, *scalars: b.emit(op(*scalars))


def _neg(b: Body, x: SSAValue) -> SSAValue:
    return b.emit(arith.NegfOp(x)) if b.floats else b.sub(b.number(0), x)


def _abs(b: Body, x: SSAValue) -> SSAValue:
    if b.floats:
        return b.emit(math.AbsFOp(x))
    return x if b.dtype.kind == "unsigned" else b.select(_negative(b, x), _neg(b, x), x)


def _sign(b: Body, x: SSAValue) -> SSAValue:
    """Return 1 with the sign of x; x + 0 for zeros and NaN, which are neither above nor below 0."""
    zero, one = b.number(0), b.number(1)
    if b.floats:
        ordered = b.emit(arith.CmpfOp(x, zero, "one"))
        return b.select(ordered, b.emit(math.CopySignOp(one, x)), b.add(x, zero))
    positive = b.select(b.compare("gt", x, zero), one, zero)
    if b.dtype.kind == "unsigned":
        return positive
    return b.select(_negative(b, x), b.number(-1), positive)


def _negative(b: Body, x: SSAValue) -> SSAValue:
    return b.compare("lt", x, b.number(0))


def _reciprocal(b: Body, x: SSAValue) -> SSAValue:
    return b.div(b.number(1), x)


def _div(b: Body, x: SSAValue, y: SSAValue, floor: bool = False) -> SSAValue:
    if b.floats:
        return b.div(x, y)
    zero, by = b.number(0), _safe(b, y)
    by_zero = b.compare("eq", y, zero)
    quotient = b.emit(arith.FloorDivSIOp(x, by)) if floor else b.div(x, by)
    if b.dtype.kind == "signed":
        by_minus_one = b.compare("eq", y, b.number(-1))
        quotient = b.select(by_minus_one, b.sub(zero, x), quotient)
    return b.select(by_zero, zero, quotient)


def _safe(b: Body, y: SSAValue) -> SSAValue:
    """Return ``y`` with the divisors 0 and -1, which may trap, replaced by 1."""
    one = b.number(1)
    unsafe = b.compare("eq", y, b.number(0))
    if b.dtype.kind == "signed":
        unsafe = b.either(unsafe, b.compare("eq", y, b.number(-1)))
    return b.select(unsafe, one, y)


def _rem(b: Body, x: SSAValue, y: SSAValue) -> SSAValue:
    if b.floats:
        return b.emit(RemFOp(x, y))
    signed = b.dtype.kind == "signed"
    return b.emit((arith.RemSIOp if signed else arith.RemUIOp)(x, _safe(b, y)))


def _mod(b: Body, x: SSAValue, y: SSAValue) -> SSAValue:
    if b.dtype.kind == "signed":
        by = _safe(b, y)
        return b.sub(x, b.mul(b.emit(arith.FloorDivSIOp(x, by)), by))
    rest = _rem(b, x, y)
    if not b.floats:
        return rest
    zero = b.number(0)
    rest = b.select(_signs_differ(b, rest, y), b.add(rest, y), rest)
    signed_zero = b.emit(math.CopySignOp(zero, y))
    return b.select(b.compare("eq", rest, zero), signed_zero, rest)


def _signs_differ(b: Body, rest: SSAValue, y: SSAValue) -> SSAValue:
    """Return whether a remainder is nonzero and its sign differs from the divisor's."""
    signs = b.differ(_negative(b, rest), _negative(b, y))
    return b.both(b.compare("ne", rest, b.number(0)), signs)


def _floor_div(b: Body, x: SSAValue, y: SSAValue) -> SSAValue:
    if b.floats:
        return _float_floor_div(b, x, y)
    return _div(b, x, y, floor=b.dtype.kind == "signed")


def _float_floor_div(b: Body, x: SSAValue, y: SSAValue) -> SSAValue:
    """Return (x - rem(x, y)) / y, which is almost an integer, rounded; minus 1 for unequal signs.

    For an infinite ``y`` the remainder is ``x``.
    """
    zero, plain, rest = b.number(0), b.div(x, y), _rem(b, x, y)
    quotient = b.div(b.sub(x, rest), y)
    quotient = b.select(_signs_differ(b, rest, y), b.sub(quotient, b.number(1)), quotient)
    below = b.emit(math.FloorOp(quotient))
    over = b.compare("gt", b.sub(quotient, below), b.number(0.5))
    nearest = b.select(over, b.add(below, b.number(1)), below)
    signed_zero = b.emit(math.CopySignOp(zero, plain))
    nearest = b.select(b.compare("eq", quotient, zero), signed_zero, nearest)
    return b.select(b.compare("eq", y, zero), plain, nearest)


def _hypot(b: Body, x: SSAValue, y: SSAValue) -> SSAValue:
    """Return m √(1 + (n/m)²), m being the maximum and n the minimum of |x| and |y|."""
    x, y = b.absolute(x), b.absolute(y)
    infinity, one = b.number(float("inf")), b.number(1)
    most, least = b.max(x, y), b.min(x, y)
    scale = b.select(b.compare("eq", most, b.number(0)), one, most)
    ratio = b.div(least, scale)
    root = b.emit(math.SqrtOp(b.add(one, b.mul(ratio, ratio))))
    infinite = b.either(b.compare("eq", x, infinity), b.compare("eq", y, infinity))
    return b.select(infinite, infinity, b.mul(most, root))


def _pow(b: Body, x: SSAValue, y: SSAValue) -> SSAValue:
    if b.floats:
        return b.emit(math.PowFOp(x, y))
    one, zero = b.number(1), b.number(0)
    signed = b.dtype.kind == "signed"
    power, square = one, x
    for bit in range(8 * b.dtype.bytes - signed):
        used = b.compare("ne", b.both(y, b.number(1 << bit)), zero)
        power = b.select(used, b.mul(power, square), power)
        square = b.mul(square, square)
    if not signed:
        return power
    minus = b.number(-1)
    alternating = b.select(b.compare("ne", b.both(y, one), zero), minus, one)
    unit = b.select(b.compare("eq", x, minus), alternating, zero)
    unit = b.select(b.compare("eq", x, one), one, unit)
    return b.select(_negative(b, y), unit, power)


def _not(b: Body, x: SSAValue) -> SSAValue:
    return b.differ(x, b.constant(-1, x.type))


def _shift_left(b: Body, x: SSAValue, y: SSAValue) -> SSAValue:
    zero = b.number(0)
    over = _over_wide(b, y)
    return b.select(over, zero, b.emit(arith.ShLIOp(x, b.select(over, zero, y))))


def _shift_right(b: Body, x: SSAValue, y: SSAValue) -> SSAValue:
    over, zero = _over_wide(b, y), b.number(0)
    if b.dtype.kind == "signed":
        most = b.number(8 * b.dtype.bytes - 1)
        return b.emit(arith.ShRSIOp(x, b.select(over, most, y)))
    return b.select(over, zero, b.emit(arith.ShRUIOp(x, b.select(over, zero, y))))


def _over_wide(b: Body, y: SSAValue) -> SSAValue:
    return b.emit(arith.CmpiOp(y, b.number(8 * b.dtype.bytes), "uge"))


def _comparison(predicate: str) -> Scalars:
    return lambda b, x, y: b.compare(predicate, x, y)


def _against_infinity(predicate: str) -> Scalars:
    return lambda b, x: b.compare(predicate, b.absolute(x), b.number(float("inf")))


def _clamp(b: Body, x: SSAValue, low: SSAValue, high: SSAValue) -> SSAValue:
    return b.min(b.max(x, low), high)


def _fma(b: Body, x: SSAValue, y: SSAValue, z: SSAValue) -> SSAValue:
    plain = math.ExpOp.get_irdl_definition().properties["fastmath"].default_value
    assert plain is not None
    return b.emit(
        math.FmaOp.create(operands=[x, y, z], result_types=[x.type], properties={"fastmath": plain})
    )


register(
    {
        arithmetic.NegOp: _neg,
        arithmetic.AbsOp: _abs,
        arithmetic.SignOp: _sign,
        arithmetic.SquareOp: lambda b, x: b.mul(x, x),
        arithmetic.ReciprocalOp: _reciprocal,
        arithmetic.CeilOp: _body_of(math.CeilOp),
        arithmetic.FloorOp: _body_of(math.FloorOp),
        arithmetic.RoundOp: _body_of(math.RoundEvenOp),
        arithmetic.TruncOp: _body_of(math.TruncOp),
        arithmetic.AddOp: Body.add,
        arithmetic.SubOp: Body.sub,
        arithmetic.MulOp: Body.mul,
        arithmetic.DivOp: _div,
        arithmetic.FloorDivOp: _floor_div,
        arithmetic.RemOp: _rem,
        arithmetic.ModOp: _mod,
        arithmetic.FmaOp: _fma,
        transcendental.ExpOp: _body_of(math.ExpOp),
        transcendental.Exp2Op: _body_of(math.Exp2Op),
        transcendental.Expm1Op: _body_of(math.ExpM1Op),
        transcendental.LogOp: _body_of(math.LogOp),
        transcendental.Log2Op: _body_of(math.Log2Op),
        transcendental.Log10Op: _body_of(math.Log10Op),
        transcendental.Log1pOp: _body_of(math.Log1pOp),
        transcendental.SqrtOp: _body_of(math.SqrtOp),
        transcendental.RsqrtOp: _body_of(math.RsqrtOp),
        transcendental.CbrtOp: _body_of(math.CbrtOp),
        transcendental.SinOp: _body_of(math.SinOp),
        transcendental.CosOp: _body_of(math.CosOp),
        transcendental.TanOp: _body_of(math.TanOp),
        transcendental.AsinOp: _body_of(math.AsinOp),
        transcendental.AcosOp: _body_of(math.AcosOp),
        transcendental.AtanOp: _body_of(math.AtanOp),
        transcendental.SinhOp: _body_of(math.SinhOp),
        transcendental.CoshOp: _body_of(math.CoshOp),
        transcendental.TanhOp: _body_of(math.TanhOp),
        transcendental.AsinhOp: _body_of(math.AsinhOp),
        transcendental.AcoshOp: _body_of(math.AcoshOp),
        transcendental.AtanhOp: _body_of(math.AtanhOp),
        transcendental.ErfOp: _body_of(math.ErfOp),
        transcendental.ErfcOp: _body_of(ErfcOp),
        transcendental.PowOp: _pow,
        transcendental.Atan2Op: _body_of(math.Atan2Op),
        transcendental.HypotOp: _hypot,
        bitwise.NotOp: _not,
        bitwise.PopcountOp: _body_of(math.CtPopOp),
        bitwise.ClzOp: _body_of(math.CountLeadingZerosOp),
        bitwise.AndOp: Body.both,
        bitwise.OrOp: Body.either,
        bitwise.XorOp: Body.differ,
        bitwise.ShiftLeftOp: _shift_left,
        bitwise.ShiftRightOp: _shift_right,
        compare.EqOp: _comparison("eq"),
        compare.NeOp: _comparison("ne"),
        compare.LtOp: _comparison("lt"),
        compare.LeOp: _comparison("le"),
        compare.GtOp: _comparison("gt"),
        compare.GeOp: _comparison("ge"),
        compare.IsnanOp: Body.is_nan,
        compare.IsinfOp: _against_infinity("eq"),
        compare.IsfiniteOp: _against_infinity("lt"),
        compare.MaxOp: Body.max,
        compare.MinOp: Body.min,
        compare.CopysignOp: _body_of(math.CopySignOp),
        compare.ClampOp: _clamp,
    }
)


@lower(compare.SelectOp)
def _select(
    lowering: Lowering, op: compare.SelectOp, operands: Sequence[SSAValue]
) -> Sequence[SSAValue]:
    """Select without arithmetic: f16 and bf16 are not converted."""
    a = tensor_type(operands[1])
    return mapped(
        lowering,
        operands,
        a.element_type,
        lambda b, c, x, y, _: b.select(c, x, y),
        dtype(tensor_type(op.a).element_type),
    )
