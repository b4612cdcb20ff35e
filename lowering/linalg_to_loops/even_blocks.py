"""Blocks of rows whose number is known at launch only: blocks of equal length."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from stepwell.lowering.linalg_to_loops.nest import Nest
from stepwell.lowering.linalg_to_loops.writer import Index, Writer

MIN_BLOCKS = 8
"""Blocks that keep a few threads busy (as `block_sizes` counts them)."""
MIN_BLOCK_TILES = 8
"""Row tiles below which a block does not repay packing."""


def even_rows(
    nest: Nest,
    k: int,
    tile: int,
    blocks: Sequence[int],
    counts: list[Index],
    product: Callable[[Index, Index], Index],
) -> Index | None:
    """Return the length of blocks along loop ``k``, where it is computed; set ``counts[k]``.

    The number of row blocks is the smallest that keeps the threads busy together with the blocks of
    other loops, whose numbers ``counts`` has.
    """
    writer, extent = nest.writer, nest.extents[0][k]
    _, high = nest.plan.schedule.lengths.get(k, (0, 0))
    if extent.number is not None or 0 < high <= blocks[k]:
        return None
    others = Index.of(1)
    for n, count in enumerate(counts):
        others = product(others, count) if n != k else others
    fewest = counts[k]
    wanted = writer.divide(
        Index.of(MIN_BLOCKS - 1) + others, _number(writer, others), arith.DivUIOp
    )
    most = writer.divide(
        extent + (MIN_BLOCK_TILES * tile - 1), MIN_BLOCK_TILES * tile, arith.DivUIOp
    )
    runs = writer.maximum(writer.maximum(fewest, writer.minimum(wanted, most)), Index.of(1))
    each = writer.divide(extent + runs + -1, _number(writer, runs), arith.DivUIOp)
    each = writer.divide(each + (tile - 1), tile, arith.DivUIOp) * tile
    each = writer.maximum(each, Index.of(tile))
    counts[k] = writer.divide(extent + each + -1, _number(writer, each), arith.DivUIOp)
    return each


def _number(writer: Writer, index: Index) -> int | SSAValue:
    return index.number or writer.value(index)
