"""Choose the parallel loops of a kernel and its grain, the work that is worth a thread."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.linalg import ops as linalg

from stepwell.analysis.levels.building import in_parts
from stepwell.analysis.structured import is_not_fused
from stepwell.core.machine import Machine
from stepwell.dialects.kernel.levels import Schedule
from stepwell.transforms.kernels.schedule.beyond import Arguments
from stepwell.transforms.kernels.schedule.nest import Nest
from stepwell.transforms.kernels.schedule.pipelined_rows import pipelined_rows
from stepwell.transforms.kernels.schedule.reasons import explain_choice
from stepwell.transforms.kernels.schedule.split_rows import split_sum_over_rows
from stepwell.transforms.kernels.schedule.vectors import CHUNK, Loops, busy

MIN_PARALLEL_ITERATIONS = 64
"""Parallel iterations that keep a few threads busy: of two, one waits for 2 % of the time at most.
A reduction has this many runs on any machine, because its result depends on their number."""
MIN_REDUCTION_WORK = 1 << 17
"""Work of a reduction that is worth splitting into runs: two threads of two `CHUNK` each."""
MIN_BORDER_RUNS = 8
"""Runs, at least, in which a scattered border is filled, however small it is."""
SCATTERED = "a border in many places is filled by the threads in whose caches the rest lies"
"""The explanation of these runs."""


def run_in_parallel(nest: Nest, machine: Machine, given: Arguments) -> Schedule:
    """Return the levels of a nest with parallel loops and a grain, or of a sum in runs."""
    ops, shared = nest.ops, nest.shared
    total = sum(loops.iterations * loops.work for loops in ops)
    dynamic = any(DYNAMIC_INDEX in loops.extents for loops in ops)
    if not shared:
        if (dynamic or total >= MIN_REDUCTION_WORK) and _is_full_reduction(ops):
            said = f"reduced in {MIN_PARALLEL_ITERATIONS} runs, which threads share"
            explain_choice(nest.function, lambda: said)
            lanes = [loops.lanes for loops in ops]
            return in_parts([loops.op for loops in ops], 0, lanes, MIN_PARALLEL_ITERATIONS)
        return nest.levels()
    if machine.l2 and not nest.steps and (split := split_sum_over_rows(nest, machine, given)):
        return split
    if not dynamic and total < 2 * CHUNK and not is_scattered(ops):
        said = f"serial: work of {total:,} is not worth a second thread"
        explain_choice(nest.function, lambda: said)
        return nest.levels()
    return _in_threads(nest, machine)


def _in_threads(nest: Nest, machine: Machine) -> Schedule:
    """Return the levels with enough of the first loops in parallel to keep threads busy."""
    sizes = nest.ops[0].extents[: nest.shared]
    count, trips = 0, 1
    run = pipelined_rows(nest, MIN_PARALLEL_ITERATIONS, machine.l1) if machine.l2 else 0
    while count < nest.shared and (trips < busy(machine, MIN_PARALLEL_ITERATIONS) or run):
        trips *= 1 if sizes[count] == DYNAMIC_INDEX else sizes[count]
        count += 1
    grain = _grain(nest, count, trips, machine.versions > 0 and not run)
    known = DYNAMIC_INDEX not in sizes[:count]
    explain_choice(
        nest.function,
        lambda: (
            f"the first {f'{count} shared loops run' if count > 1 else 'shared loop runs'} in "
            f"parallel, {f'{trips:,}' if known else 'only the run knows how many'} iterations, "
            f"of which {grain or 'the launch finds out how many'} are worth a thread"
        ),
    )
    if run:
        said = f"in runs of {run} rows the first loop of the next runs along with the second"
        explain_choice(nest.function, lambda: said)
    return nest.in_threads(count, grain, run)


def _grain(nest: Nest, count: int, trips: int, at_launch: bool) -> int:
    """Return the iterations that are worth a thread: of copies into panels, whole panels.

    at_launch : whether it may be counted at launch, where the work of an iteration varies
    """
    ops = nest.ops
    inner = nest.shared if nest.panels else count
    each = sum(
        loops.work * prod(loops.size(k) for k in range(inner, len(loops.extents))) for loops in ops
    )
    if nest.panels:
        return -(-CHUNK // max(each * nest.panels, 1)) * nest.panels
    grain = -(-CHUNK // max(each, 1))
    if is_scattered(ops):
        explain_choice(nest.function, lambda: SCATTERED)
        return min(grain, max(trips // MIN_BORDER_RUNS, 1))
    return 0 if at_launch and _varies(ops, count) else grain


def is_scattered(ops: Sequence[Loops]) -> bool:
    """Whether a border that consists of many regions is filled."""
    return isinstance(ops[0].op, linalg.FillOp) and is_not_fused(ops[0].op)


def _varies(ops: Sequence[Loops], count: int) -> bool:
    """Whether the work of one iteration of the parallel loops is known at launch only."""
    vectors = ops[0].lanes.axis == count - 1
    return any(DYNAMIC_INDEX in loops.extents[count - vectors :] for loops in ops)


def _is_full_reduction(ops: Sequence[Loops]) -> bool:
    """Whether every op is a full reduction by known combiners, or works on the results of these."""
    loops = [each for each in ops if each.parallel]
    return bool(loops) and all(
        each.free and not any(each.parallel) and not each.writes_along for each in loops
    )
