"""Canonicalize reductions over no axes."""

from __future__ import annotations

from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from stepwell.dialects.nd.reduction import REDUCTIONS, ReduceOp, ReduceSumOp
from stepwell.dialects.nd.rewrites.canonical import canonicalizes
from stepwell.dialects.nd.syntax import element
from stepwell.dialects.types import dtype


@canonicalizes(*REDUCTIONS)
class ReduceOverNoAxes(RewritePattern):
    """reduce(x, [])  ->  x, except for sums of floats: they begin at 0, and 0 + -0.0 is 0.0."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReduceOp, rewriter: PatternRewriter) -> None:
        """Match a reduction without axes."""
        floats = dtype(element(op.x)).kind == "float"
        if not len(op.axes) and not (floats and isinstance(op, ReduceSumOp)):
            rewriter.replace(op, [], [op.x])
