"""Compute the sizes of a region's values outside of the region.

Values that a loop keeps for its backward pass are stacked outside, so their sizes must be known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.traits import ConstantLike

from stepwell.core.shapes import DYNAMIC
from stepwell.core.shapes import shape as rules
from stepwell.dialects.nd.composing import Composer, others
from stepwell.dialects.nd.contraction import DotGeneralOp
from stepwell.dialects.nd.control import IfOp, ScanOp, WhileOp, YieldOp
from stepwell.dialects.nd.convert import BitcastOp, CastOp
from stepwell.dialects.nd.creation import Creation
from stepwell.dialects.nd.elementwise import Elementwise
from stepwell.dialects.nd.indexing import (
    DynamicSliceOp,
    DynamicUpdateSliceOp,
    GatherOp,
    ScatterOpBase,
)
from stepwell.dialects.nd.reduction import CumulativeOp, ReduceOp
from stepwell.dialects.nd.shape import BroadcastOp, ReshapeOp, ReverseOp, TransposeOp
from stepwell.dialects.nd.sizes import DimOp
from stepwell.dialects.nd.sorting import OrderOp
from stepwell.dialects.nd.syntax import axes, shape_of

_SAME = (
    Elementwise,
    CastOp,
    BitcastOp,
    ReverseOp,
    CumulativeOp,
    OrderOp,
    DynamicUpdateSliceOp,
    ScatterOpBase,
)
"""Ops whose result has the sizes of the first operand."""

_NUMBERS = (
    arith.AddiOp,
    arith.SubiOp,
    arith.MuliOp,
    arith.MinSIOp,
    arith.MaxSIOp,
    arith.CeilDivSIOp,
    arith.FloorDivSIOp,
    arith.DivSIOp,
)


@dataclass
class Outside:
    """Computes sizes of values of ``block`` at the position of ``composer``, outside of it."""

    composer: Composer
    block: Block
    arguments: Mapping[SSAValue, tuple[SSAValue, int]]
    """The initial value of each block argument, and the number of its additional leading axes."""

    def sizes(self, value: SSAValue) -> list[SSAValue] | None:
        """Return the size of each `?` of ``value``; None if one cannot be computed."""
        found: list[SSAValue] = []
        for axis, n in enumerate(shape_of(value)):
            if n == DYNAMIC:
                size = self.size(value, axis)
                if size is None:
                    return None
                found.append(size)
        return found

    def knows(self, value: SSAValue) -> bool:
        """Whether the sizes of ``value`` can be computed."""
        return DYNAMIC not in shape_of(value) or self.sizes(value) is not None

    def is_inside(self, value: SSAValue) -> bool:
        """Whether ``value`` is defined in the block or in a region inside it."""
        at = value.owner if isinstance(value.owner, Block) else value.owner.parent
        while at is not None and at is not self.block:
            around = at.parent_op()
            at = None if around is None else around.parent
        return at is self.block

    def size(self, value: SSAValue, axis: int) -> SSAValue | None:
        """Return the size of an axis, None if it cannot be computed."""
        if (n := shape_of(value)[axis]) != DYNAMIC:
            return self.composer.index(n)
        if not self.is_inside(value):
            return self.composer.size(value, axis)
        if isinstance(value, BlockArgument):
            known = self.arguments.get(value)
            return None if known is None else self.composer.size(known[0], axis + known[1])
        op = value.owner
        assert isinstance(op, Operation)
        return self._of_result(op, value, axis)

    def _of_result(self, op: Operation, value: SSAValue, axis: int) -> SSAValue | None:
        if isinstance(op, _SAME):
            same = [v for v in op.operands if len(shape_of(v)) == len(shape_of(value))]
            return self.size((same or op.operands)[0], axis)
        if isinstance(op, Creation):
            return self.number(op.sizes[shape_of(value)[:axis].count(DYNAMIC)])
        if isinstance(op, TransposeOp):
            return self.size(op.x, axes(op.permutation)[axis])
        if isinstance(op, ReduceOp):
            return self.size(op.x, others(op.x, axes(op.axes))[axis])
        if isinstance(op, BroadcastOp | ReshapeOp):
            return self._of_shape(op, axis)
        if isinstance(op, DotGeneralOp | GatherOp | DynamicSliceOp):
            return self._of_reads(op, axis)
        if isinstance(op, WhileOp | ScanOp):
            number = list(op.results).index(value)  # pyright: ignore[reportArgumentType]
            return self.size(op.carried[number], axis) if number < len(op.carried) else None
        if isinstance(op, IfOp):
            last = op.then.block.last_op
            assert isinstance(last, YieldOp)
            number = list(op.results).index(value)  # pyright: ignore[reportArgumentType]
            inner = last.operands[number]
            return (
                None
                if Outside(self.composer, op.then.block, {}).is_inside(inner)
                else (self.size(inner, axis))
            )
        return None

    def _of_shape(self, op: BroadcastOp | ReshapeOp, axis: int) -> SSAValue | None:
        x, y = shape_of(op.x), shape_of(op.y)
        if isinstance(op, ReshapeOp):
            if op.sizes:
                return self.number(op.sizes[y[:axis].count(DYNAMIC)])
            return self.size(op.x, x.index(DYNAMIC))
        dims = axes(op.dims)
        if axis in dims and x[dims.index(axis)] == DYNAMIC:
            return self.size(op.x, dims.index(axis))
        unknown = rules.broadcast_unknown(x, dims, y)
        return self.number(op.sizes[unknown.index(axis)])

    def _of_reads(self, op: DotGeneralOp | GatherOp | DynamicSliceOp, axis: int) -> SSAValue | None:
        if isinstance(op, DynamicSliceOp):
            along = axes(op.axes)
            if axis not in along:
                return self.size(op.x, axis)
            position = axes(op.lengths)[: along.index(axis)].count(DYNAMIC)
            return self.number(op.unknown_sizes[position])
        if isinstance(op, GatherOp):
            along, rank = axes(op.axes), len(shape_of(op.indices[0]))
            if along[0] <= axis < along[0] + rank:
                return self.size(op.indices[0], axis - along[0])
            kept = [a for a in range(len(shape_of(op.x))) if a not in along]
            return self.size(op.x, kept[axis if axis < along[0] else axis - rank])
        (xb, wb), (xc, wc) = op.batch, op.contract
        xf = [a for a in range(len(shape_of(op.x))) if a not in (*xb, *xc)]
        wf = [a for a in range(len(shape_of(op.w))) if a not in (*wb, *wc)]
        places = [*((op.x, a) for a in xb), *((op.x, a) for a in xf), *((op.w, a) for a in wf)]
        return self.size(*places[axis])

    def number(self, value: SSAValue) -> SSAValue | None:
        """Return an index value of the block, recomputed outside of it."""
        if not self.is_inside(value):
            return value
        op = value.owner
        if isinstance(op, DimOp):
            return self.size(op.x, op.axis.value.data)
        if isinstance(op, Operation) and (op.has_trait(ConstantLike) or isinstance(op, _NUMBERS)):
            parts = [self.number(v) for v in op.operands]
            if None in parts:
                return None
            copy = op.clone(dict(zip(op.operands, [p for p in parts if p], strict=True)))
            return self.composer.builder.insert(copy).results[0]
        return None
