"""Derivatives of transcendental functions, in terms of the result if that is cheaper."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, pi, sqrt

from xdsl.ir import SSAValue

from stepwell.dialects.nd.arithmetic import SquareOp
from stepwell.dialects.nd.compare import EqOp, SelectOp
from stepwell.dialects.nd.composing import Composer
from stepwell.dialects.nd.gradients.arithmetic import neg, scaled
from stepwell.dialects.nd.transcendental import (
    AcoshOp,
    AcosOp,
    AsinhOp,
    AsinOp,
    Atan2Op,
    AtanhOp,
    AtanOp,
    CbrtOp,
    CoshOp,
    CosOp,
    ErfcOp,
    ErfOp,
    Exp2Op,
    Expm1Op,
    ExpOp,
    HypotOp,
    Log1pOp,
    Log2Op,
    Log10Op,
    LogOp,
    PowOp,
    RsqrtOp,
    SinhOp,
    SinOp,
    SqrtOp,
    TanhOp,
    TanOp,
)
from stepwell.dialects.readings import Factor, partials


def _square(c: Composer, x: SSAValue) -> SSAValue:
    return c.of(SquareOp(x))


def _plus(c: Composer, x: SSAValue, number: float) -> SSAValue:
    return c.add(x, c.full(x, number))


def _times(c: Composer, x: SSAValue, number: float) -> SSAValue:
    return c.mul(x, c.full(x, number))


def _over(c: Composer, number: float, x: SSAValue) -> SSAValue:
    return c.div(c.full(x, number), x)


def _one_minus_square(c: Composer, x: SSAValue) -> SSAValue:
    """Return ``1 - x²`` as ``(1 - x)(1 + x)``, without cancellation."""
    one = c.full(x, 1)
    return c.mul(c.sub(one, x), c.add(one, x))


def _bell(c: Composer, x: SSAValue, height: float) -> SSAValue:
    """Return ``height * e^(-x²)``."""
    return _times(c, c.of(ExpOp(neg(c, _square(c, x)))), height)


scaled(ExpOp)(lambda c, op: op.y)
scaled(Exp2Op)(lambda c, op: _times(c, op.y, log(2)))
scaled(Expm1Op)(lambda c, op: _plus(c, op.y, 1))
scaled(LogOp)(lambda c, op: _over(c, 1, op.x))
scaled(Log2Op)(lambda c, op: _over(c, 1 / log(2), op.x))
scaled(Log10Op)(lambda c, op: _over(c, 1 / log(10), op.x))
scaled(Log1pOp)(lambda c, op: _over(c, 1, _plus(c, op.x, 1)))
scaled(SqrtOp)(lambda c, op: _over(c, 0.5, op.y))
scaled(RsqrtOp)(lambda c, op: _times(c, c.div(op.y, op.x), -0.5))
scaled(CbrtOp)(lambda c, op: _over(c, 1 / 3, _square(c, op.y)))
scaled(SinOp)(lambda c, op: c.of(CosOp(op.x)))
scaled(CosOp)(lambda c, op: neg(c, c.of(SinOp(op.x))))
scaled(TanOp)(lambda c, op: _plus(c, _square(c, op.y), 1))
scaled(AsinOp)(lambda c, op: c.of(RsqrtOp(_one_minus_square(c, op.x))))
scaled(AcosOp)(lambda c, op: neg(c, c.of(RsqrtOp(_one_minus_square(c, op.x)))))
scaled(AtanOp)(lambda c, op: _over(c, 1, _plus(c, _square(c, op.x), 1)))
scaled(SinhOp)(lambda c, op: c.of(CoshOp(op.x)))
scaled(CoshOp)(lambda c, op: c.of(SinhOp(op.x)))
scaled(TanhOp)(lambda c, op: _one_minus_square(c, op.y))
scaled(AsinhOp)(lambda c, op: c.of(RsqrtOp(_plus(c, _square(c, op.x), 1))))
scaled(AtanhOp)(lambda c, op: _over(c, 1, _one_minus_square(c, op.x)))
scaled(ErfOp)(lambda c, op: _bell(c, op.x, 2 / sqrt(pi)))
scaled(ErfcOp)(lambda c, op: _bell(c, op.x, -2 / sqrt(pi)))


@scaled(AcoshOp)
def _acosh(c: Composer, op: AcoshOp) -> SSAValue:
    """1 / √((x - 1)(x + 1))."""
    one = c.full(op.x, 1)
    roots = c.of(RsqrtOp(c.sub(op.x, one))), c.of(RsqrtOp(c.add(op.x, one)))
    return c.mul(*roots)


@partials(PowOp)
def _pow(c: Composer, op: PowOp) -> Sequence[Factor]:
    """b * a^(b - 1), which is 0 if b is; and ln a * a^b, which is 0 if a is and b > 0."""
    zero, one = c.full(op.a, 0), c.full(op.a, 1)

    def by_base(g: SSAValue) -> SSAValue:
        plain = c.of(EqOp(op.b, zero))
        power = c.of(PowOp(op.a, c.of(SelectOp(plain, one, c.sub(op.b, one)))))
        return c.mul(g, c.mul(op.b, power))

    def by_exponent(g: SSAValue) -> SSAValue:
        base = c.of(SelectOp(c.of(EqOp(op.a, zero)), one, op.a))
        return c.mul(g, c.mul(c.of(LogOp(base)), op.y))

    return by_base, by_exponent


@partials(Atan2Op)
def _atan2(c: Composer, op: Atan2Op) -> Sequence[Factor]:
    """(b a' - a b') / (a² + b²)."""

    def share(x: SSAValue) -> SSAValue:
        return c.div(x, c.add(_square(c, op.a), _square(c, op.b)))

    return lambda g: c.mul(g, share(op.b)), lambda g: c.mul(g, neg(c, share(op.a)))


@partials(HypotOp)
def _hypot(c: Composer, op: HypotOp) -> Sequence[Factor]:
    """(a a' + b b') / y."""
    return lambda g: c.mul(g, c.div(op.a, op.y)), lambda g: c.mul(g, c.div(op.b, op.y))
