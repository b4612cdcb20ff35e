"""Vector loops whose extent is known at launch only, and that end in one vector under a mask.

The mask enables the first lanes: as many as are left. Others are neither loaded nor stored; what is
computed in them is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from stepwell.analysis.levels.masks import is_harmless
from stepwell.analysis.structured import in_panels
from stepwell.lowering.linalg_to_loops.accesses import lanes_at
from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.first_lanes import replace_first
from stepwell.lowering.linalg_to_loops.plan import Plan
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.writer import Index, Writer, element_of

Write = Callable[[Index, int, SSAValue | None], None]
"""Writes ``size`` iterations from an index: whole vectors, or the first lanes of one."""


def can_mask(plan: Plan, op: Structured, k: int, width: int) -> bool:
    """Whether vectors of ``op`` along loop ``k`` may be partly disabled.

    Lanes lie side by side or are one element, in every operand.
    """
    if width < 2 or not is_harmless(op.op):
        return False
    return all(
        access.buffer not in plan.padding
        and not plan.buffers[access.buffer].nontemporal
        and (lanes := lanes_at(access, k, width)) >= 0
        and (lanes == 0 or element_of(access.buffer) != i1)
        and in_panels(tuple(access.exprs), k) is None
        for access in (*op.inputs, *op.outputs)
    )


def cover_masked(
    writer: Writer, bounds: tuple[Index, Index], width: int, count: int, write: Write, hint: str
) -> None:
    """Write a loop ``count`` vectors at a time, then vector by vector; the last is masked."""
    lower, upper = bounds
    for size in dict.fromkeys((width * count, width)):
        end = writer.last_whole(lower, upper, size)

        def body(start: Index, _: Sequence[SSAValue], size: int = size) -> Sequence[SSAValue]:
            write(start, size, None)
            return ()

        writer.loop((lower, end), size, (), body, hint)
        lower = end
    left = writer.value(upper - lower)
    writer.branch(
        writer.compare("sgt", Index.of(left), Index()),
        lambda: write(lower, width, left),
        lambda: None,
    )


def end_masked(
    writer: Writer,
    bounds: tuple[Index, Index],
    k: int,
    width: int,
    points: Sequence[Point],
    state: tuple[list[SSAValue], Sequence[int]],
    write: Callable[[list[Point], Sequence[SSAValue]], Sequence[SSAValue]],
) -> None:
    """Cover the end of a reduction loop with the first lanes of one vector.

    state : all accumulators, and which of them the vector changes
    write : writes one iteration at points, and returns the accumulators after it
    """
    values, entries = state
    left = writer.value(bounds[1] - bounds[0])
    old = [values[e] for e in entries]

    def masked() -> list[SSAValue]:
        new = write([replace(p.bind(k, bounds[0], width), first=left) for p in points], old)
        return [replace_first(writer, a, b, left) for a, b in zip(new, old, strict=True)]

    some = writer.compare("sgt", Index.of(left), Index())
    for entry, value in zip(entries, writer.either(some, masked, lambda: old), strict=True):
        values[entry] = value
