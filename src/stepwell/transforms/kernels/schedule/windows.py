"""The register tile of pooling and depthwise convolutions: neighbouring results, side by side.

Each of them combines its own window, feature by feature, so nothing is packed. Results next to
each other read the same elements and the same filters: what one pass through the window loads of
the filters serves a whole tile, and its sums hide how long each takes.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir.affine import AffineDimExpr

from stepwell.analysis.structured import indices
from stepwell.transforms.kernels.schedule.vectors import Loops, Vectors

WRITTEN = 400
"""So many steps of all sums of a tile may be written out: as much code as the first cache likes."""
FEWEST = 3
"""So few rows of results still share enough of what they read."""
ROWS = 8
"""So many results of a row are taken at once, or less to take them evenly."""


def slides(loops: Loops, shared: int) -> bool:
    """Whether an op combines, for each place of the last shared loops, its own window."""
    if shared < 2 or not loops.free or len(loops.parallel) == shared or loops.contracts:
        return False
    own = not any(loops.parallel[shared:])
    return own and any(_slides_along(loops, shared, k) for k in (shared - 2, shared - 1))


def _slides_along(loops: Loops, shared: int, loop: int) -> bool:
    """Whether the window that an op combines moves with ``loop``."""
    assert isinstance(loops.op, linalg.GenericOp)
    return any(
        not isinstance(expr, AffineDimExpr)
        and loop in (used := expr.used_dims())
        and any(d >= shared for d in used)
        for index in indices(loops.op)[: len(loops.op.inputs)]
        for expr in index
    )


def window_tile(loops: Loops, shared: int, width: int, machine: Vectors) -> tuple[int, int]:
    """Return rows and vectors; beside the tile, registers hold what is read and filters.

    Where the window slides along the vectors too, rows share more than vectors do.
    """
    high, wide = loops.extents[shared - 2], loops.extents[shared - 1]
    most = ROWS if machine.registers >= 32 else ROWS // 2
    along = _slides_along(loops, shared, shared - 1)
    if along and (steps := _steps(loops, shared)) and WRITTEN // steps >= FEWEST:
        most = min(most, WRITTEN // steps)
    rows = most if high == DYNAMIC_INDEX else -(-high // -(-high // most)) if high else 1
    vectors = 2 if not along and (wide == DYNAMIC_INDEX or wide >= 2 * width) else 1
    return rows, vectors


def written_out(loops: Loops, shared: int, tile: tuple[int, int]) -> bool:
    """Whether the steps of the window are written out, for rows of the tile to share what is read.

    What is row r of the window of one result is row r + 1 of that of the result before. It matters
    where the window slides along the vectors too, which then seldom lie in one line of the cache.
    """
    steps = _steps(loops, shared)
    along = _slides_along(loops, shared, shared - 1)
    return along and steps > 1 and steps * tile[0] * tile[1] <= WRITTEN


def _steps(loops: Loops, shared: int) -> int:
    """Return how many elements the window has, 0 where only the run knows."""
    steps = loops.extents[shared:]
    return 0 if DYNAMIC_INDEX in steps else prod(steps)
