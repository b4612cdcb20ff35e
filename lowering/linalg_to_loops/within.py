"""Restrict loops to the part outside of which an op changes nothing.

Where a loop is vectorised its part is rounded to whole vectors: the added iterations have no
effect, because the body tests the limits itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.plan import Plan
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.writer import Index, Writer


def part(
    writer: Writer, op: Structured, loop: int, bounds: tuple[Index, Index]
) -> tuple[Index, Index]:
    """Return the part of ``bounds`` in which the op has an effect; an empty part is clamped too."""
    if (limits := op.within.get(loop)) is None:
        return bounds
    lower, upper = bounds
    low = writer.minimum(writer.maximum(limits[0], lower), upper)
    return low, writer.minimum(writer.maximum(limits[1], low), upper)


def rounded(
    writer: Writer, op: Structured, loop: int, bounds: tuple[Index, Index], step: int
) -> tuple[Index, Index]:
    """Return the part of ``bounds`` with an effect, in whole steps from their beginning.

    Its end may exceed ``bounds``, unless these are whole steps.
    """
    if loop not in op.within:
        return bounds
    start, _ = bounds
    low, high = part(writer, op, loop, bounds)
    first = writer.divide(low - start, step)
    last = writer.divide_up(high - start, step)
    return start + first * step, start + last * step


def meets(
    writer: Writer, op: Structured, loops: Sequence[int], points: Sequence[Point]
) -> SSAValue | None:
    """Return whether some of ``points`` is in the parts of these loops; None if always."""
    tests: list[SSAValue] = []
    for loop in loops:
        if (limits := op.within.get(loop)) is not None and (ends := _ends(points, loop)):
            tests.append(writer.compare("slt", ends[0], limits[1]))
            tests.append(writer.compare("sgt", ends[1], limits[0]))
    return writer.every(tests)


def _ends(points: Sequence[Point], loop: int) -> tuple[Index, Index] | None:
    """Return the first index and the end of points along a loop, where known."""
    first = points[0].indices[loop]
    if first is None:
        return None
    lowest, highest = 0, 0
    for point in points:
        at = point.indices[loop]
        away = None if at is None else (at - first).number
        if away is None:
            return None
        width = max(point.width, 1) if point.axis == loop else 1
        lowest, highest = min(lowest, away), max(highest, away + width)
    return first + lowest, first + highest


def shared_part(writer: Writer, plan: Plan, loop: int, extent: Index) -> tuple[Index, Index] | None:
    """Return the part of a shared loop outside of which no op of a kernel has an effect.

    Scratch is ignored: no op reads it outside of that part.
    """
    limits: list[tuple[Index, Index]] = []
    for op in plan.ops:
        kept = [k for k, o in enumerate(op.outputs) if plan.buffers[o.buffer].alloc is None]
        if not kept:
            continue
        if loop not in op.within or any(k in op.initial for k in kept):
            return None
        limits.append(op.within[loop])
    if not limits or plan.padding:
        return None
    low, high = limits[0]
    for some, other in limits[1:]:
        low, high = writer.minimum(low, some), writer.maximum(high, other)
    width = plan.first.width if loop == plan.axis else 1
    if width == 1:
        return low, high
    first = writer.divide(low, width) * width
    last = writer.divide_up(high, width) * width
    return first, writer.maximum(first, writer.minimum(last, extent))
