"""Search blocks near those that the rules choose, compared by the cost model.

The rules choose a register tile and blocks for a core; they see little of how evenly threads share
the blocks. Where threads would wait for each other, the cost model predicts nearby tiles and
blocks, and one that gains more than the model's own error is taken. Depths stay, because results
depend on them: rounding must not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from math import ceil

from xdsl.dialects.builtin import DYNAMIC_INDEX

from stepwell.analysis.cost import Predictor
from stepwell.analysis.cost.accesses import ASSUMED, assumed, assuming
from stepwell.analysis.cost.nest import loop_sizes, nests_of, readings_of
from stepwell.analysis.cost.parallel import shares_of
from stepwell.analysis.levels import KernelLevels, loop_ops
from stepwell.analysis.levels.building import edited, packing_before, without_prefetch
from stepwell.analysis.structured import shape
from stepwell.core.machine import Machine
from stepwell.core.remembering import Remembered
from stepwell.dialects import kernel
from stepwell.dialects.kernel.levels import Schedule
from stepwell.transforms.kernels.schedule.beyond import Arguments
from stepwell.transforms.kernels.schedule.locked import kernel_key
from stepwell.transforms.kernels.schedule.nest import Nest
from stepwell.transforms.kernels.schedule.reasons import explain_choice
from stepwell.transforms.kernels.schedule.variants import variants

MODEL_ERROR = 0.1
"""The model's median error, rounded up (docs/predicted.md): a smaller predicted gain does not
count."""
MIN_IMBALANCE = 1 + MODEL_ERROR / 2
"""Ratio of the longest thread's time to an even share below which no more than half of the model's
error can be gained."""
MAX_PREDICTIONS = 48
"""Predictions for one kernel: ten to twenty milliseconds (`python bench/predicted.py --speed`)."""

LIKELY_SIZES = (ASSUMED // 4, ASSUMED, 4 * ASSUMED)
"""Unknown sizes for which two schedules are compared: the assumed one, a part of a block of as many
rows, and several blocks."""

USUAL = "vector_bits=512,vector_registers=32,fma=1,threads=2,l3=32M"
"""The machine of a `schedule` that is told of none: one with wide vectors, for tests."""
MARKS_MARGIN = 0.01
"""The part of the time that dropping prefetches, or packing apart from tiles, must gain: misses of
the TLB, which both hide, are in no term, and take up to this part (a line in 64, of one page)."""

_found = Remembered[Schedule | None](1 << 12)
"""The search results by kernel and machine: as many as a large program has kernels."""


@lru_cache(64)
def machine_of(described: str) -> Machine:
    """Return the machine that the option of `schedule` describes; by default a usual one."""
    return Machine().override(described or USUAL, "schedule")


def improve(function: kernel.FuncOp, schedule: Schedule, machine: Machine) -> Schedule:
    """Return better blocks for the kernel of one contraction, or the same."""
    levels = KernelLevels(function, schedule)
    several = machine.threads > 1 and machine.kind == "cpu"
    if not several or not levels.blocks or not all_known(function):
        return schedule
    nests = nests_of(readings_of(function, machine.fma, assumed), schedule)
    if shares_of(nests, machine).longest * min(machine.threads, machine.cores) <= MIN_IMBALANCE:
        return schedule
    key = kernel_key(function), machine
    return _found.get(key, lambda: _better(levels, machine)) or schedule


def drop_marks(
    function: kernel.FuncOp, schedule: Schedule, machine: Machine, given: Arguments
) -> Schedule:
    """Pack before the tiles, and do not prefetch, where tiles would wait for memory.

    No result depends on these actions. What is packed once for all calls has the marks of panels.
    """
    levels = KernelLevels(function, schedule)
    sums = [levels.ops[n] for n in levels.sums]
    ready = any(given.is_ready(op.operands[k]) for op in sums for k in levels.packs)
    if ready or not levels.blocks or not ("first" in levels.packs.values() or levels.prefetch):
        return schedule
    predictor = Predictor(function, replace(machine, threads=1, cores=1))

    def seconds(near: Schedule) -> float:
        return predictor.predict(near).seconds

    plain = edited(levels, packing_before, without_prefetch)
    whole, least = seconds(schedule), seconds(plain)
    if least > (1 - MARKS_MARGIN) * whole:
        return schedule
    best = min(
        (plain, edited(levels, packing_before), edited(levels, without_prefetch)), key=seconds
    )
    share, kept = whole / seconds(best), KernelLevels(function, best)
    gone = [
        *([] if "first" in kept.packs.values() else ["packed while a tile computes"]),
        *([] if kept.prefetch else ["asked for before"]),
    ]
    said = f"nothing is {', nor '.join(gone)}: tiles would wait for memory, {share:.2f} of the time"
    explain_choice(function, lambda: said)
    return best


def is_faster(
    function: kernel.FuncOp,
    tiled: Schedule,
    packed: Schedule,
    machine: Machine,
    given: Arguments,
    part: float,
) -> bool:
    """Whether tiles that read operands in place are better than blocks that pack one.

    Where sizes are unknown, blocks must gain more at some size than they lose at any other.

    part : of the time of the tiles that blocks must not exceed
    """
    shares: list[float] = []
    for size in (ASSUMED,) if all_known(function) else LIKELY_SIZES:
        predictor = Predictor(function, machine, assuming(size), unaligned=given.unaligned)
        first, second = predictor.predict(tiled), predictor.predict(packed)
        shares.append(first.seconds / second.seconds)
    share = max(shares) * min(1, *shares)
    if share * part >= 1:
        return False
    near = ", within the model's error" if share > 1 else ""
    said = f"read where they lie, operands take {share:.2f} of the time of blocks that pack one"
    explain_choice(function, lambda: said + near)
    return True


def is_taller_better(
    function: kernel.FuncOp, usual: Schedule, tall: Schedule, machine: Machine
) -> bool:
    """Whether the model predicts that a taller register tile gains.

    Both have the same operands and packing, so that half of the model's error is gain enough.
    Depths differ, on which results depend, so this is asked for one thread whatever their number:
    both schedules are those of one thread.
    """
    if not all_known(function):
        return False
    predictor = Predictor(function, replace(machine, threads=1, cores=1))
    share = predictor.predict(tall).seconds / predictor.predict(usual).seconds
    if share > 1 - MODEL_ERROR / 2:
        return False
    said = "a taller tile reads less of the packed panel for each multiply-add"
    explain_choice(function, lambda: f"{said}: predicted to take {share:.2f} of the time")
    return True


def all_known(function: kernel.FuncOp) -> bool:
    """Whether all sizes of a kernel are known."""
    return all(DYNAMIC_INDEX not in shape(v) for op in loop_ops(function) for v in op.operands)


def stay_alone(nest: Nest, schedule: Schedule, machine: Machine) -> Schedule:
    """Return serial levels for a kernel without blocks if several threads are not faster.

    A kernel with enough work to take longer than ten launches is left as it is.
    """
    work = sum(loops.iterations * loops.work for loops in nest.ops)
    a_nanosecond = machine.issue * machine.full_lanes(32) * machine.clock / 1000
    if work > 10 * machine.launch * a_nanosecond:
        return schedule
    function, levels = nest.function, KernelLevels(nest.function, schedule)
    several = machine.threads > 1 and machine.kind == "cpu" and levels.parallel
    if not several or not all_known(function) or levels.pipeline_rows:
        return schedule
    predictor = Predictor(function, machine)
    together = predictor.predict(schedule)
    if together.threads < 2:
        return schedule
    serial = nest.levels()
    alone = predictor.predict(serial)
    if together.seconds <= (1 - MODEL_ERROR) * alone.seconds:
        return schedule
    share = together.seconds / alone.seconds
    said = f"serial after all: {together.threads} threads would take {share:.2f} of the time"
    explain_choice(function, lambda: said)
    return serial


def _better(levels: KernelLevels, machine: Machine) -> Schedule | None:
    """Return the nearby schedule with the best prediction; None where this one is good enough."""
    function = levels.function
    predictor = Predictor(function, machine)
    before = predictor.predict(levels.schedule)
    rows = loop_sizes(levels.ops[0], assumed)[levels.shared - 2]
    near = islice(_near(levels, rows, machine), MAX_PREDICTIONS)
    found = [(predictor.predict(each), each) for each in near]
    best, chosen = min(found, key=lambda pair: pair[0].seconds, default=(before, levels.schedule))
    if best.seconds > (1 - MODEL_ERROR) * before.seconds:
        return None
    explain_choice(
        function,
        lambda: (
            f"the blocks are such that {best.threads} threads share them evenly: predicted to take "
            f"{best.seconds / before.seconds:.2f} of the time"
        ),
    )
    return chosen


def _near(levels: KernelLevels, rows: int, machine: Machine) -> Iterator[Schedule]:
    """Yield schedules of another tile, or of other blocks of the same depth.

    They have no more blocks of rows, because each packs the operand of its rows.
    """
    *_, most, _, deep = levels.blocks
    for several in variants(levels, machine):
        for each in several:
            *_, high, _, depth = KernelLevels(levels.function, each).blocks
            if depth == deep and ceil(rows / high) <= ceil(rows / most):
                yield each
