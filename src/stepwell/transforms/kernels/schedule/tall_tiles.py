"""Offer windows a register tile of more rows and fewer vectors, for the cost model to choose."""

from __future__ import annotations

from dataclasses import replace

from stepwell.analysis.levels.kernel_ops import first_of_rows
from stepwell.analysis.structured import bits_of, element
from stepwell.core.machine import Machine
from stepwell.transforms.kernels.schedule.block_sizes import block_of, tall_tile
from stepwell.transforms.kernels.schedule.contraction import Contraction
from stepwell.transforms.kernels.schedule.vectors import Loops


def with_taller(
    chosen: Contraction, found: Loops, packed: int, shared: int, machine: Machine
) -> Contraction:
    """Return the choice, for a window with one of a taller tile.

    A panel holds all places of a window, so that it comes from the L2 cache for every tile. That
    counts where vectors are computed in one pass; in two, it comes twice as fast as it is used.
    """
    whole = not machine.is_halved and machine.vector_registers >= 32
    along = any(shared - 1 in each.loops for each in found.operands if each.number != packed)
    plain = chosen.pack_rows is None and not along
    if len(found.parallel) <= shared + 1 or not whole or not plain:
        return chosen
    tile = tall_tile(found, shared, chosen.width, machine)
    if tile[1] >= chosen.tile[1]:
        return chosen
    first = first_of_rows(found.where[packed], shared)
    bytes = bits_of(element(found.op.outputs[0])) // 8
    block = block_of(found, first, shared, (tile[0], tile[1] * chosen.width), machine, bytes)
    return replace(chosen, taller=replace(chosen, tile=tile, block=block))
