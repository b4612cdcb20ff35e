"""Vectorise ops along their own loops: copies, sums, and tiles of contractions.

A contraction with fewer results than a vector has lanes is vectorised along its sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.linalg import ops as linalg

from stepwell.analysis.levels import Lanes
from stepwell.analysis.structured import bytes_of, is_not_fused
from stepwell.core.machine import Machine
from stepwell.transforms.kernels.schedule.beyond import Arguments, stays
from stepwell.transforms.kernels.schedule.nest import Nest
from stepwell.transforms.kernels.schedule.reasons import explain_choice
from stepwell.transforms.kernels.schedule.vectors import (
    Loops,
    at_once,
    full_lanes,
    lanes,
    own_axis,
)

ROWS_AT_ONCE = 4
"""Rows that run side by side where elements must be taken in order, to hide latency.

More rows would evict each other from the L1 cache if they begin at the same offset of a page.
"""
MIN_FAR_ROW_BYTES = 1536
"""Bytes of a row, of a matrix beyond the L2 cache, below which hardware prefetches neighbouring
rows as one run, but not rows side by side: between 1200, where that is slower, and 2000 (Zen 4)."""
MIN_SUM_VECTORS = 4
"""Vectors of a sum below which reducing the lanes costs more than it saves."""


def sums_along(ops: Sequence[Loops], shared: int, machine: Machine) -> bool:
    """Whether a kernel's contraction has fewer columns than half a vector has lanes.

    It is then vectorised along its sum, if both operands are contiguous along it and it is long.
    Rows and columns still form register tiles: each vector that is read serves several sums.
    """
    inner = [each for each in ops if len(each.parallel) > shared]
    if len(inner) != 1 or shared < 2 or not inner[0].contracts or not inner[0].free:
        return False
    (found,) = inner
    axis, width = own_axis(found, shared), full_lanes([found], machine)
    if axis is None or found.score(axis) < 1.0 or any(each.gathers for each in ops):
        return False
    high, wide = found.extents[shared - 2 : shared]
    if DYNAMIC_INDEX in found.extents or high < 2 or not 2 <= wide < width // 2:
        return False
    whole = found.size(axis) >= width
    return (
        whole
        and prod(map(found.size, range(shared, len(found.parallel)))) >= MIN_SUM_VECTORS * width
    )


def _run_rows_abreast(nest: Nest) -> None:
    """Run several rows of a sequential op, such as a running sum, side by side.

    Each step depends on the one before; the steps of other rows hide its latency.
    """
    ordered = [loops for loops in nest.ops if not all(loops.parallel)]
    shared = nest.shared
    if not shared or any(loops.lanes.axis >= 0 for loops in ordered):
        return
    if not ordered or any(o.free or o.parallel.count(False) != 1 for o in ordered):
        return
    rows = nest.ops[0].extents[shared - 1]
    band = ROWS_AT_ONCE if rows == DYNAMIC_INDEX else min(ROWS_AT_ONCE, rows)
    if band > 1:
        nest.steps[shared - 1] = band
        explain_choice(
            nest.function, lambda: f"{band} rows at a time, for steps along one wait for each other"
        )


def vectorise_apart(nest: Nest, machine: Machine, given: Arguments, long: bool = False) -> None:
    """Vectorise each op along its own loop; tile a contraction if its sum is ``long``."""
    for loops in nest.ops:
        _vectorise_own(loops, nest.shared, machine)
    if machine.l2:
        _tile_own(nest, machine, long)
        _run_rows_abreast(nest)
        _sum_rows_together(nest, machine, given)


def _sum_rows_together(nest: Nest, machine: Machine, given: Arguments) -> None:
    """Sum several rows of a matrix at once where each is multiplied by the same vector.

    A vector that is loaded serves all of them, and their sums hide each other's latency. From
    memory, rows that are read one after another come faster if the vector stays in three quarters
    of the L1 cache: between two of its uses a row of the same length passes.
    """
    sums = [loops for loops in nest.ops if not all(loops.parallel)]
    if nest.shared != 1 or nest.steps or len(sums) != 1 or len(sums[0].parallel) != 2:
        return
    (found,) = sums
    if DYNAMIC_INDEX in found.extents or found.lanes.axis != 1 or found.lanes.width == 1:
        return
    rows = [each.value for each in found.operands if each.loops == {0, 1}]
    if len(rows) != 1 or all(each.loops != {1} for each in found.operands):
        return
    row = found.extents[1] * bytes_of(rows[0])
    bytes = found.extents[0] * row
    far = given.distance(rows[0], bytes) >= stays(machine)
    many = machine.streams if far else ROWS_AT_ONCE
    if (bytes > machine.l2 and row < MIN_FAR_ROW_BYTES) or found.extents[0] < many:
        return
    if far and 2 * row < machine.l1 * 3 // 4:
        return
    nest.steps[0] = many
    found.lanes = found.lanes._replace(many=1)
    explain_choice(nest.function, lambda: f"{many} rows at a time, multiplied by one vector")


def _vectorise_own(loops: Loops, shared: int, machine: Machine) -> None:
    axis = own_axis(loops, shared)
    whole = isinstance(loops.op, linalg.FillOp) or is_not_fused(
        loops.op
    )  # these never run in place
    name = next((r.name_hint for r in loops.op.results if r.name_hint), loops.op.name)
    if axis is None or (width := lanes([loops], axis, machine, overlap=whole)) == 1:
        explain_choice(
            loops.op, lambda: f"{name}: no vectors, along no loop do neighbours lie together"
        )
        return
    many = at_once(loops, axis, width)
    explain_choice(
        loops.op,
        lambda: f"{name}: vectors of {width}, {many} at once, along its own loop {axis}",
    )
    loops.lanes = Lanes(axis, width, many)


def _tile_own(nest: Nest, machine: Machine, long: bool) -> None:
    """Choose a tile of rows and columns for a contraction that is vectorised along its sum.

    Each vector of either operand is then read once for several sums.
    """
    shared = nest.shared
    (found, *others) = [each for each in nest.ops if len(each.parallel) > shared] or [None]
    if found is None or others or shared < 2 or found.lanes.axis < 0:
        return
    axis, width, *_ = found.lanes
    rows_and_columns = shared - 2, shared - 1
    high, wide = (found.likely.get(k, found.extents[k]) for k in rows_and_columns)
    alone = found.contracts and found.score(axis) == 1.0 and not found.gathers
    long = long or found.size(axis) >= MIN_SUM_VECTORS * width
    if not alone or not long or axis < shared or high < 2:  # or unknown
        return
    most = (machine.vector_registers - 8) // wide if found.picks else 8  # all columns at once
    rows = -(-high // -(-high // max(min(most, 8), 1)))
    columns = min(max((machine.vector_registers - 8) // rows, 1), 4)
    if wide != DYNAMIC_INDEX or not found.likely:  # a version of few rows takes any columns
        columns = min(columns, wide)
    if rows * columns == 1 or columns < 2:
        return
    explain_choice(
        nest.function,
        lambda: f"{rows} rows by {columns} columns of the result are summed at once",
    )
    found.lanes = Lanes(axis, width)
    nest.set_tile(rows, columns)
