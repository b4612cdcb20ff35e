"""Schedules near a given one: each choice varied alone, the others as they are.

Only legal schedules are proposed: tiles that fit the registers, blocks of whole tiles whose packed
operand and partial sums fit their scratch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

from stepwell.analysis.levels import Lanes, Nesting
from stepwell.analysis.levels.legality import MAX_SCRATCH_BYTES
from stepwell.core.machine import Machine
from stepwell.transforms.kernels.schedule.block_sizes import (
    NARROW_TILES,
    ROW_PADDING_BYTES,
    TILES,
)

INTERLEAVES = (1, 2, 4, 8)
BANDS = (2, 3, 4, 5, 6, 8, 12)
PREFETCH_DISTANCES = (4, 8, 16, 32, 64)
"""Steps of a tile's sum, of about a tenth of a cache miss to several."""
ELEMENT_BYTES = 4
"""Bytes of an element, for the size of scratch; wider elements are refused where they do not fit.
"""


def variants(old: Nesting, machine: Machine) -> list[list[Nesting]]:
    """Return, for each choice of the schedule, the variants that differ in it alone."""
    found: list[list[Nesting]] = []
    tiled = old.tile != (1, 1) and not old.order
    if tiled and not old.strip[0] and not _transposes(old):
        found.append(_tiles(old, machine))
    if old.band > 1:
        found.append([replace(old, band=n) for n in BANDS if n != old.band])
    if old.blocks:
        found += _blocks(old)
    if not (tiled or old.order) and old.band == 1 and any(lanes.axis >= 0 for lanes in old.lanes):
        found += [_interleaves(old), _widths(old)]
    if old.parallel and not old.blocks:
        found.append(_grains(old))
    if old.prefetch or old.pack_first:
        found.append(_marks(old))
    return [[_shared_alike(new, old) for new in some] for some in found if some]


def _shared_alike(new: Nesting, old: Nesting) -> Nesting:
    """Return a schedule whose parallel iterations take whole inner steps."""
    if new.blocks:
        ones = new.shared + 1 - len(new.blocks)
        return replace(new, steps=(*(1 for _ in range(ones)), *new.blocks[:-1]))
    steps = list(old.steps)
    for k, step in enumerate(steps):
        inner = new.step(k)
        steps[k] = inner if step == old.step(k) else -(-step // inner) * inner
    return replace(new, steps=tuple(steps))


def _transposes(old: Nesting) -> bool:
    """Whether the tile is a block transposed through registers, which has one size."""
    rows, vectors = old.tile
    return vectors == 1 and any(lanes.width == rows for lanes in old.lanes)


def _tiles(old: Nesting, machine: Machine) -> list[Nesting]:
    """Return variants with other register tiles; a block stays one of whole tiles."""
    old_rows, old_vectors = old.tile
    width = max(lanes.width for lanes in old.lanes)
    registers = machine.vector_registers or (32 if machine.vector_bits >= 512 else 16)
    near = {(rows, vectors) for rows in range(1, 9) for vectors in range(1, 6)}
    near = {t for t in near if abs(t[0] - old_rows) <= 2 and abs(t[1] - old_vectors) <= 1}
    tiles = [*(TILES if registers >= 32 else NARROW_TILES), *sorted(near)]
    found: list[Nesting] = []
    for rows, vectors in dict.fromkeys(tiles):
        if (rows, vectors) == old.tile or rows * vectors + vectors + 1 > registers:
            continue
        changed = replace(old, tile=(rows, vectors))
        if old.blocks:
            *high, _, deep = old.blocks
            columns = vectors * width
            if not _fits(old, (*high, columns, deep)):
                continue
            changed.blocks = (*high[:-1], _whole(high[-1], rows), columns, deep)
        found.append(changed)
    return found


def _blocks(old: Nesting) -> list[list[Nesting]]:
    """Return variants with other rows of a block, and with other depths."""
    *high, columns, deep = old.blocks
    heights = [_whole(int(high[-1] * by), old.tile[0]) for by in (0.5, 0.25, 1.5, 2, 4)]
    depths = [int(deep * by) for by in (0.5, 0.75, 1.5, 2)]
    higher = [(*high[:-1], n, columns, deep) for n in dict.fromkeys(heights)]
    deeper = [(*high, columns, n) for n in depths if n > 0]
    return [
        [
            replace(old, blocks=block)
            for block in blocks
            if block != old.blocks and _fits(old, block)
        ]
        for blocks in (higher, deeper)
    ]


def _fits(old: Nesting, block: tuple[int, ...]) -> bool:
    """Whether packed operands and partial sums fit their scratch."""
    *high, columns, deep = block
    each = 2 if old.dots else ELEMENT_BYTES  # bytes, or bf16
    rows = high[-1] * (each * deep + ROW_PADDING_BYTES) if old.pack_rows else 0
    return (
        max(columns * deep * ELEMENT_BYTES, prod(high) * columns * ELEMENT_BYTES, rows)
        <= MAX_SCRATCH_BYTES
    )


def _whole(size: int, unit: int) -> int:
    return max(size // unit, 1) * unit


def _lanes(old: Nesting, change: Callable[[Lanes], Lanes]) -> Nesting:
    return replace(old, lanes=tuple(x if x.axis < 0 else change(x) for x in old.lanes))


def _interleaves(old: Nesting) -> list[Nesting]:
    """Return variants with more or fewer interleaved vectors, in all ops alike."""
    found = [_lanes(old, lambda x, n=many: x._replace(many=n)) for many in INTERLEAVES]
    return [new for new in found if new.lanes != old.lanes]


def _widths(old: Nesting) -> list[Nesting]:
    """Return the variant with half the lanes."""
    halved = _lanes(old, lambda x: x._replace(width=max(x.width // 2, 1)))
    return [halved] if halved.lanes != old.lanes else []


def _marks(old: Nesting) -> list[Nesting]:
    """Return variants that prefetch at another distance or not, or pack before the first tile."""
    in_steps = bool(old.blocks or old.strip[0] or old.split)
    steps = (0,) if in_steps else (0, *PREFETCH_DISTANCES)
    found = [replace(old, prefetch=n) for n in steps if old.prefetch and n != old.prefetch]
    return [*found, replace(old, pack_first=False)] if old.pack_first else found


def _grains(old: Nesting) -> list[Nesting]:
    """Return variants with smaller and larger grains."""
    grains = dict.fromkeys(max(int(old.grain * by), 1) for by in (0.25, 4, 16))
    return [replace(old, grain=n) for n in grains if n != old.grain]
