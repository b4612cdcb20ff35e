"""Choose the register tile of a contraction that is read in place: rows by vectors.

A tile of r rows and v vectors keeps r * v sums in registers, beside v vectors of one operand and
one element of the other. All tiles have r rows but the last, which has those that are left, or is
shifted back where that recomputes few rows; columns are divided into whole tiles
and one with fewer vectors, of which the last may overlap. The tile with the least cost inside the
edges is chosen; as each kind of tile is unrolled, code has a cost too.
"""

from __future__ import annotations

from xdsl.dialects.builtin import DYNAMIC_INDEX

MAX_ROWS, MAX_VECTORS = 14, 6
MAX_ROW_VECTORS = 16
"""Vectors of a tile of a single row: hardware prefetches the other operand, read in runs."""
TILE_OVERHEAD = 12
"""Cost of a tile before and after its sum, in multiply-adds, besides one for each vector."""
FREE_LOADS = 0.42
"""Loads per multiply-add that cost nothing."""
MAX_FOLDED_ROWS = 4
"""Rows up to which C compilers reload a vector for each multiply-add that uses it."""
LOAD_COST = 0.66
"""Relative cost of each further load per multiply-add."""
MIN_ROWS_PER_RECOMPUTED = 32
"""The last tile overlaps its neighbour if at most 1/32 of the rows is recomputed."""
PREFETCH_STEPS = 32
"""Steps of a tile's sum from a prefetch to its use: at two cycles a step or more, a miss in the L2
cache is over by then."""
UNROLLED_SUMS_COST = 500
"""Unrolled sums that cost as much as computing the whole result: one kind of tile less is worth
about 5 %."""
DYNAMIC_TILES = (6, 4), (6, 2)
"""The tiles of 32 and of 16 registers that do well where no size is known."""


def register_tile(
    high: int,
    wide: int,
    deep: int,
    width: int,
    registers: int,
    in_flight: int,
    stride: int = 1,
    overlaps: bool = True,
) -> tuple[int, int]:
    """Return rows and vectors for a result of ``high`` by ``wide``; either may be dynamic.

    in_flight : independent sums that hide the latency of a multiply-add
    stride : of the operand along the columns; each of so many vectors is loaded, then shuffled
    overlaps : whether the last vector of the columns may overlap its neighbour
    """
    usual = DYNAMIC_TILES[0] if registers >= 32 else DYNAMIC_TILES[1]
    if wide == DYNAMIC_INDEX:
        return (min(high, usual[0]) if high != DYNAMIC_INDEX else usual[0]), usual[1]
    columns = -(-wide // width)
    rows = range(1, MAX_ROWS + 1) if high != DYNAMIC_INDEX else (usual[0],)
    tiles = [
        (r, v)
        for v in range(1, (MAX_ROW_VECTORS if high == 1 else MAX_VECTORS) + 1)
        for r in rows
        if r * v + v + 1 <= registers
        and v <= max(columns if overlaps else wide // width, 1)
        and (high == DYNAMIC_INDEX or r <= high)
    ]
    if not tiles:
        return 1, 1
    each = 2 * stride - 1

    def cost(tile: tuple[int, int]) -> float:
        return _cost(_kinds(tile, high, columns), deep, in_flight, each)

    return min(tiles, key=lambda tile: (cost(tile), tile))


def _cost(kinds: list[tuple[int, int, int]], deep: int, in_flight: int, each: int) -> float:
    """Return the cost of the whole result, in multiply-adds of one vector, including its code."""
    time = sum(count * _one(rows, vectors, deep, in_flight, each) for count, rows, vectors in kinds)
    return time * (1 + sum(rows * vectors for _, rows, vectors in kinds) / UNROLLED_SUMS_COST)


def _kinds(tile: tuple[int, int], high: int, columns: int) -> list[tuple[int, int, int]]:
    """Return the kinds of tiles: the number of each, its rows and its vectors."""
    rows, vectors = tile
    along = [(columns // vectors, vectors), (1 if columns % vectors else 0, columns % vectors)]
    if high == DYNAMIC_INDEX:
        down = [(1, rows)]
    else:
        tiles = -(-high // rows)
        short = tiles * rows - high
        if short * MIN_ROWS_PER_RECOMPUTED <= high:
            down = [(tiles, rows)]
        else:
            down = [(high // rows, rows), (1, high % rows)]
    return [(n * m, r, v) for n, r in down for m, v in along if n * m * r * v]


def _one(rows: int, vectors: int, deep: int, in_flight: int, each: int) -> float:
    """Return the cost of one tile, for which each vector takes ``each`` loads and shuffles."""
    sums = rows * vectors
    loads = (rows + (sums if each == 1 and rows <= MAX_FOLDED_ROWS else vectors * each)) / sums
    slower = 1 + LOAD_COST * max(0.0, loads - FREE_LOADS)
    return deep * max(sums, in_flight) * slower + sums + TILE_OVERHEAD
