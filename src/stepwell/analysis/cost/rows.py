"""Cycles for which the ops of a row wait for each other.

Each op of a kernel such as a softmax begins with the result of the one before: of its sum, or of
what it stored. A core hides that as far as its window holds instructions of other rows.

A core forwards what a store has written to a later load, if the store wrote all that it reads.
Where it wrote a part, the load waits until all stores before it are in the cache. That happens at
the end of a row which one op writes in vectors, and the next op reads in others.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2, prod

from stepwell.analysis.cost.compute import Ports
from stepwell.analysis.cost.nest import Nest
from stepwell.core.machine import Machine
from stepwell.dialects.kernel.levels import PEEL


def waits(nests: Sequence[Nest], ports: Sequence[Ports], machine: Machine) -> Ports:
    """Return the cycles in which the ops of a row wait for each other, on one core.

    ports : the cycles of each op
    """
    long = [nest for nest in nests if nest.shared and nest.axis >= nest.shared]
    if len(long) < 2:
        return Ports()
    rows = prod(map(float, nests[0].sizes[: nests[0].shared]))
    instructions = sum(each.instructions for each in ports) * machine.issue / rows
    in_turn = sum(_chain(nest) for nest in nests) * machine.fma_latency
    found = rows * in_turn * min(instructions / machine.window, 1.0)
    known = sum(each.waiting for each in ports)
    return Ports(waiting=max(found - known, 0.0), starts=_forwarding(nests, ports, machine))


def _chain(nest: Nest) -> float:
    """Return the instructions on the dependence chain through an op: its body, and its lanes."""
    combined = log2(nest.width) if nest.axis in nest.sums else 0.0
    return nest.reading.body.chain + 2 * combined


def _forwarding(nests: Sequence[Nest], ports: Sequence[Ports], machine: Machine) -> float:
    """Return the cycles for which loads wait for several stores.

    While the cycles of an op pass, its stores reach the cache.
    """
    found = 0.0
    for number, (nest, each) in enumerate(zip(nests, ports, strict=True)):
        if any(_meets_several(nest, other) for other in nests[number + 1 :]):
            rows = prod(n for k, n in enumerate(nest.sizes) if k != nest.axis)
            found += max(rows * machine.forwarding - each.cycles, 0.0)
    return found


def _meets_several(nest: Nest, other: Nest) -> bool:
    """Whether a vector of ``other`` reads what several stores of ``nest`` have written."""
    if nest.axis < nest.shared or other.axis < other.shared or nest.width == 1:
        return False
    arrays = {a.array for a in nest.accesses if a.written and nest.axis in a.loops}
    reads = (a for a in other.accesses if not a.written and other.axis in a.loops)
    if not nest.sizes[nest.axis] % nest.width or not any(a.array in arrays for a in reads):
        return False
    return nest.tail != PEEL or other.tail != PEEL or other.width > nest.width
