"""Tiles of rows whose windows may read virtual padding above or below an image.

The number of rows is known at launch only. Tiles that read padding load their rows under masks;
the others need no tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from stepwell.analysis.structured import coefficient, dims_of
from stepwell.lowering.linalg_to_loops.frame import Frame
from stepwell.lowering.linalg_to_loops.plan import Plan
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.tails import Inside, Taken
from stepwell.lowering.linalg_to_loops.writer import NAMES, Index, Writer

Axis = tuple[SSAValue, int]


def through_borders(frame: Frame, k: int, unit: int, inside: Inside) -> None:
    """Write the rows in tiles of ``unit``, those at the borders of images apart from the others.

    The last tile overlaps the one before; rows beyond the end have no effect.
    """
    writer, extent, hint = frame.writer, frame.ends[k], NAMES[k % len(NAMES)]
    low, high = _rows_within(frame, k)

    def tile(start: Index) -> None:
        start = writer.maximum(writer.minimum(start, extent + -unit), Index())
        behind = writer.compare("sge", start, low)
        before = writer.compare("sle", start + unit, high)
        within = writer.binary(arith.AndIOp, behind, before)
        writer.branch(within, lambda: plain(start), lambda: inside(Taken(start, unit, end=extent)))

    def plain(start: Index) -> None:
        frame.memory.inside = _axes_along(frame.plan, k)
        inside(Taken(start, unit))
        frame.memory.inside = ()

    writer.each((Index(), extent), unit, tile, hint)


def _axes_along(plan: Plan, loop: int) -> set[Axis]:
    """Return the axes of padded images along which, of all shared loops, only ``loop`` moves."""
    found, others = set[Axis](), set[Axis]()
    for _, buffer, axis, expr in _padded(plan):
        used = {d for d in dims_of((expr,)) if d < plan.levels.shared}
        forward = (coefficient(expr, loop) or 0) > 0
        (found if used == {loop} and forward else others).add((buffer, axis))
    return found - others


def _rows_within(frame: Frame, loop: int) -> tuple[Index, Index]:
    """Return the first iteration that reads no padding along `_axes_along`, and the end of these.

    The end may be less than the first iteration.
    """
    writer, plan = frame.writer, frame.plan
    axes, first, end = _axes_along(plan, loop), Index(), frame.ends[loop]
    for op, buffer, axis, expr in _padded(plan):
        if (buffer, axis) not in axes:
            continue
        padding, step = plan.padding[buffer], coefficient(expr, loop)
        assert step
        least, most = _reach(writer, expr, loop, frame.extents[op])
        before = least * -1 + padding.offsets[axis]
        room = frame.memory.dim(padding.image, axis) + padding.offsets[axis] - most
        first = writer.maximum(first, _quotient(writer, before + (step - 1), step))
        end = writer.minimum(end, _quotient(writer, room + (step - 1), step))
    return first, end


def _padded(plan: Plan) -> Iterator[tuple[Structured, SSAValue, int, AffineExpr]]:
    """Yield each read of a padded image along a padded axis, other than that of the columns."""
    for op in plan.ops:
        for access in op.inputs:
            if (padding := plan.padding.get(access.buffer)) is not None:
                for axis, expr in enumerate(access.exprs[:-1]):
                    if padding.bounded[axis]:
                        yield op, access.buffer, axis, expr


def _reach(
    writer: Writer, expr: AffineExpr, loop: int, trips: Sequence[Index]
) -> tuple[Index, Index]:
    """Return the least and the greatest index that an op reads where ``loop`` is at 0."""
    ends: list[tuple[Index, Index]] = []
    for number, trip in enumerate(trips):
        last = Index() if number == loop else trip + -1
        ends.append((Index(), last) if (coefficient(expr, number) or 0) >= 0 else (last, Index()))
    lows, highs = zip(*ends, strict=True)
    return writer.affine(expr, lows), writer.affine(expr, highs)


def _quotient(writer: Writer, index: Index, by: int) -> Index:
    """Return an index by a number, rounded down; 0 for an index below 0."""
    some = writer.maximum(index, Index())
    return some if by == 1 else writer.divide(some, by)
