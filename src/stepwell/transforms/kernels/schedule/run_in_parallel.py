"""Choose the parallel loops of a kernel and its grain, the work that is worth a thread."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.linalg import ops as linalg

from stepwell.analysis.levels import Nesting
from stepwell.analysis.structured import is_not_fused
from stepwell.core.machine import Machine
from stepwell.dialects import kernel
from stepwell.transforms.kernels.schedule.beyond import Arguments
from stepwell.transforms.kernels.schedule.pipelined_rows import pipelined_rows
from stepwell.transforms.kernels.schedule.reasons import explain_choice
from stepwell.transforms.kernels.schedule.split_rows import split_sum_over_rows
from stepwell.transforms.kernels.schedule.sums import is_full_reduction
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


def run_in_parallel(
    function: kernel.FuncOp,
    ops: Sequence[Loops],
    nesting: Nesting,
    machine: Machine,
    given: Arguments,
) -> None:
    """Choose the parallel loops and the grain, or the runs of a reduction."""
    shared = nesting.shared
    total = sum(loops.iterations * loops.work for loops in ops)
    dynamic = any(DYNAMIC_INDEX in loops.extents for loops in ops)
    if not shared:
        if (dynamic or total >= MIN_REDUCTION_WORK) and is_full_reduction(ops):
            explain_choice(
                function, lambda: f"reduced in {MIN_PARALLEL_ITERATIONS} runs, which threads share"
            )
            nesting.split = MIN_PARALLEL_ITERATIONS
        return
    plain = nesting.tile == (1, 1) and nesting.band == 1
    if machine.l2 and plain and split_sum_over_rows(function, ops, nesting, machine, given):
        return
    scattered = is_scattered(ops)
    if not dynamic and total < 2 * CHUNK and not scattered:
        explain_choice(function, lambda: f"serial: work of {total:,} is not worth a second thread")
        return
    sizes = ops[0].extents[:shared]
    count, trips = 0, 1
    run = pipelined_rows(ops, nesting, MIN_PARALLEL_ITERATIONS, machine.l1) if machine.l2 else 0
    while count < shared and (trips < busy(machine, MIN_PARALLEL_ITERATIONS) or run):
        trips *= 1 if sizes[count] == DYNAMIC_INDEX else sizes[count]
        count += 1
    nesting.parallel = count
    each = sum(
        loops.work * prod(loops.size(k) for k in range(count, len(loops.extents))) for loops in ops
    )
    grain = -(-CHUNK // max(each, 1))
    known = DYNAMIC_INDEX not in sizes[:count]
    if machine.versions and not run and not scattered and _varies(ops, count):
        grain = 0
    if scattered:
        explain_choice(function, lambda: SCATTERED)
        grain = min(grain, max(trips // MIN_BORDER_RUNS, 1))
    explain_choice(
        function,
        lambda: (
            f"the first {f'{count} shared loops run' if count > 1 else 'shared loop runs'} in "
            f"parallel, {f'{trips:,}' if known else 'only the run knows how many'} iterations, "
            f"of which {grain or 'the launch finds out how many'} are worth a thread"
        ),
    )
    nesting.grain = nesting.grain if nesting.grain > 1 else grain
    if run:
        nesting.pipeline_rows = run
        explain_choice(
            function,
            lambda: f"in runs of {run} rows the first loop of the next runs along with the second",
        )


def is_scattered(ops: Sequence[Loops]) -> bool:
    """Whether a border that consists of many regions is filled."""
    return isinstance(ops[0].op, linalg.FillOp) and is_not_fused(ops[0].op)


def _varies(ops: Sequence[Loops], count: int) -> bool:
    """Whether the work of one iteration of the parallel loops is known at launch only."""
    vectors = ops[0].lanes.axis == count - 1
    return any(DYNAMIC_INDEX in loops.extents[count - vectors :] for loops in ops)
