"""Choose whether blocks prefetch what they read next, and whether their first tile packs it."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX

from stepwell.analysis.levels.kernel_ops import first_of_rows
from stepwell.analysis.structured import bits_of, element
from stepwell.core.machine import Machine
from stepwell.transforms.kernels.schedule.contraction import Contraction
from stepwell.transforms.kernels.schedule.vectors import Loops, stride


def with_marks(
    chosen: Contraction, found: Loops, packed: int, shared: int, machine: Machine, free: bool
) -> Contraction:
    """Return the choice of blocks with the actions on the operand of the columns.

    free : whether it is packed once for all calls
    """
    each = bits_of(element(found.op.operands[packed])) // 8
    varies = next(x.loops for x in found.operands if x.number == packed)
    bytes = each * prod(found.size(k) for k in varies if k >= shared - 1)
    if free:
        first = first_of_rows(found.where[packed], shared)
        rows = found.extents[first : shared - 1]
        several = DYNAMIC_INDEX in rows or prod(rows) > chosen.tile[0]
        row = chosen.tile[1] * chosen.width * each
        waits = several and bytes > machine.l2 and is_waited_for(chosen.tile, row, machine)
        return replace(chosen, prefetch=waits)
    simple = _in_rows(found, packed, shared, chosen.tile[1] * chosen.width)
    return replace(chosen, pack_columns="first" if simple else "", prefetch=bytes >= machine.l2)


def is_waited_for(tile: tuple[int, int], row: int, machine: Machine) -> bool:
    """Whether a tile computes with a row of a panel faster than the last cache delivers the next.

    Hardware prefetches panels, but the first tile that reads one then waits, unless the tiles
    before have prefetched it.

    tile : its rows and vectors
    row : the bytes of a row of the panel
    """
    return row * machine.clock / machine.l3_rate > tile[0] * tile[1] / machine.fma_rate


def _in_rows(found: Loops, packed: int, shared: int, columns: int) -> bool:
    """Whether the columns are contiguous and form whole panels."""
    wide = found.extents[shared - 1]
    whole = wide != DYNAMIC_INDEX and wide % columns == 0
    return whole and stride(found.where[packed], shared - 1) == 1
