"""Operands of a sum over several loops in which each column is one run of memory.

Most filters are stored features-first, window last. Since the feature loop, the last of the sum, is
the one that is split, each part is contiguous if its axis comes first among the summed axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
    i64,
)
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr

from stepwell.lowering.linalg_to_loops.structured import Access
from stepwell.lowering.linalg_to_loops.writer import Writer


@dataclass(frozen=True)
class Run:
    """The run of a column: the axes of an operand from that of the last loop on."""

    axis: int
    size: int
    """Elements for each iteration of the last loop."""
    place: AffineExpr
    """The position within these elements, as a function of the loops before the last one."""

    def flat(self, writer: Writer, source: Access) -> Access:
        """Return ``source`` with its run flattened to one axis, indexed by the last loop."""
        kind = source.buffer.type
        assert isinstance(kind, MemRefType)
        shape = kind.get_shape()
        long = shape[self.axis]
        sizes = [*shape[: self.axis], long * self.size if long != DYNAMIC_INDEX else long]
        layout = kind.layout
        if isinstance(layout, StridedLayoutAttr):
            strides = [*list(layout.strides)[: self.axis], 1]
            layout = StridedLayoutAttr(
                [getattr(s, "data", s) for s in strides],  # pyright: ignore
                getattr(layout.offset, "data", None),
            )
        groups = [*([k] for k in range(self.axis)), range(self.axis, len(shape))]
        reassociation = ArrayAttr(ArrayAttr(IntegerAttr(k, i64) for k in g) for g in groups)
        op = memref.CollapseShapeOp.create(
            operands=[source.buffer],
            result_types=[MemRefType(kind.element_type, sizes, layout, kind.memory_space)],
            properties={"reassociation": reassociation},
        )
        view = writer.result(op, source.buffer.name_hint)
        return Access(view, source.exprs[: self.axis + 1])


def run_of(source: Access, depth: int, sums: Sequence[int]) -> Run | None:
    """Return the run that ``sums`` and, outside of them in memory, loop ``depth`` read; or None."""
    if AffineDimExpr(depth) not in source.exprs or not isinstance(source.buffer.type, MemRefType):
        return None
    axis = source.exprs.index(AffineDimExpr(depth))
    sizes = source.buffer.type.get_shape()[axis + 1 :]
    behind = source.exprs[axis + 1 :]
    if not behind or DYNAMIC_INDEX in sizes or not _lies_together(source.buffer, axis):
        return None
    place: AffineExpr = AffineConstantExpr(0)
    found: list[int] = []
    for k, (expr, size) in enumerate(zip(behind, sizes, strict=True)):
        if isinstance(expr, AffineDimExpr):
            found.append(expr.position)
            place = place + expr * prod(sizes[k + 1 :])
        elif expr != AffineConstantExpr(0) or size != 1:
            return None
    if sorted(found) != sorted(sums):
        return None
    return Run(axis, prod(sizes), place)


def _lies_together(buffer: SSAValue, axis: int) -> bool:
    """Whether the axes from ``axis`` on are contiguous."""
    assert isinstance(buffer.type, MemRefType)
    if isinstance(buffer.type.layout, NoneAttr):
        return True
    strides = buffer.type.get_strides()
    shape = buffer.type.get_shape()
    if strides is None:
        return False
    return all(strides[k] == prod(shape[k + 1 :]) for k in range(axis, len(shape)))
