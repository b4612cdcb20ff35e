"""Propagate nd.full through ops that only move elements."""

from __future__ import annotations

from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.nd.creation import FullOp
from stepwell.dialects.nd.rewrites.canonical import canonicalizes
from stepwell.dialects.nd.shape import BroadcastOp, ReshapeOp, ReverseOp, SliceOp, TransposeOp
from stepwell.dialects.nd.syntax import shape_of
from stepwell.dialects.types import tensor_type


@canonicalizes(BroadcastOp, ReshapeOp, TransposeOp, SliceOp, ReverseOp)
class MovedFull(RewritePattern):
    """move(full v)  ->  full v, in the new shape."""

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self,
        op: BroadcastOp | ReshapeOp | TransposeOp | SliceOp | ReverseOp,
        rewriter: PatternRewriter,
    ) -> None:
        """Match an op on a full tensor that has a size operand for each `?` of its result."""
        inner = op.x.owner
        if not isinstance(inner, FullOp):
            return
        sizes = op.sizes if isinstance(op, BroadcastOp | ReshapeOp) else ()
        if shape_of(op.y).count(DYNAMIC) == len(sizes):
            rewriter.replace(op, FullOp(inner.value, tensor_type(op.y), sizes))
