"""Schedules near a given one: each choice varied alone, the others as they are.

Only legal schedules are proposed: tiles that fit the registers, blocks of whole tiles whose packed
operand and partial sums fit their scratch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX

from stepwell.analysis.levels import KernelLevels, Lanes, rebuilt
from stepwell.analysis.levels.building import (
    edited,
    packing_before,
    with_block,
    without_prefetch,
)
from stepwell.analysis.levels.kernel_ops import LoopedOp, op_extents
from stepwell.analysis.levels.legality import MAX_SCRATCH_BYTES
from stepwell.core.machine import Machine
from stepwell.dialects.kernel.levels import PEEL, Schedule
from stepwell.transforms.kernels.schedule.block_sizes import (
    NARROW_TILES,
    ROW_PADDING_BYTES,
    TILES,
)
from stepwell.transforms.kernels.schedule.dot_products import MATRIX_TILE

INTERLEAVES = (1, 2, 4, 8)
BANDS = (2, 3, 4, 5, 6, 8, 12)
PREFETCH_DISTANCES = (4, 8, 16, 32, 64)
"""Steps of a tile's sum, of about a tenth of a cache miss to several."""
ELEMENT_BYTES = 4
"""Bytes of an element, for the size of scratch; wider elements are refused where they do not fit.
"""


def variants(levels: KernelLevels, machine: Machine) -> list[list[Schedule]]:
    """Return, for each choice of the schedule, the variants that differ in it alone."""
    found: list[list[Schedule]] = []
    is_plain = not levels.in_steps
    if levels.tile != (1, 1) and (is_plain or levels.blocks) and not _transposes(levels):
        found.append(_tiles(levels, machine))
    if levels.band > 1:
        found.append([_with_steps(levels, {-1: n}) for n in BANDS])
    if levels.blocks:
        found += _blocks(levels)
    if is_plain and not levels.is_tiled and any(lanes.axis >= 0 for lanes in levels.lanes):
        found += [_interleaves(levels), _widths(levels)]
    if levels.parallel and not levels.blocks:
        found.append(_grains(levels))
    if levels.prefetch or "first" in levels.packs.values():
        found.append(_marks(levels))
    others = ([new for new in some if new != levels.schedule] for some in found)
    return [some for some in others if some]


def _transposes(levels: KernelLevels) -> bool:
    """Whether the tile is a block transposed through registers, which has one size."""
    rows, vectors = levels.tile
    return vectors == 1 and any(lanes.width == rows for lanes in levels.lanes)


def _with_steps(levels: KernelLevels, steps: Mapping[int, int]) -> Schedule:
    """Return a schedule with other iterations of shared loops at a time, counted from the last."""
    found = [levels.step(k) for k in range(levels.shared)]
    for k, step in steps.items():
        found[k] = step
    return rebuilt(levels, steps=found)


def _tiles(levels: KernelLevels, machine: Machine) -> list[Schedule]:
    """Return variants with other register tiles; a block stays one of whole tiles.

    The tile of a matrix unit is the one that it has.
    """
    if levels.tile == MATRIX_TILE and "dot" in levels.packs.values():
        return []
    (old_rows, old_vectors), registers = levels.tile, machine.vector_registers
    width = max(lanes.width for lanes in levels.lanes)
    near = {(rows, vectors) for rows in range(1, 9) for vectors in range(1, 6)}
    near = {t for t in near if abs(t[0] - old_rows) <= 2 and abs(t[1] - old_vectors) <= 1}
    tiles = [*(TILES if registers >= 32 else NARROW_TILES), *sorted(near)]
    found: list[Schedule] = []
    for rows, vectors in dict.fromkeys(tiles):
        if (
            rows,
            vectors,
        ) == levels.tile or rows * vectors + vectors + 1 > registers:
            continue
        if levels.blocks:
            *high, _, deep = levels.blocks
            columns = vectors * width
            if _fits(levels, (*high, columns, deep)):
                block = (*high[:-1], _whole(high[-1], rows), columns, deep)
                found.append(with_block(levels, block, (rows, vectors)))
        else:
            columns = vectors * (width if levels.axis == levels.shared - 1 else 1)
            found.append(_with_steps(levels, {-2: rows, -1: columns}))
    return found


def _blocks(levels: KernelLevels) -> list[list[Schedule]]:
    """Return variants with other rows of a block, and with other depths."""
    *high, columns, deep = levels.blocks
    heights = [_whole(int(high[-1] * by), levels.tile[0]) for by in (0.5, 0.25, 1.5, 2, 4)]
    depths = [int(deep * by) for by in (0.5, 0.75, 1.5, 2)]
    higher = [(*high[:-1], n, columns, deep) for n in dict.fromkeys(heights)]
    deeper = [(*high, columns, n) for n in depths if n > 0]
    return [
        [with_block(levels, block) for block in blocks if _fits(levels, block)]
        for blocks in (higher, deeper)
    ]


def _fits(levels: KernelLevels, block: tuple[int, ...]) -> bool:
    """Whether packed operands and partial sums fit their scratch."""
    *high, columns, deep = block
    each = 2 if "dot" in levels.packs.values() else ELEMENT_BYTES  # bytes, or bf16
    rows = high[-1] * (each * deep + ROW_PADDING_BYTES) if len(levels.packs) > 1 else 0
    return (
        max(columns * deep * ELEMENT_BYTES, prod(high) * columns * ELEMENT_BYTES, rows)
        <= MAX_SCRATCH_BYTES
    )


def _whole(size: int, unit: int) -> int:
    return max(size // unit, 1) * unit


def _lanes(levels: KernelLevels, change: Callable[[Lanes], Lanes]) -> Schedule:
    """Return a schedule with other vectors in all ops; those of a shared loop fill its step."""
    pairs = zip(levels.ops, levels.lanes, strict=True)
    lanes = [x if x.axis < 0 else _ended(op, change(x)) for op, x in pairs]
    steps = [levels.step(k) for k in range(levels.shared)]
    if levels.axis >= 0:
        steps[levels.axis] = lanes[0].width * lanes[0].many
    return rebuilt(levels, lanes=lanes, steps=steps)


def _ended(op: LoopedOp, lanes: Lanes) -> Lanes:
    """Return the vectors of an op, without a tail policy where no part of one is left."""
    size = op_extents(op)[lanes.axis]
    return lanes if size == DYNAMIC_INDEX or size % lanes.width else lanes._replace(tail=PEEL)


def _interleaves(levels: KernelLevels) -> list[Schedule]:
    """Return variants with more or fewer interleaved vectors, in all ops alike."""
    return [_lanes(levels, lambda x, n=many: x._replace(many=n)) for many in INTERLEAVES]


def _widths(levels: KernelLevels) -> list[Schedule]:
    """Return the variant with half the lanes."""
    return [_lanes(levels, lambda x: x._replace(width=max(x.width // 2, 1)))]


def _marks(levels: KernelLevels) -> list[Schedule]:
    """Return variants that prefetch at another distance or not, or pack before the first tile."""
    if levels.in_steps:
        return [edited(levels, without_prefetch), edited(levels, packing_before)]
    steps = (0,) if levels.parts else (0, *PREFETCH_DISTANCES)
    return [rebuilt(levels, prefetch=n) for n in steps]


def _grains(levels: KernelLevels) -> list[Schedule]:
    """Return variants with smaller and larger grains."""
    grains = dict.fromkeys(max(int(levels.grain * by), 1) for by in (0.25, 4, 16))
    return [rebuilt(levels, grain=n) for n in grains]
