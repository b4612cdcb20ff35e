"""Canonicalize products with one column: a matrix by a vector is computed much faster."""

from __future__ import annotations

from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from stepwell.core.shapes import DYNAMIC
from stepwell.core.shapes import contraction as shapes
from stepwell.dialects.nd.contraction import ContractionOp, DotGeneralOp, MatmulOp, Pairs
from stepwell.dialects.nd.rewrites.canonical import canonicalizes
from stepwell.dialects.nd.shape import ReshapeOp
from stepwell.dialects.nd.syntax import shape_of


@canonicalizes(MatmulOp)
class MatmulOfOneColumn(RewritePattern):
    """matmul(x, w)  ->  reshape(dot_general(x, reshape(w))), if the matrix w has one column."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MatmulOp, rewriter: PatternRewriter) -> None:
        """Match a matrix of one column."""
        x, w = len(shape_of(op.x)), len(shape_of(op.w))
        if w == 2 or w == x > 2:
            batch = tuple(range(w - 2))
            _drop_column(op, (batch, batch), ((x - 1,), (w - 2,)), rewriter)


@canonicalizes(DotGeneralOp)
class DotOfOneColumn(RewritePattern):
    """dot_general(x, w)  ->  reshape(dot_general(x, reshape(w))), if w's free axis has size 1."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: DotGeneralOp, rewriter: PatternRewriter) -> None:
        """Match an operand with a free axis of size 1."""
        _drop_column(op, op.batch, op.contract, rewriter)


def _drop_column(
    op: ContractionOp, batch: Pairs, contract: Pairs, rewriter: PatternRewriter
) -> None:
    """Replace a product by one without the only free axis of ``w``, if its size is 1."""
    w, result = shape_of(op.w), shape_of(op.y)
    free = shapes.free_axes(len(w), batch[1], contract[1])
    if len(free) != 1 or w[free[0]] != 1 or max(w.count(DYNAMIC), result.count(DYNAMIC)) > 1:
        return

    def moved(pairs: Pairs) -> Pairs:
        return pairs[0], [axis - (axis > free[0]) for axis in pairs[1]]

    column = rewriter.insert(ReshapeOp(op.w, [n for k, n in enumerate(w) if k != free[0]]))
    product = DotGeneralOp(op.x, column.y, moved(batch), moved(contract), op.dtype)
    rewriter.replace(op, [product, ReshapeOp(product.y, result)])
