"""Derivatives of choices: ties share the cotangent equally, and x on a bound gets none."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from stepwell.dialects.nd.arithmetic import MulOp, SignOp
from stepwell.dialects.nd.bitwise import AndOp
from stepwell.dialects.nd.compare import (
    ClampOp,
    CopysignOp,
    EqOp,
    GtOp,
    LeOp,
    LtOp,
    MaxOp,
    MinOp,
    SelectOp,
)
from stepwell.dialects.nd.composing import Composer
from stepwell.dialects.readings import Factor, gradient, partials


def _share(c: Composer, g: SSAValue, op: MaxOp | MinOp, mine: SSAValue) -> SSAValue:
    """Return ``g`` where ``mine`` is the result, half of it where both operands are equal."""
    half = c.mul(g, c.full(g, 0.5))
    zero = c.full(g, 0)
    both = c.of(SelectOp(c.of(EqOp(op.a, op.b)), half, g))
    return c.of(SelectOp(c.of(EqOp(op.y, mine)), both, zero))


@partials(MaxOp, MinOp)
def _extreme(c: Composer, op: MaxOp | MinOp) -> Sequence[Factor]:
    return lambda g: _share(c, g, op, op.a), lambda g: _share(c, g, op, op.b)


@partials(CopysignOp)
def _copysign(c: Composer, op: CopysignOp) -> Sequence[Factor]:
    """The product of the sign of the result and the sign of a."""

    def factor(g: SSAValue) -> SSAValue:
        given = c.of(CopysignOp(c.full(op.a, 1), op.b))
        return c.of(MulOp(g, c.mul(given, c.of(SignOp(op.a)))))

    return factor, None


@partials(ClampOp)
def _clamp(c: Composer, op: ClampOp) -> Sequence[Factor]:
    """g to x strictly between the bounds, to a bound where x exceeds it, to none if x is on it."""

    def where(chosen: SSAValue, g: SSAValue) -> SSAValue:
        return c.of(SelectOp(chosen, g, c.full(g, 0)))

    def to_x(g: SSAValue) -> SSAValue:
        inside = AndOp(c.of(GtOp(op.x, op.low)), c.of(LtOp(op.x, op.high)))
        return where(c.of(inside), g)

    def to_low(g: SSAValue) -> SSAValue:
        lowest = AndOp(c.of(LtOp(op.x, op.low)), c.of(LeOp(op.low, op.high)))
        return where(c.of(lowest), g)

    def to_high(g: SSAValue) -> SSAValue:
        return where(c.of(GtOp(c.max(op.x, op.low), op.high)), g)

    return to_x, to_low, to_high


gradient.none(SelectOp, reason="the backward pass masks what select did not choose (Reverse)")
