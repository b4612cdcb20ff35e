"""End the rows of known length under a mask where the cost model predicts a gain.

What is left of a row after whole vectors takes narrower vectors and single iterations, each of
which computes as long as a whole vector, or one vector of which a mask enables as many lanes as are
left. The next op that reads the row then waits until its stores, of several sizes, are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from xdsl.dialects.builtin import DYNAMIC_INDEX

from stepwell.analysis.cost import Predictor
from stepwell.analysis.levels import KernelLevels, Lanes, rebuilt
from stepwell.analysis.levels.kernel_ops import loops_of, op_extents
from stepwell.analysis.levels.masks import no_mask
from stepwell.core.machine import Machine
from stepwell.dialects import kernel
from stepwell.dialects.kernel.levels import MASK, Schedule
from stepwell.transforms.kernels.schedule.vectors import MASKED_BITS, at_once, full_lanes, read


def under_masks(function: kernel.FuncOp, schedule: Schedule, machine: Machine) -> Schedule:
    """Return levels with masks at the ends of rows, or the same levels."""
    if not machine.versions or machine.vector_bits < MASKED_BITS:
        return schedule
    levels = KernelLevels(function, schedule)
    found = [schedule, *_candidates(levels, machine)]
    if len(found) == 1:
        return schedule
    predictor = Predictor(function, replace(machine, threads=1, cores=1))
    import os
    if os.environ.get("MID"):
        k = int(os.environ["MID"])
        import sys
        print([f"{predictor.predict(x).compute*1e6:.2f}" for x in found], file=sys.stderr)
        return found[min(k, len(found) - 1)]
    return min(found, key=lambda each: predictor.predict(each).seconds)


def _candidates(levels: KernelLevels, machine: Machine) -> Iterator[Schedule]:
    """Yield the levels with masks at the ends of sums, and at the ends of all rows."""
    if levels.in_steps or levels.whole_reads or levels.parts is not None:
        return
    masked = [_masked(levels, number, machine) for number in range(len(levels.lanes))]
    for sums in (True, False):
        lanes = [
            new if not sums or not all(loops_of(op)) else old
            for op, old, new in zip(levels.ops, levels.lanes, masked, strict=True)
        ]
        if lanes != list(levels.lanes):
            yield rebuilt(levels, lanes=lanes)


def _masked(levels: KernelLevels, number: int, machine: Machine) -> Lanes:
    """Return the vectors of an op, with a mask at the end of its own loop if it can have one."""
    op, found = levels.ops[number], levels.lanes[number]
    if found.axis < levels.shared or op_extents(op)[found.axis] == DYNAMIC_INDEX:
        return found
    loops = read(op)
    width, size = full_lanes([loops], machine), loops.size(found.axis)
    while width >= 2 * size:
        width //= 2
    many = at_once(loops, found.axis, width)
    new = Lanes(found.axis, width, many, MASK, found.nontemporal)
    return found if no_mask(levels, number, new) else new
