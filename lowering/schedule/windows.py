"""The register tile of pooling and depthwise convolutions: neighbouring results, side by side.

Each of them combines its own window, feature by feature, so nothing is packed. Results next to
each other read the same elements and the same filters: what one pass through the window loads of
the filters serves a whole tile, and its sums hide how long each takes.
"""

from __future__ import annotations

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir.affine import AffineDimExpr

from stepwell.lowering.schedule.vectors import Loops, Vectors
from stepwell.transforms.structured import indices

ROWS = 8
"""So many results of a row are taken at once, or less to take them evenly."""


def slides(loops: Loops, shared: int) -> bool:
    """Whether an op combines, for each place of the loop before the last shared, its window."""
    if shared < 2 or not loops.free or len(loops.parallel) == shared or loops.contracts:
        return False
    assert isinstance(loops.op, linalg.GenericOp)
    row = shared - 2
    return not any(loops.parallel[shared:]) and any(
        not isinstance(expr, AffineDimExpr)
        and row in (used := expr.used_dims())
        and any(d >= shared for d in used)
        for index in indices(loops.op)[: len(loops.op.inputs)]
        for expr in index
    )


def window_tile(loops: Loops, shared: int, width: int, machine: Vectors) -> tuple[int, int]:
    """Return rows and vectors; beside the tile, registers hold what is read and filters."""
    high, wide = loops.extents[shared - 2], loops.extents[shared - 1]
    most = ROWS if machine.registers >= 32 else ROWS // 2
    rows = most if high == DYNAMIC_INDEX else -(-high // -(-high // most)) if high else 1
    vectors = 2 if wide == DYNAMIC_INDEX or wide >= 2 * width else 1
    return rows, vectors
