"""Canonicalize products: with one column, and of bytes that 64-bit integers accumulate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from stepwell.core.shapes import DYNAMIC
from stepwell.core.shapes import contraction as shapes
from stepwell.dialects.nd.contraction import ContractionOp, DotGeneralOp, MatmulOp, Pairs
from stepwell.dialects.nd.convert import CastOp
from stepwell.dialects.nd.rewrites.canonical import canonicalizes
from stepwell.dialects.nd.shape import ReshapeOp
from stepwell.dialects.nd.syntax import element, shape_of
from stepwell.dialects.types import dtype


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


@canonicalizes(MatmulOp)
class MatmulOfBytes(RewritePattern):
    """matmul(cast(x), cast(w)) of i64  ->  cast(matmul(cast(x), cast(w)) of i32), if it is exact.

    Processors have instructions for products of bytes that are added to 32 bits.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MatmulOp, rewriter: PatternRewriter) -> None:
        """Match operands that are converted from bytes."""
        _sum_in_32_bits(op, shape_of(op.x)[-1:], MatmulOp, rewriter)


@canonicalizes(DotGeneralOp)
class DotOfBytes(RewritePattern):
    """The same of dot_general."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: DotGeneralOp, rewriter: PatternRewriter) -> None:
        """Match operands that are converted from bytes."""
        summed = [shape_of(op.x)[axis] for axis in op.contract[0]]
        of = partial(DotGeneralOp, batch=op.batch, contract=op.contract)
        _sum_in_32_bits(op, summed, of, rewriter)


def _sum_in_32_bits(
    op: ContractionOp,
    summed: Sequence[int],
    of: Callable[[SSAValue, SSAValue], ContractionOp],
    rewriter: PatternRewriter,
) -> None:
    """Replace a product by ``of`` the same bytes in i32, if that holds its sums.

    summed : the sizes of the axes that are contracted
    """
    if (sources := _bytes(op, summed)) is not None:
        x, w = (rewriter.insert(CastOp(each, i32)).results[0] for each in sources)
        product = of(x, w)
        rewriter.replace(op, [product, CastOp(product.y, op.element)])


def _bytes(op: ContractionOp, summed: Sequence[int]) -> list[SSAValue] | None:
    """Return the bytes that a product of 64-bit integers multiplies, if 32 bits hold its sums."""
    wide = dtype(op.element)
    if wide.kind not in ("signed", "unsigned") or wide.bytes != 8 or DYNAMIC in summed:
        return None
    found, most = list[SSAValue](), prod(summed)
    for value in (op.x, op.w):
        source = value.owner.x if isinstance(value.owner, CastOp) else value
        narrow = dtype(element(source))
        if narrow.kind not in ("signed", "unsigned") or narrow.bytes != 1:
            return None
        found.append(source)
        most *= 128 if narrow.kind == "signed" else 255
    return found if most < 1 << 31 else None
