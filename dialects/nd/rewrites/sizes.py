"""Trace sizes to their origin: nd.dim of a result becomes nd.dim of an operand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from stepwell.core.shapes import DYNAMIC
from stepwell.core.shapes.shape import broadcast_unknown, reshape_unknown
from stepwell.dialects.nd.creation import Creation
from stepwell.dialects.nd.elementwise import Elementwise
from stepwell.dialects.nd.groups import INDEX
from stepwell.dialects.nd.indexing import SCATTERS, DynamicUpdateSliceOp
from stepwell.dialects.nd.reduction import CumulativeOp, ReduceOp
from stepwell.dialects.nd.rewrites.canonical import canonicalizes
from stepwell.dialects.nd.shape import BroadcastOp, ReshapeOp, ReverseOp, TransposeOp
from stepwell.dialects.nd.sizes import DimOp
from stepwell.dialects.nd.sorting import OrderOp
from stepwell.dialects.nd.syntax import axes, shape_of

Origin: TypeAlias = SSAValue | tuple[SSAValue, int]
"""A size, or a value and one of its axes with this size."""

SAME_SHAPE = (Elementwise, ReverseOp, CumulativeOp, OrderOp, DynamicUpdateSliceOp, *SCATTERS)
"""Ops whose result has the shape of their first operand."""


@canonicalizes(DimOp)
class DimOfKnown(RewritePattern):
    """Replace dim of a static axis by a constant."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: DimOp, rewriter: PatternRewriter) -> None:
        """Match a static axis."""
        if (n := shape_of(op.x)[op.axis.value.data]) != DYNAMIC:
            rewriter.replace(op, arith.ConstantOp(IntegerAttr(n, INDEX)))


@canonicalizes(DimOp)
class DimOfResult(RewritePattern):
    """dim(f(x), a)  ->  dim(x, b), or a size operand of f."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: DimOp, rewriter: PatternRewriter) -> None:
        """Match an op whose operands determine the size."""
        match origin(op.x, op.axis.value.data):
            case None:
                return
            case SSAValue() as size:
                rewriter.replace(op, [], [size])
            case (x, axis):
                rewriter.replace(op, DimOp(x, axis))


def origin(value: SSAValue, axis: int) -> Origin | None:
    """Return the size operand, or the operand and axis, that determines the size of an axis."""
    op = value.owner
    if isinstance(op, SAME_SHAPE):
        return op.operands[0], axis
    if isinstance(op, Creation):
        return _size_operand(axis, _unknown(value), op.sizes)
    if isinstance(op, Operation) and (rule := _ORIGINS.get(type(op))) is not None:
        return rule(op, axis)
    if isinstance(op, ReduceOp):
        kept = [a for a in range(len(shape_of(op.x))) if a not in axes(op.axes)]
        return op.x, kept[axis]
    return None


def comes_from(size: SSAValue, value: SSAValue, axis: int) -> bool:
    """Whether ``size`` is provably the size of an axis of ``value``."""
    at: Origin | None = (value, axis)
    while isinstance(at, tuple):
        x, axis = at
        asked = size.owner
        if isinstance(asked, DimOp) and asked.x is x and asked.axis.value.data == axis:
            return True
        at = origin(x, axis)
    return at is size


def _unknown(value: SSAValue) -> list[int]:
    return [a for a, n in enumerate(shape_of(value)) if n == DYNAMIC]


def _size_operand(axis: int, unknown: Sequence[int], sizes: Sequence[SSAValue]) -> SSAValue | None:
    return sizes[unknown.index(axis)] if axis in unknown else None


def _of_transpose(op: TransposeOp, axis: int) -> tuple[SSAValue, int]:
    return op.x, axes(op.permutation)[axis]


def _of_broadcast(op: BroadcastOp, axis: int) -> Origin | None:
    dims = axes(op.dims)
    unknown = broadcast_unknown(shape_of(op.x), dims, shape_of(op.y))
    return _size_operand(axis, unknown, op.sizes) or (op.x, dims.index(axis))


def _of_reshape(op: ReshapeOp, axis: int) -> Origin | None:
    unknown = reshape_unknown(shape_of(op.x), shape_of(op.y))
    return _size_operand(axis, unknown, op.sizes) or (op.x, shape_of(op.x).index(DYNAMIC))


_ORIGINS: dict[type[Operation], Callable[[Any, int], Origin | None]] = {
    TransposeOp: _of_transpose,
    BroadcastOp: _of_broadcast,
    ReshapeOp: _of_reshape,
}
