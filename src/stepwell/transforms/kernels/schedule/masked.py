"""End rows of known length under a mask where the cost model predicts a gain.

The end of a row, after whole vectors, takes narrower vectors and single iterations, each of which
computes as long as a whole vector. Under a mask it takes one vector, which is stored in parts: an
op that reads the row again may wait until all of them are written.
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.linalg import ops as linalg

from stepwell.analysis.cost import Predictor
from stepwell.analysis.levels import KernelLevels, Lanes, rebuilt
from stepwell.analysis.levels.kernel_ops import op_extents
from stepwell.analysis.levels.masks import no_mask
from stepwell.analysis.structured import is_not_fused
from stepwell.core.machine import Machine
from stepwell.dialects import kernel
from stepwell.dialects.kernel.levels import MASK, Schedule
from stepwell.transforms.kernels.schedule.reasons import explain_choice
from stepwell.transforms.kernels.schedule.searching import MODEL_ERROR
from stepwell.transforms.kernels.schedule.vectors import MASKED_BITS, at_once, full_lanes, read


def under_masks(function: kernel.FuncOp, schedule: Schedule, machine: Machine) -> Schedule:
    """Return levels whose rows end under masks, or the same levels.

    Rounding depends on the choice, so it is made for one thread whatever their number.
    """
    levels = KernelLevels(function, schedule)
    if not machine.versions or machine.vector_bits < MASKED_BITS or levels.whole_reads:
        return schedule
    lanes = [_masked(levels, number, machine) for number in range(len(levels.lanes))]
    if lanes == list(levels.lanes):
        return schedule
    masked = rebuilt(levels, lanes=lanes)
    predictor = Predictor(function, replace(machine, threads=1, cores=1))
    share = predictor.predict(masked).seconds / predictor.predict(schedule).seconds
    if share > 1 - MODEL_ERROR:
        return schedule
    explain_choice(
        function, lambda: f"rows end under a mask: predicted to take {share:.2f} of the time"
    )
    return masked


def _masked(levels: KernelLevels, number: int, machine: Machine) -> Lanes:
    """Return the vectors of an op, with a mask at the end of its own loop if it can have one.

    What never runs in place ends in a vector that overlaps, which is stored at once.
    """
    op, found = levels.ops[number], levels.lanes[number]
    if found.axis < levels.shared or op_extents(op)[found.axis] == DYNAMIC_INDEX:
        return found
    if isinstance(op, linalg.FillOp) or is_not_fused(op):
        return found
    loops = read(op)
    width, size = full_lanes([loops], machine), loops.size(found.axis)
    while width >= 2 * size:
        width //= 2
    many = at_once(loops, found.axis, width)
    new = Lanes(found.axis, width, many, MASK, found.nontemporal)
    return found if no_mask(levels, number, new) else new
