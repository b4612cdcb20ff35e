"""Derivatives of activations whose decomposition would lose accuracy or overflow."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, sqrt

from xdsl.ir import SSAValue

from stepwell.dialects.nd.bitwise import AndOp
from stepwell.dialects.nd.compare import EqOp, GtOp, LtOp, SelectOp
from stepwell.dialects.nd.composing import Composer
from stepwell.dialects.nd.composite import GeluOp, Relu6Op, ReluOp, SigmoidOp, SiluOp, SoftplusOp
from stepwell.dialects.nd.gradients.arithmetic import scaled
from stepwell.dialects.nd.syntax import element
from stepwell.dialects.nd.transcendental import ErfOp, ExpOp
from stepwell.dialects.readings import Factor, partials


def _where(c: Composer, chosen: SSAValue, g: SSAValue) -> SSAValue:
    return c.of(SelectOp(chosen, g, c.full(g, 0)))


@partials(ReluOp)
def _relu(c: Composer, op: ReluOp) -> Sequence[Factor]:
    """0 at 0, as in JAX; a function of the result, so that x need not be kept."""
    return (lambda g: _where(c, c.of(GtOp(op.y, c.full(op.y, 0))), g),)


@partials(Relu6Op)
def _relu6(c: Composer, op: Relu6Op) -> Sequence[Factor]:
    """0 at 0 and at 6, as in JAX."""

    def factor(g: SSAValue) -> SSAValue:
        above, below = GtOp(op.y, c.full(op.y, 0)), LtOp(op.y, c.full(op.y, 6))
        return _where(c, c.of(AndOp(c.of(above), c.of(below))), g)

    return (factor,)


@scaled(SigmoidOp)
def _sigmoid(c: Composer, op: SigmoidOp) -> SSAValue:
    """y (1 - y)."""
    return c.mul(op.y, c.sub(c.full(op.y, 1), op.y))


@scaled(SiluOp)
def _silu(c: Composer, op: SiluOp) -> SSAValue:
    """s + y (1 - s), where s is the sigmoid of x."""
    s = c.of(SigmoidOp(op.x))
    return c.add(s, c.mul(op.y, c.sub(c.full(s, 1), s)))


@scaled(SoftplusOp)
def _softplus(c: Composer, op: SoftplusOp) -> SSAValue:
    return c.of(SigmoidOp(op.x))


@scaled(GeluOp)
def _gelu(c: Composer, op: GeluOp) -> SSAValue:
    """Φ(x) + x φ(x); by tanh s + x s (1 - s) u', where s is the sigmoid of u."""
    x = c.wide(op.x)
    if op.approximate.data == "none":
        curve = c.of(ErfOp(c.mul(x, c.full(x, sqrt(0.5)))))
        share = c.mul(c.add(curve, c.full(x, 1)), c.full(x, 0.5))
        density = c.of(ExpOp(c.mul(c.mul(x, x), c.full(x, -0.5))))
        found = c.add(share, c.mul(c.mul(x, density), c.full(x, sqrt(0.5 / pi))))
        return c.cast(found, element(op.x))
    square = c.mul(x, x)
    inner = c.add(x, c.mul(c.mul(square, x), c.full(x, 0.044715)))
    share = c.of(SigmoidOp(c.mul(inner, c.full(x, sqrt(8 / pi)))))
    rest = c.mul(share, c.sub(c.full(x, 1), share))
    slope = c.add(c.full(x, sqrt(8 / pi)), c.mul(square, c.full(x, sqrt(8 / pi) * 3 * 0.044715)))
    bend = c.mul(c.mul(x, rest), slope)  # for large x this is 0 times infinity
    none = c.of(EqOp(rest, c.full(x, 0)))
    found = c.add(share, c.of(SelectOp(none, c.full(x, 0), bend)))
    return c.cast(found, element(op.x))
