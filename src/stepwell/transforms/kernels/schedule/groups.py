"""Schedules for devices whose work-items run in lockstep: groups, lanes, staging, register tiles.

Accesses of neighbouring lanes are coalesced: lanes walk along the contiguous axis. A group computes
a tile of a product, with operands staged in local memory and a part of the tile in registers of
each lane; or the sum of a row, its lanes in a tree; or a run of elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.linalg import ops as linalg

from stepwell.analysis.levels import write_schedule
from stepwell.analysis.reach import spans
from stepwell.analysis.structured import indices, stride
from stepwell.dialects import kernel
from stepwell.dialects.kernel.levels import (
    FOR,
    GROUP,
    LANE,
    UNROLL,
    Action,
    Level,
    Levels,
    Schedule,
)
from stepwell.dialects.kernel.sharing import WITHIN, is_border
from stepwell.transforms.kernels.schedule.group_tiles import Device, product
from stepwell.transforms.kernels.schedule.reasons import explain_choice
from stepwell.transforms.kernels.schedule.vectors import Loops

GROUP_LANES = 256
"""Lanes of a group: eight warps of 32, which hide each other's latency; every device supports it.
"""
MIN_ROW_LANES = 32
"""Lanes that share a row, at least: a warp."""
TRANSPOSED_SIDE = 32
"""Rows and columns of a transposed block: reads and writes are coalesced."""
ELEMENTS_PER_LANE = 4
"""Elements of a lane, where there are many: loads in flight at once."""
GROUPS_PER_UNIT = 8
"""Groups that keep a compute unit busy: today's devices have 2,048 lanes in flight."""


def write_groups(
    function: kernel.FuncOp, ops: Sequence[Loops], shared: int, device: Device
) -> bool:
    """Write a schedule of groups on a kernel; False where none is known for it."""
    if not ops or not all(map(_is_known, ops)):
        return False
    found = _choose(ops, shared, device)
    if found is None:
        return False
    schedule, reason = found
    write_schedule(function, schedule)
    explain_choice(function, lambda: reason)
    return True


def _is_known(loops: Loops) -> bool:
    return not is_border(loops.op) and WITHIN not in loops.op.attributes


def _choose(ops: Sequence[Loops], shared: int, device: Device) -> tuple[Schedule, str] | None:
    if not shared:
        return _parts(ops, device)
    if any(len(loops.extents) > shared for loops in ops):
        found = product(ops, shared, device)
        return found or _rows(ops, shared) or _columns(ops, shared)
    if any(not all(loops.parallel) for loops in ops):
        return None
    return _transposed(ops, shared) or _elements(ops, shared, device)


def _parts(ops: Sequence[Loops], device: Device) -> tuple[Schedule, str] | None:
    """Split sums to one result into parts, one for each group."""
    sums = [loops for loops in ops if loops.extents]
    if not sums or any(any(each.parallel) or not each.free for each in sums):
        return None
    if any(each.writes_along for each in sums) or len({len(each.extents) for each in sums}) > 1:
        return None
    last = len(sums[0].extents) - 1
    cut = max(range(last + 1), key=lambda k: (sums[0].size(k), -k))
    many = min(
        sums[0].iterations // (GROUP_LANES * ELEMENTS_PER_LANE), 4 * max(device.compute_units, 1)
    )
    many = max(many, 1)
    inner = (*(Level(FOR, k) for k in range(last)), *_across(last, GROUP_LANES))
    own = {n: inner for n, loops in enumerate(ops) if loops.extents}
    reason = f"sums in {many} parts, each by the lanes of a group, in a tree"
    return Schedule((Level(GROUP, cut, 1, many),), own), reason


def _across(loop: int, lanes: int) -> Levels:
    """Give a loop to lanes, neighbours taking neighbouring iterations."""
    return Level(FOR, loop, lanes), Level(LANE, loop)


# rows and columns


def _rows(ops: Sequence[Loops], shared: int) -> tuple[Schedule, str] | None:
    """Give a row to each group, where rows are contiguous."""
    sums = [loops for loops in ops if len(loops.extents) > shared and not all(loops.parallel)]
    if not sums or any(not loops.free for loops in sums):
        return None
    last = len(sums[0].extents) - 1
    along = any(stride(index, last) == 1 for index in sums[0].accesses[: sums[0].reads])
    long = prod(sums[0].size(k) for k in range(shared, last + 1)) >= 2 * MIN_ROW_LANES
    if not along or not long or sums[0].size(last) < MIN_ROW_LANES:
        return None
    own: dict[int, Levels] = {}
    for number, loops in enumerate(ops):
        if len(loops.extents) == shared:
            continue
        *outer, inner = range(shared, len(loops.extents))
        lanes = _power(loops.size(inner), GROUP_LANES)
        mixed = len(set(loops.parallel[shared:])) > 1
        if lanes < 2 or mixed:
            return None
        own[number] = (*(Level(FOR, k) for k in outer), *_across(inner, lanes))
    groups = tuple(Level(GROUP, k) for k in range(shared))
    return Schedule(groups, own), "a row for each group, its lanes side by side and sums in a tree"


def _power(size: int, most: int) -> int:
    """Return the largest power of two that is no more than either."""
    return 1 << (max(min(size, most), 1).bit_length() - 1)


def _columns(ops: Sequence[Loops], shared: int) -> tuple[Schedule, str] | None:
    """Give a column, or a short row, to each lane."""
    own: dict[int, Levels] = {}
    for number, loops in enumerate(ops):
        inner = range(shared, len(loops.extents))
        ordered = sorted(inner, key=lambda k: (not loops.parallel[k], k))
        if ordered:
            own[number] = tuple(Level(FOR, k) for k in ordered)
    levels = _spread(ops[0], shared, 1)
    return Schedule(levels, own), "each lane has a sum of its own, beside those of its neighbours"


# elements


def _elements(ops: Sequence[Loops], shared: int, device: Device) -> tuple[Schedule, str]:
    """Give neighbouring elements to neighbouring lanes."""
    busy = max(device.compute_units, 1) * GROUPS_PER_UNIT * GROUP_LANES
    each = ELEMENTS_PER_LANE if ops[0].iterations >= busy * ELEMENTS_PER_LANE else 1
    levels = _spread(ops[0], shared, each)
    return Schedule(levels), "neighbouring lanes have neighbouring elements"


def _spread(loops: Loops, shared: int, each: int) -> Levels:
    """Give the innermost shared loops to lanes, and runs of as many lanes to groups."""
    left, steps = GROUP_LANES, dict[int, int]()
    for k in reversed(range(shared)):
        size = GROUP_LANES if loops.extents[k] == DYNAMIC_INDEX else loops.size(k)
        steps[k] = min(left, 1 << max(size - 1, 0).bit_length())
        left //= steps[k]
    last = shared - 1
    each = each if steps[last] == GROUP_LANES else 1
    groups = [Level(GROUP, k, steps[k] * (each if k == last else 1)) for k in range(shared)]
    unrolled = [Level(UNROLL, last, steps[last])] if each > 1 else []
    lanes = [Level(LANE, k) for k in range(shared) if steps[k] > 1]
    return (*groups, *unrolled, *lanes)


def _transposed(ops: Sequence[Loops], shared: int) -> tuple[Schedule, str] | None:
    """Read blocks along their rows, and write them along their columns."""
    op = ops[0].op
    if len(ops) > 1 or shared < 2 or not isinstance(op, linalg.GenericOp):
        return None
    loops, last = ops[0], shared - 1
    for number, index in enumerate(indices(op)[: len(op.inputs)]):
        rows = [k for k in range(last) if stride(index, k) == 1]
        if not rows or stride(index, last) is not None:
            continue
        row, sizes = rows[0], [1] * shared
        sizes[rows[0]] = sizes[last] = TRANSPOSED_SIDE
        short = min(loops.size(row), loops.size(last)) < TRANSPOSED_SIDE // 2
        if short or spans(index, sizes) is None:
            continue
        groups = [Level(GROUP, k, sizes[k]) for k in range(shared)]
        groups[-1] = groups[-1].doing(Action("stage", number))
        each = TRANSPOSED_SIDE * TRANSPOSED_SIDE // GROUP_LANES
        lanes = (Level(LANE, row, each), Level(LANE, last), Level(UNROLL, row))
        return Schedule(
            (*groups, *lanes)
        ), f"tiles of {TRANSPOSED_SIDE} by {TRANSPOSED_SIDE}, transposed in local memory"
    return None
