"""Move a reshape that merges axes behind elementwise ops on both sides of it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from stepwell.core.shapes import DYNAMIC, Shape
from stepwell.dialects.nd.creation import FullOp
from stepwell.dialects.nd.elementwise import Elementwise
from stepwell.dialects.nd.rewrites.canonical import canonicalizes
from stepwell.dialects.nd.rewrites.units import ELEMENTWISE, of_shape
from stepwell.dialects.nd.shape import BroadcastOp, ReshapeOp
from stepwell.dialects.nd.syntax import axes, element, shape_of

DEPTH = 6
"""Maximum number of elementwise ops between a broadcast and a reshape."""
MIN_LAST_AXIS = 16
"""Minimum size of a last axis: a shorter one is merged before further ops."""


@canonicalizes(*ELEMENTWISE)
class ElementwiseOfMergedAxes(RewritePattern):
    """f(reshape(g(x, broadcast(m))), broadcast(s))  ->  reshape(f(g(..), broadcast(reshape(s)))).

    As in a group norm, where g subtracts each group's mean m and f scales each channel: the reshape
    only merges axes, and s has a merged axis completely or not at all.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: Elementwise, rewriter: PatternRewriter) -> None:
        """Match an op whose other operands are full, broadcast, or arguments."""
        first = next((v.owner for v in op.operands if _is_reshaped_broadcast(v)), None)
        if not isinstance(first, ReshapeOp):
            return
        wide, shape = shape_of(first.x), shape_of(first.y)
        groups = _merged(wide, shape)
        if groups is None or (len(groups[-1]) > 1 and wide[-1] < MIN_LAST_AXIS):
            return
        if not all(_can_reshape(v, wide) for v in op.operands):
            return
        operands = [_reshaped(v, wide, groups, rewriter) for v in op.operands]
        inner = of_shape(op, operands, wide)
        rewriter.replace(op, [inner, ReshapeOp(inner.y, shape)])


def _is_reshaped_broadcast(value: SSAValue) -> bool:
    """Whether ``value`` is a reshape of an elementwise result with a broadcast operand."""
    op = value.owner
    return (
        isinstance(op, ReshapeOp)
        and isinstance(op.x.owner, Elementwise)
        and _reads_broadcast(op.x, DEPTH)
    )


def _reads_broadcast(value: SSAValue, depth: int) -> bool:
    op = value.owner
    if isinstance(op, BroadcastOp):
        return len(op.dims) > 0
    return (
        depth > 0
        and isinstance(op, Elementwise)
        and any(_reads_broadcast(v, depth - 1) for v in op.operands)
    )


def _merged(wide: Shape, shape: Shape) -> Sequence[Sequence[int]] | None:
    """Return the axes of ``wide`` that each axis of ``shape`` merges, None if unknown.

    One `?` may remain unmerged, as the number of images does.
    """
    groups: list[list[int]] = []
    axis = 0
    for n in shape:
        group, count = [axis], wide[axis] if axis < len(wide) else 0
        axis += 1
        while n != DYNAMIC and count not in (n, DYNAMIC) and axis < len(wide):
            group, count, axis = [*group, axis], count * wide[axis], axis + 1
        if count != n or 0 in (count, *wide):
            return None
        groups.append(group)
    return groups if axis == len(wide) and shape.count(DYNAMIC) <= 1 else None


def _can_reshape(value: SSAValue, wide: Shape) -> bool:
    """Whether ``value`` can be reshaped to ``wide`` for free."""
    match value.owner:
        case ReshapeOp() as op:
            return shape_of(op.x) == wide
        case BroadcastOp() as op:
            shape = shape_of(op.y)
            return all(n == shape[a] for n, a in zip(shape_of(op.x), axes(op.dims), strict=True))
        case owner:
            return isinstance(owner, FullOp | Block)


def _reshaped(
    value: SSAValue, wide: Shape, groups: Sequence[Sequence[int]], rewriter: PatternRewriter
) -> SSAValue:
    """Return ``value`` in the shape ``wide``."""
    match value.owner:
        case ReshapeOp() as op:
            return op.x
        case FullOp() as op:
            return rewriter.insert(FullOp(op.value, TensorType(element(value), wide), op.sizes)).y
        case BroadcastOp() as op:
            dims = [axis for to in axes(op.dims) for axis in groups[to]]
            x = op.x
            if len(dims) > len(op.dims):
                x = rewriter.insert(ReshapeOp(x, [wide[axis] for axis in dims])).y
            return rewriter.insert(BroadcastOp(x, dims, wide, op.sizes)).y
        case _:
            return rewriter.insert(ReshapeOp(value, wide)).y
