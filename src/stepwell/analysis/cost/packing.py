"""Cycles of packing: each element is loaded and stored once more."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2, prod

from stepwell.analysis.cost.nest import Nest, Pack
from stepwell.core.machine import Machine


def cycles_of(nests: Sequence[Nest], machine: Machine) -> float:
    """Return the cycles of all packing, on one core."""
    return sum(_of(nest, pack, machine) for nest in nests for pack in nest.packs)


def _of(nest: Nest, pack: Pack, machine: Machine) -> float:
    ranges, outside = nest.ranges(pack.depth), nest.steps[: pack.depth]
    elements = prod((ranges[k] for k in pack.access.loops), start=1.0)
    elements *= prod((step.trips for step in outside), start=1.0)
    passes = elements * pack.access.bytes * 8 / machine.unit_bits
    stores = passes / machine.store_ports
    if pack.how == "first":  # packed by the tile that reads it first, which loads it anyway
        return stores
    loads = passes / machine.load_ports
    if nest.axis in pack.access.loops and pack.access.stride(nest.axis) != 1:
        loads += passes * log2(nest.width) / machine.shuffle_ports  # transposed through registers
    return max(stores, loads)
