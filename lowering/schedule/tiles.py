"""The register tile of a contraction that is read in place: rows by vectors.

A tile of r rows and v vectors keeps r * v sums in registers, beside v vectors of one operand and
one element of the other. Rows are shared out evenly, so tiles have r rows or one less; columns
fall to whole tiles and one with fewer vectors, of which the last may cover some columns again.
The cheapest tile for what is inside the edges wins.
"""

from __future__ import annotations

from xdsl.dialects.builtin import DYNAMIC_INDEX

MOST_ROWS, MOST_VECTORS = 14, 6
LONE = 16
"""So many vectors of a single row: the other operand is read in runs that are fetched ahead."""
IN_FLIGHT = 8
"""So many independent sums hide how long a multiply-add takes."""
BEGINNING = 12
"""What a tile costs before and after its sum, in multiply-adds, besides one for each vector."""
LOADS = 0.42
"""So many loads for each multiply-add are free."""
FOLDED = 4
"""C compilers read a vector anew for each multiply-add where so few rows use it."""
DEARER = 0.66
"""How much slower a tile is for each further load for each multiply-add."""
UNKNOWN = (6, 4), (6, 2)
"""The tiles of 32 and of 16 registers that do well where no size is known."""


def register_tile(high: int, wide: int, deep: int, width: int, registers: int) -> tuple[int, int]:
    """Return rows and vectors for a result of ``high`` by ``wide``; either may be dynamic."""
    usual = UNKNOWN[0] if registers >= 32 else UNKNOWN[1]
    if wide == DYNAMIC_INDEX:
        return (min(high, usual[0]) if high != DYNAMIC_INDEX else usual[0]), usual[1]
    columns = -(-wide // width)
    rows = range(1, MOST_ROWS + 1) if high != DYNAMIC_INDEX else (usual[0],)
    tiles = [
        (r, v)
        for v in range(1, (LONE if high == 1 else MOST_VECTORS) + 1)
        for r in rows
        if r * v + v + 1 <= registers
        and v * width <= max(wide, width)
        and (high == DYNAMIC_INDEX or r <= high)
    ]
    return min(tiles, key=lambda t: (_time(t, high, columns, deep), -t[0] * t[1]), default=(1, 1))


def _time(tile: tuple[int, int], high: int, columns: int, deep: int) -> float:
    """Return what the whole result costs, in multiply-adds of one vector."""
    rows, vectors = tile
    along = [(columns // vectors, vectors), (1 if columns % vectors else 0, columns % vectors)]
    if high == DYNAMIC_INDEX:
        down = [(1, rows)]
    else:
        tiles = -(-high // rows)
        short = tiles * rows - high
        down = (
            [(tiles - short, rows), (short, rows - 1)]
            if short <= tiles
            else [(high // rows, rows), (1, high % rows)]
        )
    return sum(n * m * _one(r, v, deep) for n, r in down for m, v in along if n * m)


def _one(rows: int, vectors: int, deep: int) -> float:
    """Return what one tile costs."""
    if not rows or not vectors:
        return 0.0
    sums = rows * vectors
    loads = (rows + (sums if rows <= FOLDED else vectors)) / sums
    slower = 1 + DEARER * max(0.0, loads - LOADS)
    return deep * max(sums, IN_FLIGHT) * slower + sums + BEGINNING
