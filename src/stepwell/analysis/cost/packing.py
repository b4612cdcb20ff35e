"""Cycles of packing: each element is loaded and stored once more, and waited for.

A pass that packs waits for memory, because a core's window is much shorter than the pass. If lines
are prefetched while tiles compute, or packed by the first tile that reads them, the wait is hidden
as long as the buffers for misses are free again before the tile needs them: each line from a
distant level holds one for that level's latency. Otherwise the tile waits for a buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2, prod

from stepwell.analysis.cost.compute import Ports
from stepwell.analysis.cost.memory import PREFETCHED_LINES, Source, overlapped
from stepwell.analysis.cost.nest import Nest, Pack
from stepwell.analysis.levels.queries import DOUBLE_BUFFERED
from stepwell.core.machine import Machine


def cycles_of(nest: Nest, ports: Ports, sources: Sequence[Source], machine: Machine) -> float:
    """Return the cycles of all packing of an op, on one core.

    ports : cycles of the rest of the op
    """
    step, total = ports.cycles / max(ports.points, 1.0), 0.0
    for pack in nest.packs:
        each = _ports(nest, pack, machine) + _waiting(nest, pack, step, sources, machine)
        if pack.how == DOUBLE_BUFFERED:  # beside the tiles, but for the first part of a block
            parts = max(nest.steps[pack.depth - 1].trips, 1.0)
            beside = (1 - 1 / parts) * each
            each += overlapped(ports.cycles, beside) - ports.cycles - beside
        total += each
    return total


def _ports(nest: Nest, pack: Pack, machine: Machine) -> float:
    ranges = nest.ranges(pack.depth)
    elements = prod((ranges[k] for k in pack.access.loops), start=1.0)
    elements *= nest.repeats(pack.depth, pack.access)
    passes = elements * pack.access.bytes * 8 / machine.unit_bits
    stores = (passes + _tail(nest, pack, elements, machine)) / machine.store_ports
    if pack.how == "first":  # packed by the tile that reads it first, which loads it anyway
        return stores
    loads = passes / machine.load_ports
    if nest.axis in pack.access.loops and pack.access.stride(nest.axis) != 1:
        loads += passes * log2(nest.width) / machine.shuffle_ports  # transposed through registers
    return max(stores, loads)


def _tail(nest: Nest, pack: Pack, elements: float, machine: Machine) -> float:
    """Return the stores of the last columns: zeros fill a panel, single elements are copied."""
    size, panel = nest.sizes[nest.axis], nest.units.get(nest.axis, 1)
    panel = -(-panel // nest.width) * nest.width
    if nest.axis not in pack.access.loops or not size % panel:
        return 0.0
    zeros = panel * pack.access.bytes * 8 / machine.unit_bits
    return elements / size * (zeros + size % nest.width)


def _waiting(
    nest: Nest, pack: Pack, step: float, sources: Sequence[Source], machine: Machine
) -> float:
    """Return the cycles in which packing waits for memory."""
    near, line = sources[0], machine.l1_line
    columns = nest.units.get(nest.axis, 1) if nest.axis in pack.access.loops else 1
    at_once = max(columns * pack.access.bytes / line, 1.0)
    run = max(pack.access.run(nest.ranges(pack.depth)), line)
    total = 0.0
    for source in sources:
        lines = source.missed.packed.get(pack.access, 0.0) / line
        held, each = source.latency / machine.misses, line / source.bytes
        if nest.prefetches and source is not near:
            late = max(held - step, 0.0)
            total += lines * late
            if not late:  # prefetched in time, it comes from the nearest level
                held, each = near.latency / machine.misses, line / near.bytes
        if pack.how == "first":
            total += lines / at_once * max(at_once * max(held, each) - step, 0.0)
        elif pack.how == DOUBLE_BUFFERED:  # between instructions of tiles few loads are in flight
            start = min(PREFETCHED_LINES * line / run, 1.0)
            total += lines * (each + start * max(held - each, 0.0))
        else:
            total += lines * each
    return total
