"""Let tiles pack the next part of an operand, where a pass that packs would wait for memory.

A product of some tens of rows computes about as long as its operand takes to come from memory, and
a pass that packs does one after the other. Blocks are then shallower and several panels wide, so
that rows are read in longer runs.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.utils.exceptions import VerifyException

from stepwell.analysis.cost import Predictor
from stepwell.analysis.cost.accesses import ASSUMED, assumed, assuming
from stepwell.analysis.cost.nest import loop_sizes
from stepwell.analysis.levels import KernelLevels, check_levels
from stepwell.analysis.levels.building import rebuilt, with_block, without
from stepwell.analysis.levels.legality import MAX_SCRATCH_BYTES
from stepwell.analysis.levels.queries import DOUBLE_BUFFERED
from stepwell.analysis.structured import bits_of, element
from stepwell.core.machine import Machine
from stepwell.dialects import kernel
from stepwell.dialects.kernel.levels import FOR, Action, Level, Schedule
from stepwell.transforms.kernels.schedule.beyond import Arguments
from stepwell.transforms.kernels.schedule.block_sizes import even
from stepwell.transforms.kernels.schedule.reasons import explain_choice
from stepwell.transforms.kernels.schedule.searching import MODEL_ERROR, all_known
from stepwell.transforms.kernels.schedule.vectors import read

DEPTHS = (128, 64)
"""Depths of a part, the deeper first. Sums are loaded and stored once for each part, two accesses
for so many multiply-adds; in the same scratch, deeper parts have fewer panels, so shorter runs of
memory, and more of the sum is packed before the first tile computes."""
DEPTH_MARGIN = 0.01
"""The part of the time that shallower parts must gain: where both are predicted alike, they took up
to 2 % longer (128 x 768 x 768, Granite Rapids)."""


def pack_while_computing(
    function: kernel.FuncOp,
    schedule: Schedule,
    alone: Schedule,
    machine: Machine,
    given: Arguments,
    rows: int = 0,
) -> Schedule:
    """Return levels whose tiles pack the next part, if they are predicted to be faster.

    Rounding depends on the depth, so this is predicted for one thread whatever their number.

    alone : the levels that one thread would have
    given : properties of the kernel's arguments; to pack what is the same in every call costs
        nothing
    rows : their likely number, where it is unknown
    """
    levels = KernelLevels(function, alone)
    waits = levels.blocks and not levels.prefetch  # what is prefetched is packed without waiting
    if not waits or len(levels.packs) != 1 or not (rows or all_known(function)):
        return schedule
    op, (operand,) = levels.ops[next(iter(levels.sums))], levels.packs
    if DYNAMIC_INDEX in read(op).extents[levels.shared - 1 :]:
        return schedule
    if given.is_ready(op.operands[operand]):
        return schedule
    one = replace(machine, threads=1, cores=1)
    depth = _fastest_depth(levels, one, rows)
    if depth is None:
        return schedule
    return _double_buffered(_of_all_rows(levels, rows), depth, machine) or schedule


def _fastest_depth(levels: KernelLevels, machine: Machine, rows: int) -> int | None:
    """Return the depth of parts that tiles pack; None if they are not predicted to be faster."""
    predictor = Predictor(levels.function, machine, assuming(rows or ASSUMED))
    before = after = predictor.predict(levels.schedule).seconds
    found = None
    for deep in DEPTHS:
        if new := _double_buffered(_of_all_rows(levels, rows), deep, machine):
            seconds = predictor.predict(new).seconds
            if seconds < (1 - DEPTH_MARGIN) * after:
                after, found = seconds, deep
    if after > (1 - MODEL_ERROR) * before:
        return None
    said = f"tiles pack the next part while they compute: {after / before:.2f} of the time"
    explain_choice(levels.function, lambda: said)
    return found


def _of_all_rows(levels: KernelLevels, rows: int) -> KernelLevels:
    """Return levels with one block of all rows, where their likely number is given."""
    if not rows:
        return levels
    tile, (*first, _, wide, deep) = levels.tile, levels.blocks
    high = ceil(rows / tile[0]) * tile[0]
    return KernelLevels(levels.function, with_block(levels, (*first, high, wide, deep), tile))


def _double_buffered(levels: KernelLevels, depth: int, machine: Machine) -> Schedule | None:
    """Return levels whose tiles pack the next part, at most so deep; None if they are illegal."""
    steps, column = levels.in_steps, levels.shared - 1
    assert steps is not None
    (operand, _), split = next(iter(levels.packs.items())), steps.splits[0]
    op, tile = levels.ops[next(iter(levels.sums))], levels.step(column)
    sizes = loop_sizes(op, assumed)
    bytes = bits_of(element(op.operands[operand])) // 8
    deep = even(sizes[steps.depth], depth, 8)
    panels, most = ceil(sizes[column] / tile), MAX_SCRATCH_BYTES // (2 * deep * tile * bytes)
    if most < 1 or panels < 2:
        return None
    blocks = ceil(panels / (most * machine.threads)) * machine.threads
    wide = ceil(panels / blocks) * tile
    cut = without(steps.levels[split], "pack", "prefetch")
    cut = replace(cut, step=deep).doing(Action("pack", operand, DOUBLE_BUFFERED))
    before = [replace(x, step=wide) if x.loop == column else x for x in steps.levels[: column + 1]]
    inside = [Level(FOR, column, tile), Level(FOR, column - 1, levels.step(column - 1))]
    found = rebuilt(levels, outer=(*before, cut, *inside))
    try:
        check_levels(levels.function, found)
    except VerifyException:
        return None
    return found
