"""Refuse levels that no loops are made of, with an explanation."""

from __future__ import annotations

from xdsl.utils.exceptions import VerifyException

from stepwell.analysis.levels.building import rebuilt
from stepwell.analysis.levels.kernel_ops import is_free
from stepwell.analysis.levels.legality import check_nest
from stepwell.analysis.levels.queries import KernelLevels
from stepwell.analysis.levels.stores import check_stores
from stepwell.analysis.levels.tail_rules import check_tails
from stepwell.dialects import kernel
from stepwell.dialects.kernel.levels import PARALLEL, UNROLL, VECTOR, Level, Schedule


def check_levels(function: kernel.FuncOp, schedule: Schedule) -> KernelLevels:
    """Return the facts of a kernel; raise VerifyException where its levels cannot be lowered.

    The levels must be those that are built from these facts: so none is accepted without effect.
    """
    levels = KernelLevels(function, schedule)
    _check_loops(levels)
    check_nest(levels)
    check_tails(levels)
    check_stores(levels)
    if (spelled := rebuilt(levels)) != schedule:
        raise VerifyException(f"no loops can be made so; the nearest are {spelled}")
    return levels


def _check_loops(levels: KernelLevels) -> None:
    """Refuse levels over loops that do not exist, or that cannot run so."""
    schedule, count = levels.schedule, len(levels.ops)
    for number in schedule.ops:
        if number >= count:
            raise VerifyException(f"there is no op {number}: the kernel has {count} with loops")
    own = 0 if count == 1 else len(schedule.levels)
    for number, each in enumerate(levels.all):
        for n, level in enumerate(each):
            _check_loop(levels, level, number, n >= own)


def _check_loop(levels: KernelLevels, level: Level, number: int, own: bool) -> None:
    op, loops = levels.ops[number], levels.loops[number]
    if level.loop >= len(loops):
        if own:
            said = f"there is no loop d{level.loop}, the op has {len(loops)}"
            raise VerifyException(f"'{level}': {said}")
        return
    taken_at_once = level.kind in (UNROLL, VECTOR) and level.step > 1
    if taken_at_once and not loops[level.loop] and not is_free(op, loops):
        raise VerifyException(f"'{level}': iterations of d{level.loop} run in order")
    if level.parts and loops[level.loop]:
        raise VerifyException(f"'{level}': only a sum's loop is cut into parts")
    if level.kind == PARALLEL and not (level.parts or level.loop < levels.shared):
        raise VerifyException(f"'{level}': only loops that all ops share run in parallel")
