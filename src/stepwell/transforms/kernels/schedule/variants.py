"""Schedules near a given one: each choice varied alone, the others as they are.

Only what obeying cannot refuse is proposed: tiles that fit into the registers, blocks of whole
tiles whose packed operand and partial sums fit into their scratch.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from stepwell.core.machine import Machine
from stepwell.transforms.kernels.schedule.block_sizes import BESIDE, NARROW_TILES, SCRATCH, TILES

Schedule = Mapping[str, Any]
INTERLEAVES = (1, 2, 4, 8)
BANDS = (2, 3, 4, 5, 6, 8, 12)
BYTES = 4
"""Of an element, as far as scratch goes; wider ones are refused where they do not fit."""


def variants(schedule: Schedule, machine: Machine) -> list[list[Schedule]]:
    """Return, for each choice that there is, the schedules that differ in it alone."""
    found: list[list[Schedule]] = []
    if "tile" in schedule and "stream" not in schedule and not _turns(schedule):
        found.append(_tiles(schedule, machine))
    if "band" in schedule:
        found.append([{**schedule, "band": n} for n in BANDS if n != schedule["band"]])
    if "block" in schedule:
        found += _blocks(schedule)
    if not {"tile", "band"} & set(schedule) and any(schedule["loops"]):
        found += [_interleaves(schedule), _widths(schedule)]
    if "grain" in schedule and "block" not in schedule:
        found.append(_grains(schedule))
    return [choices for choices in found if choices]


def _turns(schedule: Schedule) -> bool:
    """Whether the tile is a square of lanes, turned over in registers: it has one size."""
    rows, vectors = schedule["tile"]
    return vectors == 1 and any(loops and loops[1] == rows for loops in schedule["loops"])


def _tiles(schedule: Schedule, machine: Machine) -> list[Schedule]:
    """Try other register tiles; a block stays one of whole tiles."""
    old_rows, old_vectors = schedule["tile"]
    width = max((loops[1] for loops in schedule["loops"] if loops), default=1)
    registers = machine.vector_registers or (32 if machine.vector_bits >= 512 else 16)
    near = {(rows, vectors) for rows in range(1, 9) for vectors in range(1, 6)}
    near = {t for t in near if abs(t[0] - old_rows) <= 2 and abs(t[1] - old_vectors) <= 1}
    tiles = [*(TILES if registers >= 32 else NARROW_TILES), *sorted(near)]
    found: list[Schedule] = []
    for rows, vectors in dict.fromkeys(tiles):
        if [rows, vectors] == schedule["tile"] or rows * vectors + vectors + 1 > registers:
            continue
        changed = {**schedule, "tile": [rows, vectors]}
        if "block" in schedule:
            *high, _, deep = schedule["block"]
            columns = vectors * width
            if not _fits(schedule, [*high, columns, deep]):
                continue
            changed["block"] = [*high[:-1], _whole(high[-1], rows), columns, deep]
        found.append(changed)
    return found


def _blocks(schedule: Schedule) -> list[list[Schedule]]:
    """Try other numbers of rows, and other depths."""
    *high, columns, deep = schedule["block"]
    rows = schedule["tile"][0] if "tile" in schedule else 1
    heights = [_whole(int(high[-1] * by), rows) for by in (0.5, 0.25, 1.5, 2, 4)]
    depths = [int(deep * by) for by in (0.5, 0.75, 1.5, 2)]
    higher = [[*high[:-1], n, columns, deep] for n in dict.fromkeys(heights)]
    deeper = [[*high, columns, n] for n in depths if n > 0]
    return [
        [
            {**schedule, "block": block}
            for block in blocks
            if block != schedule["block"] and _fits(schedule, block)
        ]
        for blocks in (higher, deeper)
    ]


def _fits(schedule: Schedule, block: list[int]) -> bool:
    """Whether what is packed and what is summed up in parts fit into their scratch."""
    *high, columns, deep = block
    each = 1 if "dots" in schedule else BYTES
    rows = high[-1] * (each * deep + BESIDE) if "pack_rows" in schedule else 0
    return max(columns * deep * BYTES, prod(high) * columns * BYTES, rows) <= SCRATCH


def _whole(size: int, unit: int) -> int:
    return max(size // unit, 1) * unit


def _interleaves(schedule: Schedule) -> list[Schedule]:
    """Try more or fewer vectors at once, in all ops alike."""
    return [
        {**schedule, "loops": loops}
        for many in INTERLEAVES
        if (loops := [each and [*each[:2], many] for each in schedule["loops"]])
        != schedule["loops"]
    ]


def _widths(schedule: Schedule) -> list[Schedule]:
    """Try half the lanes."""
    halved = [each and [each[0], max(each[1] // 2, 1), each[2]] for each in schedule["loops"]]
    return [{**schedule, "loops": halved}] if halved != schedule["loops"] else []


def _grains(schedule: Schedule) -> list[Schedule]:
    """Try to hand more or less to a thread."""
    grains = dict.fromkeys(max(int(schedule["grain"] * by), 1) for by in (0.25, 4, 16))
    return [{**schedule, "grain": n} for n in grains if n != schedule["grain"]]
