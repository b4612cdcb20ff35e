"""The epilogue of a register tile: a loop over the tile's rows where it is long.

The optimiser step after a weight gradient has thirty operations. Unrolled for each of the 24
vectors of a tile, they are most of a program's code and compile time. So the sums are stored in a
few lines of the L1 cache, which costs two instructions a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.plan import Plan
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.writer import Index

Further: TypeAlias = Callable[[int, Index, Index | int], Index]
"""Returns the index that is a number of iterations after another index of a loop."""
MAX_UNROLLED_OPS = 160
"""Operations, over all vectors of a tile, beyond which a loop replaces the unrolled epilogue."""


def vectors_of_row(plan: Plan, points: Sequence[Point], further: Further) -> int:
    """Return how many of ``points`` form a row, where the epilogue is to be a loop; else 0.

    The rows are adjacent and have equal vectors, and only the first op reduces.
    """
    shared = plan.levels.shared
    first, *rest = plan.ops
    alone = first.reduced and len(first.carried) == 1 and not first.parallel_after(shared)
    simple = all(len(op.reductions) == shared for op in rest)
    if shared < 2 or not (alone and simple) or plan.padding:
        return 0
    if not is_long(rest, len(points)):
        return 0
    k = shared - 2
    begin = points[0].indices[k]
    assert begin is not None
    count = sum(p.indices[k] == begin for p in points)
    row = points[:count]
    wanted = [
        at_row(p, k, r, r * count + n, further)
        for r in range(len(points) // count)
        for n, p in enumerate(row)
    ]
    regular = count < len(points) and wanted == list(points)
    return count if regular and len({p.width for p in row}) == 1 and row[0].width else 0


def is_long(ops: Sequence[Structured], vectors: int) -> bool:
    """Whether ``ops`` at this number of vectors are better written as a loop."""
    return sum(_length(op) for op in ops) * vectors > MAX_UNROLLED_OPS


def at_row(point: Point, k: int, row: Index | int, slot: int, further: Further) -> Point:
    """Return ``point`` moved by ``row`` rows along loop ``k``."""
    begin = point.indices[k]
    assert begin is not None
    return replace(point.bind(k, further(k, begin, row)), slot=slot)


def _length(op: Structured) -> int:
    return 0 if op.body is None else len(op.body.ops)
