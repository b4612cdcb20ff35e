"""Sums in steps that a matrix unit takes, tile by tile."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir.affine import AffineDimExpr

from stepwell.analysis.levels.in_steps import InSteps
from stepwell.analysis.structured import Index
from stepwell.dialects.kernel.dot_tiles import SIDE

STEP_BYTES = 4 * SIDE
"""Bytes of each row that the unit multiplies at once."""


def for_matrix_unit(levels: InSteps, tile: tuple[int, int], row: int) -> bool:
    """Whether tiles of words are a multiple of the size that a matrix unit multiplies.

    Only sums over one loop, in blocks of rows and columns, use the unit; others sum in registers.
    """
    walked = levels.levels[: levels.walked]
    alone = all(x.step == 1 for x in walked if x.loop < row)
    lines = any(x.loop < row for x in walked[levels.splits[0] + 1 :])
    sizes = tile[0] % SIDE == tile[1] % SIDE == 0
    return sizes and alone and not lines and levels.loops.count(False) == 1


def are_rows_of_words(
    index: Index, loops: tuple[int, int], sizes: Sequence[int], bytes: int
) -> bool:
    """Whether a matrix unit may read the operand of the rows in place, without a tail of words.

    loops : that of the rows, and that of the sum
    sizes : those that are multiples of a step: the extent of the sum, and of its parts
    """
    contiguous = list(index[-2:]) == [AffineDimExpr(k) for k in loops]
    return contiguous and all(size > 0 and size * bytes % STEP_BYTES == 0 for size in sizes)
