"""Reductions over nothing."""

from __future__ import annotations

from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from stepwell.dialects.nd.reduction import REDUCTIONS, ReduceOp
from stepwell.dialects.nd.rewrites.canonical import canonicalizes


@canonicalizes(*REDUCTIONS)
class ReduceOverNoAxes(RewritePattern):
    """reduce(x, [])  ->  x."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReduceOp, rewriter: PatternRewriter) -> None:
        """Match a reduction that leaves every axis."""
        if not len(op.axes):
            rewriter.replace(op, [], [op.x])
