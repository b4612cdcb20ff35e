"""Port cycles of sums that a matrix unit takes, tile by tile."""

from __future__ import annotations

from stepwell.analysis.cost.compute import Ports
from stepwell.analysis.cost.nest import Nest
from stepwell.core.dot_instructions import PER_FMA_OF_TILES, WORD
from stepwell.core.machine import Machine
from stepwell.dialects.kernel.dot_tiles import SIDE

LOADS_OF_TILES = 1 / SIDE
"""Loads for each vector of words that the unit multiplies: four tiles of 16 vectors are loaded for
four products of 16 rows and 16 words."""


def on_unit(nest: Nest, ports: Ports, machine: Machine) -> Ports:
    """Return the port cycles of a sum, given those of the same multiply-adds in registers.

    The casts of the elements are part of the instruction.
    """
    words = [pack.access.bytes for pack in nest.packs if pack.how == "dot"]
    sizes = [nest.units.get(k, 1) for k in (nest.axis - 1, nest.axis)]
    if not words or len(words) < len(nest.packs) or any(size % SIDE for size in sizes):
        return ports
    multiplied = ports.multiply_adds * words[0] / (WORD // 8)
    loads = multiplied * machine.fma_ports * LOADS_OF_TILES / machine.load_ports
    return Ports(multiplied / PER_FMA_OF_TILES, loads=loads, stores=ports.stores)
