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

from stepwell.analysis.cost import Breakdown, Predictor
from stepwell.analysis.cost.accesses import assumed
from stepwell.analysis.cost.nest import loop_sizes, nests_of, readings_of
from stepwell.analysis.cost.parallel import shares_of
from stepwell.analysis.levels import Nesting, levels_of, loop_ops, write_nesting
from stepwell.analysis.structured import shape
from stepwell.core.machine import Machine
from stepwell.dialects import kernel
from stepwell.transforms.kernels.schedule.locked import kernel_key
from stepwell.transforms.kernels.schedule.reasons import explain_choice
from stepwell.transforms.kernels.schedule.variants import variants

MODEL_ERROR = 0.1
"""The model's median error, rounded up (docs/predicted.md): a smaller predicted gain does not
count."""
MIN_IMBALANCE = 1 + MODEL_ERROR / 2
"""Ratio of the longest thread's time to an even share below which no more than half of the model's
error can be gained."""
MAX_WORK_PER_NS = 400
"""Additions and accesses of a core in a nanosecond, at most: six instructions a cycle, of 16
elements each, at 4 GHz."""
MAX_PREDICTIONS = 48
"""Predictions for one kernel: ten to twenty milliseconds (`python bench/predicted.py --speed`)."""

USUAL = "vector_bits=512,vector_registers=32,fma=1,threads=2,l3=32M"
"""The machine of a `schedule` that is told of none: one with wide vectors, for tests."""
MARKS_MARGIN = 0.01
"""The part of the time that dropping prefetches, or packing apart from tiles, must gain: misses of
the TLB, which both hide, are in no term, and take up to this part (a line in 64, of one page)."""

_found: dict[tuple[str, Machine], Nesting | None] = {}
"""The search results of this process, by kernel and machine."""


@lru_cache(64)
def machine_of(described: str) -> Machine:
    """Return the machine that the option of `schedule` describes; by default a usual one."""
    return Machine().override(described or USUAL, "schedule")


def improve(function: kernel.FuncOp, nesting: Nesting, machine: Machine) -> None:
    """Write better blocks on the kernel of one contraction, whose levels are ``nesting``."""
    if (
        machine.threads < 2
        or machine.kind != "cpu"
        or not nesting.blocks
        or not all_known(function)
    ):
        return
    readings = readings_of(function, machine.fma, assumed)
    nests = nests_of(readings, levels_of(function, nesting))
    if shares_of(nests, machine).longest * min(machine.threads, machine.cores) <= MIN_IMBALANCE:
        return
    key = kernel_key(function), machine
    if key not in _found:
        _found[key] = _better(function, nesting, machine)
    if (found := _found[key]) is not None:
        write_nesting(function, found)


def drop_marks(function: kernel.FuncOp, nesting: Nesting, machine: Machine) -> bool:
    """Pack before the tiles, and do not prefetch, where tiles would wait for memory.

    Returns whether a mark is gone. No result depends on them.
    """
    if not nesting.blocks or not (nesting.pack_first or nesting.prefetch):
        return False
    predictor = Predictor(function, replace(machine, threads=1, cores=1))

    def seconds(near: Nesting) -> float:
        return predictor.predict(levels_of(function, near)).seconds

    plain = replace(nesting, pack_first=False, prefetch=0)
    whole, least = seconds(nesting), seconds(plain)
    if least > (1 - MARKS_MARGIN) * whole:
        return False
    singles = replace(nesting, pack_first=False), replace(nesting, prefetch=0)
    best = min((plain, *singles), key=seconds)
    share = whole / seconds(best)
    gone = [
        *([] if best.pack_first else ["packed while a tile computes"]),
        *([] if best.prefetch else ["asked for before"]),
    ]
    said = f"nothing is {', nor '.join(gone)}: tiles would wait for memory, {share:.2f} of the time"
    explain_choice(function, lambda: said)
    nesting.pack_first, nesting.prefetch = best.pack_first, best.prefetch
    return True


def is_faster(function: kernel.FuncOp, tiled: Nesting, packed: Nesting, machine: Machine) -> bool:
    """Whether tiles that read operands in place take less time than blocks that pack one."""
    predictor = Predictor(function, machine)
    first, second = (predictor.predict(levels_of(function, each)) for each in (tiled, packed))
    if first.seconds >= second.seconds:
        return False
    said = f"read where they lie, operands take {first.seconds / second.seconds:.2f} of the time"
    explain_choice(function, lambda: f"{said} of blocks that pack one")
    return True


def all_known(function: kernel.FuncOp) -> bool:
    """Whether all sizes of a kernel are known."""
    return all(DYNAMIC_INDEX not in shape(v) for op in loop_ops(function) for v in op.operands)


def stay_alone(function: kernel.FuncOp, nesting: Nesting, work: int, machine: Machine) -> None:
    """Make a kernel without blocks serial if several threads are not faster.

    work : additions and accesses; a kernel with enough work to take longer than ten launches is
    left as it is
    """
    if work > 10 * machine.launch * MAX_WORK_PER_NS:
        return
    if (
        machine.threads < 2
        or machine.kind != "cpu"
        or not nesting.parallel
        or not all_known(function)
    ):
        return
    predictor = Predictor(function, machine)
    together = predictor.predict(levels_of(function, nesting))
    if together.threads < 2 or nesting.pipeline_rows:
        return
    serial = replace(nesting, parallel=0, steps=(), grain=1)
    alone = predictor.predict(levels_of(function, serial))
    if together.seconds > (1 - MODEL_ERROR) * alone.seconds:
        share = together.seconds / alone.seconds
        said = f"serial after all: {together.threads} threads would take {share:.2f} of the time"
        explain_choice(function, lambda: said)
        write_nesting(function, serial)


def _better(function: kernel.FuncOp, nesting: Nesting, machine: Machine) -> Nesting | None:
    """Return the nearby schedule with the best prediction; None where this one is good enough."""

    predictor = Predictor(function, machine)

    def predicted(near: Nesting) -> Breakdown:
        return predictor.predict(levels_of(function, near))

    before = predicted(nesting)
    rows = loop_sizes(loop_ops(function)[0], assumed)[nesting.shared - 2]
    near = islice(_near(nesting, rows, machine), MAX_PREDICTIONS)
    found = [(predicted(each), each) for each in near]
    best, chosen = min(found, key=lambda pair: pair[0].seconds, default=(before, nesting))
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


def _near(nesting: Nesting, rows: int, machine: Machine) -> Iterator[Nesting]:
    """Yield schedules of another tile, or of other blocks of the same depth.

    They have no more blocks of rows, because each packs the operand of its rows.
    """
    *_, most, _, deep = nesting.blocks
    for several in variants(nesting, machine):
        for each in several:
            *_, high, _, depth = each.blocks
            if depth == deep and ceil(rows / high) <= ceil(rows / most):
                yield each
