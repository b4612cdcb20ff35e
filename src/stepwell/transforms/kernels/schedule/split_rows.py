"""Choose the number of parallel runs of a sum over rows, where columns are few."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX

from stepwell.analysis.levels import Lanes
from stepwell.analysis.levels.building import in_parts
from stepwell.analysis.structured import bytes_of, dims_of
from stepwell.core.machine import Machine
from stepwell.dialects.kernel.levels import Schedule
from stepwell.transforms.kernels.schedule.beyond import Arguments, is_beyond, stays
from stepwell.transforms.kernels.schedule.block_sizes import MIN_L2_BYTES
from stepwell.transforms.kernels.schedule.nest import Nest
from stepwell.transforms.kernels.schedule.reasons import explain_choice
from stepwell.transforms.kernels.schedule.vectors import Loops, sums_rows

MAX_RUNS = 64
"""Runs that keep every thread busy."""
PARTIALS_L2_DIVISOR = 8
"""The part of the L2 cache, 1/8, that the sums of all runs may take; the rows go through the rest.
"""
MIN_RUNS = 8
"""Runs below which a split does not pay."""
MIN_RUN_ROWS = 16
"""Rows of a run below which a split does not pay. Rows that come from memory are then split into
fewer runs: columns by columns they are short runs, and nothing prefetches them (768 x 768 of bf16
take 0.7 of the time, of f32 0.83; Granite Rapids). From the caches that gains nothing."""
MIN_ELEMENTS = 1 << 19
"""Elements below which a split does not pay."""


MIN_ROW_BYTES = 1 << 8
"""Bytes of a row below which hardware prefetches several rows as one run."""
VECTORS_AT_ONCE = 2
"""Vectors of each row that are accumulated in registers at a time."""


def split_sum_over_rows(nest: Nest, machine: Machine, given: Arguments) -> Schedule | None:
    """Return the levels of a sum over rows that is split into runs; None if that does not pay."""
    ops, shared = nest.ops, nest.shared
    most = max(machine.l2, MIN_L2_BYTES) // PARTIALS_L2_DIVISOR
    runs = _runs(ops, shared, most, machine, given)
    if not runs:
        return None
    for loops in ops:
        loops.lanes = Lanes(0, loops.lanes.width, min(loops.lanes.many, VECTORS_AT_ONCE))
    why = f"summed in {runs} runs of rows, read from end to end, for threads to share"
    explain_choice(nest.function, lambda: why)
    lanes, far = [loops.lanes for loops in ops], _wants_prefetch(ops, machine, given)
    return in_parts([loops.op for loops in ops], shared, lanes, runs, machine.streams, int(far))


def _wants_prefetch(ops: Sequence[Loops], machine: Machine, given: Arguments) -> bool:
    """Whether rows are long enough to prefetch, and come from memory."""
    (loops,) = [loops for loops in ops if not all(loops.parallel)]
    row, distance = _rows(loops, given)
    return row >= MIN_ROW_BYTES and is_beyond(loops.op, distance, machine)


def _rows(loops: Loops, given: Arguments) -> tuple[int, float]:
    """Return the bytes of a row of the widest operand, and those between two uses of its rows."""
    read = [each.value for each in loops.operands if 0 in each.loops]
    if not read:
        return 0, 0.0
    widest = max(read, key=bytes_of)
    each = bytes_of(widest)
    bytes = each * prod(loops.size(k) for k in range(len(loops.extents)))
    return each * loops.size(0), given.distance(widest, bytes)


def _runs(ops: Sequence[Loops], shared: int, most: int, machine: Machine, given: Arguments) -> int:
    """Return the number of runs; 0 where threads share the columns.

    most : bytes that the sums of all runs may take
    """
    sums = [loops for loops in ops if not all(loops.parallel)]
    if shared != 1 or len(sums) != 1 or any(any(loops.parallel[1:]) for loops in ops):
        return 0
    (loops,) = sums
    if not loops.free or not sums_rows(loops, 0):
        return 0
    results = loops.where[len(loops.op.inputs) :]
    if loops.lanes.axis != 0 or any(dims_of(index) - {0} for index in results):
        return 0
    columns, rows = loops.extents[0], loops.size(1)
    size = sum(map(bytes_of, loops.op.outputs))
    if columns == DYNAMIC_INDEX or loops.extents[1] == DYNAMIC_INDEX:
        return 0
    runs = min(MAX_RUNS, most // max(columns * size, 1))
    row, distance = _rows(loops, given)
    if row >= MIN_ROW_BYTES and distance >= stays(machine):
        runs = min(runs, rows // MIN_RUN_ROWS)
    if runs < MIN_RUNS or rows < runs * MIN_RUN_ROWS or rows * columns < MIN_ELEMENTS:
        return 0
    return runs
