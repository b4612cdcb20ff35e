"""Derivatives of reductions: equal extremes share the cotangent, as in JAX."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.nd.compare import EqOp
from stepwell.dialects.nd.composing import others
from stepwell.dialects.nd.gradients.reverse import Reverse
from stepwell.dialects.nd.reduction import (
    ReduceMaxOp,
    ReduceMinOp,
    ReduceSumOp,
)
from stepwell.dialects.nd.syntax import axes, element, shape_of
from stepwell.dialects.readings import gradient, moves


@moves(ReduceSumOp)
def _sum(r: Reverse, op: ReduceSumOp, g: SSAValue) -> SSAValue:
    return r.along(g, op.x, others(op.x, axes(op.axes)))


@gradient(ReduceMaxOp, ReduceMinOp)
def _extreme(
    r: Reverse, op: ReduceMaxOp | ReduceMinOp, cotangents: Sequence[SSAValue | None]
) -> None:
    (g,) = cotangents
    assert g is not None
    over = axes(op.axes)
    kept = others(op.x, over)
    chosen = r.of(EqOp(op.x, r.along(op.y, op.x, kept)))
    ones = r.cast(chosen, element(op.x))
    count = r.sum_over(ones, over)
    if any(shape_of(op.x)[axis] in (0, DYNAMIC) for axis in over):
        count = r.max(count, r.full(count, 1))  # an empty reduction has no extreme: avoid 0 / 0
    share = r.div(g, count)
    r.accumulate(op.x, r.along(share, op.x, kept), chosen)
