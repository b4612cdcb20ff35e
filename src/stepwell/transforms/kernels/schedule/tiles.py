"""The register tile of a contraction that is read in place: rows by vectors.

A tile of r rows and v vectors keeps r * v sums in registers, beside v vectors of one operand and
one element of the other. Rows are shared out evenly, so tiles have r rows or one less, or all
have r and the last begins early where that takes few rows twice; columns fall to whole tiles and
one with fewer vectors, of which the last may cover some columns again. The cheapest tile for what
is inside the edges wins; as each kind of tile is written out, code has a price too.
"""

from __future__ import annotations

from xdsl.dialects.builtin import DYNAMIC_INDEX

MOST_ROWS, MOST_VECTORS = 14, 6
LONE = 16
"""So many vectors of a single row: the other operand is read in runs that are fetched ahead."""
BEGINNING = 12
"""What a tile costs before and after its sum, in multiply-adds, besides one for each vector."""
LOADS = 0.42
"""So many loads for each multiply-add are free."""
FOLDED = 4
"""C compilers read a vector anew for each multiply-add where so few rows use it."""
DEARER = 0.66
"""How much slower a tile is for each further load for each multiply-add."""
REPEATED = 32
"""As for linalg-to-loops: the part of the rows that the last tile may take a second time."""
WRITTEN = 500
"""So many sums in the code are worth the time of the whole result: one kind less is
worth about 5 %."""
UNKNOWN = (6, 4), (6, 2)
"""The tiles of 32 and of 16 registers that do well where no size is known."""


def register_tile(
    high: int, wide: int, deep: int, width: int, registers: int, in_flight: int
) -> tuple[int, int]:
    """Return rows and vectors for a result of ``high`` by ``wide``; either may be dynamic.

    in_flight : so many independent sums hide how long a multiply-add takes
    """
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
    if not tiles:
        return 1, 1
    return min(tiles, key=lambda t: (_cost(t, high, columns, deep, in_flight), t))


def _cost(tile: tuple[int, int], high: int, columns: int, deep: int, in_flight: int) -> float:
    """Return what the whole result costs, in multiply-adds of one vector, its code included."""
    kinds = _kinds(tile, high, columns)
    time = sum(count * _one(rows, vectors, deep, in_flight) for count, rows, vectors in kinds)
    return time * (1 + sum(rows * vectors for _, rows, vectors in kinds) / WRITTEN)


def _kinds(tile: tuple[int, int], high: int, columns: int) -> list[tuple[int, int, int]]:
    """Return how many tiles there are of so many rows by so many vectors."""
    rows, vectors = tile
    along = [(columns // vectors, vectors), (1 if columns % vectors else 0, columns % vectors)]
    if high == DYNAMIC_INDEX:
        down = [(1, rows)]
    else:
        tiles = -(-high // rows)
        short = tiles * rows - high
        if short * REPEATED <= high:
            down = [(tiles, rows)]
        elif short <= tiles:
            down = [(tiles - short, rows), (short, rows - 1)]
        else:
            down = [(high // rows, rows), (1, high % rows)]
    return [(n * m, r, v) for n, r in down for m, v in along if n * m * r * v]


def _one(rows: int, vectors: int, deep: int, in_flight: int) -> float:
    """Return what one tile costs."""
    sums = rows * vectors
    loads = (rows + (sums if rows <= FOLDED else vectors)) / sums
    slower = 1 + DEARER * max(0.0, loads - LOADS)
    return deep * max(sums, in_flight) * slower + sums + BEGINNING
