"""Derivatives of activations that their decomposition would lose or overflow in."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from stepwell.dialects.nd.bitwise import AndOp
from stepwell.dialects.nd.compare import GtOp, LtOp, SelectOp
from stepwell.dialects.nd.composing import Composer
from stepwell.dialects.nd.composite import Relu6Op, ReluOp, SigmoidOp, SiluOp, SoftplusOp
from stepwell.dialects.nd.gradients.arithmetic import scaled
from stepwell.dialects.readings import Factor, partials


def _where(c: Composer, chosen: SSAValue, g: SSAValue) -> SSAValue:
    return c.of(SelectOp(chosen, g, c.full(g, 0)))


@partials(ReluOp)
def _relu(c: Composer, op: ReluOp) -> Sequence[Factor]:
    """0 at 0, as in JAX: by the result, which is positive where x is, so that x need not stay."""
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
    """s + y (1 - s), s being the sigmoid of x."""
    s = c.of(SigmoidOp(op.x))
    return c.add(s, c.mul(op.y, c.sub(c.full(s, 1), s)))


@scaled(SoftplusOp)
def _softplus(c: Composer, op: SoftplusOp) -> SSAValue:
    return c.of(SigmoidOp(op.x))
