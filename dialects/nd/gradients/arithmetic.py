"""Derivatives of arithmetic. At a kink the convention is JAX's: |x| has 0 at 0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from xdsl.ir import Operation, SSAValue

from stepwell.dialects.nd.arithmetic import (
    AbsOp,
    AddOp,
    CeilOp,
    DivOp,
    FloorDivOp,
    FloorOp,
    FmaOp,
    ModOp,
    MulOp,
    NegOp,
    ReciprocalOp,
    RemOp,
    RoundOp,
    SignOp,
    SquareOp,
    SubOp,
    TruncOp,
)
from stepwell.dialects.nd.compare import GeOp, SelectOp
from stepwell.dialects.nd.composing import Composer
from stepwell.dialects.readings import Factor, partials

Scale: TypeAlias = Callable[[Composer, Any], SSAValue]


def scaled(*ops: type[Operation]) -> Callable[[Scale], Scale]:
    """Register the derivative of unary functions: the factor of a cotangent."""

    def register(derivative: Scale) -> Scale:
        @partials(*ops)
        def rule(c: Composer, op: Any) -> Sequence[Factor]:  # pyright: ignore[reportUnusedFunction]
            return (lambda g: c.mul(g, derivative(c, op)),)

        return derivative

    return register


def neg(c: Composer, x: SSAValue) -> SSAValue:
    """Return ``-x``."""
    return c.of(NegOp(x))


partials(NegOp)(lambda c, op: (lambda g: neg(c, g),))
partials(AddOp)(lambda c, op: (lambda g: g, lambda g: g))
partials(SubOp)(lambda c, op: (lambda g: g, lambda g: neg(c, g)))
partials(MulOp)(lambda c, op: (lambda g: c.mul(g, op.b), lambda g: c.mul(g, op.a)))
partials(FmaOp)(lambda c, op: (lambda g: c.mul(g, op.b), lambda g: c.mul(g, op.a), lambda g: g))
partials(CeilOp, FloorOp, RoundOp, TruncOp, SignOp)(lambda c, op: (None,))
partials(FloorDivOp)(lambda c, op: (None, None))


@partials(AbsOp)
def _abs(c: Composer, op: AbsOp) -> Sequence[Factor]:
    """1 at 0, as in JAX."""

    def factor(g: SSAValue) -> SSAValue:
        above = c.of(GeOp(op.x, c.full(op.x, 0)))
        return c.of(SelectOp(above, g, neg(c, g)))

    return (factor,)


scaled(SquareOp)(lambda c, op: c.mul(op.x, c.full(op.x, 2)))
scaled(ReciprocalOp)(lambda c, op: neg(c, c.of(SquareOp(op.y))))


@partials(DivOp)
def _div(c: Composer, op: DivOp) -> Sequence[Factor]:
    """(a / b)' = a' / b - b' * (a / b) / b."""
    return lambda g: c.div(g, op.b), lambda g: neg(c, c.div(c.mul(g, op.y), op.b))


@partials(RemOp)
def _rem(c: Composer, op: RemOp) -> Sequence[Factor]:
    """The factor of b is constant except at its jumps."""
    return lambda g: g, lambda g: neg(c, c.mul(g, c.of(TruncOp(c.div(op.a, op.b)))))


@partials(ModOp)
def _mod(c: Composer, op: ModOp) -> Sequence[Factor]:
    return lambda g: g, lambda g: neg(c, c.mul(g, c.of(FloorOp(c.div(op.a, op.b)))))
