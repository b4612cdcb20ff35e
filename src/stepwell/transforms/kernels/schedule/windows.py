"""Choose the register tile of pooling and depthwise convolutions.

Each result combines its own window, feature by feature, so nothing is packed. Neighbouring results
read the same elements and filters: each load of a filter element serves a whole tile, whose
independent sums hide their latency.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir.affine import AffineDimExpr

from stepwell.analysis.structured import coefficient
from stepwell.core.machine import Machine
from stepwell.transforms.kernels.schedule.vectors import Loops

MAX_UNROLLED_STEPS = 400
"""Steps of all sums of a tile that may be unrolled: the code stays within the L1 cache."""
MIN_ROWS = 3
"""Rows of results, at least, that share enough of their reads."""
MAX_ROWS = 8
"""Results of a row that a tile takes at once, or fewer to divide the row evenly."""


def slides(loops: Loops, shared: int) -> bool:
    """Whether an op combines, for each place of the last shared loops, its own window."""
    if shared < 2 or not loops.free or len(loops.parallel) == shared or loops.contracts:
        return False
    own = not any(loops.parallel[shared:])
    return own and any(_slides_along(loops, shared, k) for k in (shared - 2, shared - 1))


def _slides_along(loops: Loops, shared: int, loop: int) -> bool:
    """Whether the window that an op combines moves with ``loop``."""
    return any(
        not isinstance(expr, AffineDimExpr)
        and loop in (used := expr.used_dims())
        and any(d >= shared for d in used)
        for index in loops.where[: len(loops.op.inputs)]
        for expr in index
    )


def window_tile(loops: Loops, shared: int, width: int, machine: Machine) -> tuple[int, int]:
    """Return rows and vectors; registers also hold the loaded elements and filters.

    Where the window slides along the vectors too, rows share more than vectors do.
    """
    high, wide = loops.extents[shared - 2], loops.extents[shared - 1]
    most = MAX_ROWS if machine.vector_registers >= 32 else MAX_ROWS // 2
    along = _slides_along(loops, shared, shared - 1)
    if along and (steps := _steps(loops, shared)) and MAX_UNROLLED_STEPS // steps >= MIN_ROWS:
        most = min(most, MAX_UNROLLED_STEPS // steps)
    if high == DYNAMIC_INDEX:  # rows beyond the end are computed in vain
        rows = max(most // _step(loops, shared - 2), 1)
    else:
        rows = -(-high // -(-high // most)) if high else 1
    vectors = 2 if not along and (wide == DYNAMIC_INDEX or wide >= 2 * width) else 1
    return rows, vectors


def _step(loops: Loops, loop: int) -> int:
    """Return the rows of the image between the windows of two rows of results, at least 1."""
    inputs = loops.where[: len(loops.op.inputs)]
    return max((coefficient(e, loop) or 0 for index in inputs for e in index), default=1) or 1


def written_out(loops: Loops, shared: int, tile: tuple[int, int]) -> Sequence[int]:
    """Return the loops of the window that are unrolled, so that rows of the tile share loads.

    Neighbouring results share all but one row of their windows. It matters where the window slides
    along the vectors too, which are then seldom aligned to a cache line.
    """
    steps = _steps(loops, shared)
    along = _slides_along(loops, shared, shared - 1)
    some = along and steps > 1 and steps * tile[0] * tile[1] <= MAX_UNROLLED_STEPS
    return range(shared, len(loops.extents)) if some else ()


def _steps(loops: Loops, shared: int) -> int:
    """Return the elements of the window, 0 where they are known at run time only."""
    steps = loops.extents[shared:]
    return 0 if DYNAMIC_INDEX in steps else prod(steps)
