"""Canonicalize reshapes, transposes and broadcasts that cancel, merge or have no effect."""

from __future__ import annotations

from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from stepwell.core.shapes import Shape
from stepwell.core.shapes.shape import broadcast_unknown, reshape_unknown
from stepwell.dialects.nd.rewrites.canonical import canonicalizes
from stepwell.dialects.nd.rewrites.sizes import comes_from
from stepwell.dialects.nd.shape import BroadcastOp, ReshapeOp, TransposeOp
from stepwell.dialects.nd.syntax import axes, shape_of


@canonicalizes(ReshapeOp)
class IdentityReshape(RewritePattern):
    """reshape(x)  ->  x, if the shape is the same."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReshapeOp, rewriter: PatternRewriter) -> None:
        """Match equal types whose unknown sizes are provably equal."""
        if op.x.type != op.y.type:
            return
        unknown = reshape_unknown(shape_of(op.x), shape_of(op.y))
        if all(comes_from(n, op.x, a) for a, n in zip(unknown, op.sizes, strict=True)):
            rewriter.replace(op, [], [op.x])


@canonicalizes(ReshapeOp)
class ReshapeOfReshape(RewritePattern):
    """reshape(reshape(x))  ->  reshape(x)."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReshapeOp, rewriter: PatternRewriter) -> None:
        """Match the outer reshape if the unknown sizes of its result are still known."""
        inner = op.x.owner
        if not isinstance(inner, ReshapeOp):
            return
        result = shape_of(op.y)
        unknown = len(reshape_unknown(shape_of(inner.x), result))
        for sizes in ([], list(op.sizes), list(inner.sizes)):
            if len(sizes) == unknown:
                rewriter.replace(op, ReshapeOp(inner.x, result, sizes))
                return


@canonicalizes(TransposeOp)
class IdentityTranspose(RewritePattern):
    """transpose(x, [0, 1, ...])  ->  x."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TransposeOp, rewriter: PatternRewriter) -> None:
        """Match the identity permutation."""
        permutation = axes(op.permutation)
        if list(permutation) == list(range(len(permutation))):
            rewriter.replace(op, [], [op.x])


@canonicalizes(TransposeOp)
class TransposeOfTranspose(RewritePattern):
    """transpose(transpose(x, p), q)  ->  transpose(x, [p[k] for k in q])."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TransposeOp, rewriter: PatternRewriter) -> None:
        """Match the outer transpose."""
        inner = op.x.owner
        if isinstance(inner, TransposeOp):
            first, second = axes(inner.permutation), axes(op.permutation)
            rewriter.replace(op, TransposeOp(inner.x, [first[k] for k in second]))


@canonicalizes(TransposeOp)
class TransposeOfBroadcast(RewritePattern):
    """transpose(broadcast(x, d), p)  ->  broadcast(transpose(x), d').

    Fewer elements move before the broadcast; none if d' is ascending without a transpose.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TransposeOp, rewriter: PatternRewriter) -> None:
        """Match the transpose."""
        inner = op.x.owner
        if not isinstance(inner, BroadcastOp):
            return
        x, permutation = inner.x, axes(op.permutation)
        moved = [permutation.index(axis) for axis in axes(inner.dims)]
        order = sorted(range(len(moved)), key=moved.__getitem__)
        sizes_of = dict(zip(_unknown(inner), inner.sizes, strict=True))
        if order != list(range(len(order))):
            x = rewriter.insert(TransposeOp(x, order)).y
        result, dims = shape_of(op.y), sorted(moved)
        unknown = broadcast_unknown(shape_of(x), dims, result)
        sizes = [sizes_of[permutation[axis]] for axis in unknown]
        rewriter.replace(op, BroadcastOp(x, dims, result, sizes))


def _unknown(op: BroadcastOp) -> Shape:
    return broadcast_unknown(shape_of(op.x), axes(op.dims), shape_of(op.y))


@canonicalizes(BroadcastOp)
class IdentityBroadcast(RewritePattern):
    """broadcast(x)  ->  x, if the shape is the same."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: BroadcastOp, rewriter: PatternRewriter) -> None:
        """Match equal types; an unknown size is then that of x."""
        if op.x.type == op.y.type:
            rewriter.replace(op, [], [op.x])


@canonicalizes(BroadcastOp)
class BroadcastOfBroadcast(RewritePattern):
    """broadcast(broadcast(x, d), e)  ->  broadcast(x, [e[k] for k in d])."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: BroadcastOp, rewriter: PatternRewriter) -> None:
        """Match the outer broadcast; sizes that the inner one defines are taken from it."""
        inner = op.x.owner
        if not isinstance(inner, BroadcastOp):
            return
        outer = axes(op.dims)
        sizes_of = {outer[a]: n for a, n in zip(_unknown(inner), inner.sizes, strict=True)}
        sizes_of.update(zip(_unknown(op), op.sizes, strict=True))
        dims, result = [outer[axis] for axis in axes(inner.dims)], shape_of(op.y)
        unknown = broadcast_unknown(shape_of(inner.x), dims, result)
        rewriter.replace(
            op, BroadcastOp(inner.x, dims, result, [sizes_of[axis] for axis in unknown])
        )
