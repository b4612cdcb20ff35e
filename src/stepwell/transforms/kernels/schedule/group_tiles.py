"""Tiles of products for groups of work-items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

from xdsl.dialects.builtin import DYNAMIC_INDEX

from stepwell.analysis.reach import spans
from stepwell.analysis.structured import bits_of, element
from stepwell.dialects.kernel.levels import FOR, GROUP, LANE, UNROLL, Action, Level, Schedule
from stepwell.transforms.kernels.schedule.vectors import Loops

MAX_LOCAL_BYTES = 48 << 10
"""Bytes of local memory that a group takes at most: the default limit of drivers."""
DEPTHS = (16, 8, 4, 2, 1)
"""Steps of a sum that are staged at a time, in order of preference, where local memory has room."""


class Device(NamedTuple):
    """The properties of a device that schedules of groups depend on."""

    lanes: int
    local_memory: int
    compute_units: int


class Tile(NamedTuple):
    """Rows and columns of a product that a group has, and those of each lane."""

    rows: int
    columns: int
    own_rows: int
    own_columns: int


TILES = (Tile(128, 128, 8, 8), Tile(64, 64, 4, 4), Tile(32, 32, 2, 2), Tile(16, 16, 1, 1))
"""256 lanes each. Registers of a lane hold the 64 sums of the first, and each value that is read
from local memory serves 8 of them."""


def product(ops: Sequence[Loops], shared: int, device: Device) -> tuple[Schedule, str] | None:
    """Give a tile of a product to each group, with its elementwise epilogue."""
    found = [n for n, loops in enumerate(ops) if len(loops.extents) > shared]
    others = [loops for n, loops in enumerate(ops) if n not in found]
    if len(found) != 1 or shared < 2 or not all(all(loops.parallel) for loops in others):
        return None
    loops = ops[found[0]]
    row, column = shared - 2, shared - 1
    sums = range(shared, len(loops.extents))
    if not loops.contracts or not loops.free or any(loops.parallel[k] for k in sums):
        return None
    if min(loops.size(row), loops.size(column)) < TILES[-1].rows:
        return None
    if len(sums) > 1 and any(loops.extents[k] == DYNAMIC_INDEX for k in sums):
        return None
    deep = max(sums, key=lambda k: (loops.size(k), -k))
    tile = _tile_for(loops, shared, device)
    staged = _staged(loops, row, column)
    depth = _depth(loops, shared, tile, deep, staged, device)
    if depth is None:
        return None
    inner = tuple(_levels(loops, shared, tile, deep, depth, staged))
    after = tuple(_lanes(row, column, tile))
    groups = [Level(GROUP, k) for k in range(shared)]
    groups[row], groups[column] = Level(GROUP, row, tile.rows), Level(GROUP, column, tile.columns)
    own = {n: inner if n == found[0] else after for n in range(len(ops))}
    reason = (
        f"tiles of {tile.rows} by {tile.columns}, {tile.own_rows} by {tile.own_columns} in each "
        f"lane's registers, {depth} steps of the sum staged at a time"
    )
    return Schedule(tuple(groups), own), reason


def _tile_for(loops: Loops, shared: int, device: Device) -> Tile:
    """Return the largest tile that still occupies every compute unit, or the smallest."""
    row, column = shared - 2, shared - 1
    batch = prod(loops.size(k) for k in range(row))
    wide = max(bits_of(element(value)) for value in loops.op.operands) > 32
    for tile in TILES[1:] if wide else TILES:
        count = batch * -(-loops.size(row) // tile.rows) * -(-loops.size(column) // tile.columns)
        fits = 2 * loops.size(row) > tile.rows and 2 * loops.size(column) > tile.columns
        if fits and count >= device.compute_units:
            return tile
    return TILES[-2] if min(loops.size(row), loops.size(column)) >= TILES[-2].rows else TILES[-1]


def _staged(loops: Loops, row: int, column: int) -> list[int]:
    """Return the inputs that several lanes of a tile share: they vary with rows or columns only."""
    ones = [1] * len(loops.extents)
    return [
        number
        for number, _, index, used in loops.operands
        if (row in used) != (column in used) and spans(index, ones) is not None
    ]


def _depth(
    loops: Loops, shared: int, tile: Tile, deep: int, staged: Sequence[int], device: Device
) -> int | None:
    """Return the steps of a sum that fit local memory; None where not even one does."""
    room = min(MAX_LOCAL_BYTES, device.local_memory or MAX_LOCAL_BYTES)
    for depth in DEPTHS:
        if sum(_bytes(loops, n, shared, tile, deep, depth) for n in staged) <= room and (
            depth == 1 or depth <= loops.size(deep)
        ):
            return depth
    return None


def _bytes(loops: Loops, number: int, shared: int, tile: Tile, deep: int, depth: int) -> int:
    """Return the bytes of local memory of an input, with rows padded by one element."""
    sizes = [1] * shared + [loops.size(k) for k in range(shared, len(loops.extents))]
    sizes[shared - 2], sizes[shared - 1], sizes[deep] = tile.rows, tile.columns, depth
    found = spans(loops.where[number], sizes)
    assert found is not None, "staged"
    bits = bits_of(element(loops.op.operands[number]))
    return prod(found[:-1]) * (found[-1] + 1) * max(bits // 8, 1)


def _levels(
    loops: Loops, shared: int, tile: Tile, deep: int, depth: int, staged: Sequence[int]
) -> Iterator[Level]:
    lanes = list(_lanes(shared - 2, shared - 1, tile))
    yield Level(FOR, deep, depth, actions=tuple(Action("stage", n) for n in staged))
    yield from (level for level in lanes if level.kind == LANE)
    for k in range(shared, len(loops.extents)):
        if k != deep or depth > 1:
            yield Level(FOR, k)
    yield from (level for level in lanes if level.kind == UNROLL)


def _lanes(row: int, column: int, tile: Tile) -> Iterator[Level]:
    yield Level(LANE, row, tile.own_rows)
    yield Level(LANE, column, tile.own_columns)
    if tile.own_rows > 1:
        yield Level(UNROLL, row)
    if tile.own_columns > 1:
        yield Level(UNROLL, column)
