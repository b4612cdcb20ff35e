"""The epilogue of a register tile: a loop over the tile's rows where it is long.

The optimiser step after a weight gradient has thirty operations. Unrolled for each of the 24
vectors of a tile, they are most of a program's code and compile time. So the sums are stored in a
few lines of the L1 cache, which costs two instructions a vector.
"""

from __future__ import annotations

from collections.abc import Sequence

from stepwell.lowering.linalg_to_loops.plan import Plan
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.tails import Taken

MAX_UNROLLED_OPS = 160
"""Operations, over all vectors of a tile, beyond which a loop replaces the unrolled epilogue."""


def is_in_rows(plan: Plan, taken: Sequence[Taken]) -> bool:
    """Whether the epilogue is to be a loop over the rows of one step of the shared loops.

    The rows have vectors along the last loop, and only the first op reduces.
    """
    shared = plan.levels.shared
    first, *rest = plan.ops
    alone = first.reduced and len(first.carried) == 1 and not first.parallel_after(shared)
    simple = all(len(op.reductions) == shared for op in rest)
    if shared < 2 or not (alone and simple) or plan.padding:
        return False
    *outer, rows, columns = (some.count for some in taken)
    vectors = taken[-1].width > 1 and columns < taken[-1].size
    regular = rows == taken[-2].size > 1 and vectors and all(count == 1 for count in outer)
    return regular and is_long(rest, rows * columns)


def is_long(ops: Sequence[Structured], vectors: int) -> bool:
    """Whether ``ops`` at this number of vectors are better written as a loop."""
    return sum(_length(op) for op in ops) * vectors > MAX_UNROLLED_OPS


def _length(op: Structured) -> int:
    return 0 if op.body is None else len(op.body.ops)
