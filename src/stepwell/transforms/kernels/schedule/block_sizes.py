"""Choose the sizes of the tiles, blocks and strips of contractions.

The depth of a block is the only one of these sizes that the result depends on (by rounding), so it
is computed from the sizes of the operands and the machine's caches and vectors, not its threads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir.affine import AffineExpr

from stepwell.analysis.levels.legality import MAX_SCRATCH_BYTES
from stepwell.analysis.structured import bits_of, element, linear, stride
from stepwell.core.dot_instructions import WORD
from stepwell.core.machine import Machine
from stepwell.transforms.kernels.schedule.reasons import explain_choice
from stepwell.transforms.kernels.schedule.vectors import MIN_LANES, Loops, busy, full_lanes, page

PANEL_PART_OF_L1 = 3, 4
"""The part of the L1 cache that a packed panel of columns may take, next to rows."""
PANEL_PART_OF_L2 = 3, 32
"""The part of the L2 cache instead, where the L1 cache is too small: it also holds the rows of a
block and the next panel. On Zen 4 a panel of 64 columns then has a depth of 384, the best of those
measured; on Granite Rapids, with twice the cache, it has 768, the best measured there."""
MIN_DEPTH = 256
"""Depth of a block below which loading and storing sums for each part costs too much."""
MAX_DEPTH = 1024
"""Depth of a block beyond which less than 1 % of that is saved."""
TRANSPOSED_FEATURES = 16
"""Features that filters are packed in at a time, transposed through registers: a multiple has no
tail."""
TILES = {
    (6, 4): 1.0,
    (5, 4): 0.985,
    (8, 3): 0.97,
    (5, 5): 0.97,
    (7, 3): 0.965,
    (4, 4): 0.96,
    (4, 6): 0.93,
    (12, 2): 0.9,
    (14, 1): 0.55,
}
"""Rows and vectors of register tiles for 32 registers, and the part of the peak each reaches."""
TWO_PASS_TILES = {
    (6, 4): 1.0,
    (8, 3): 0.99,
    (5, 5): 0.985,
    (5, 4): 0.985,
    (7, 3): 0.965,
    (4, 4): 0.96,
    (12, 2): 0.98,
    (14, 2): 0.98,
    (14, 1): 0.98,
    (12, 1): 0.98,
}
"""The same for vectors that are computed in two passes, beside which loads take half as long: means
of products of 303 to 751 rows, of which those outside of the edges do not count (Zen 4). The first
six reach 0.99 to 1.01, tiles of one vector 0.96 to 1.01. A panel of one vector is packed in runs of
one line: that takes as many tiles as repay packing (1 x 1 from 1098 to 38 features: 1.02), and an
operand beyond the L2 cache; one within it fills last vectors in place (300 x 300 x 300: 1.02)."""
TALL_TILES = {(14, 2): 1.0, (13, 2): 1.0, (12, 2): 0.99, (8, 3): 0.98}
"""Tiles that read less of a panel for each multiply-add, the part of the peak each reaches where
panels come from the L2 cache (Granite Rapids; 5 x 5 reaches 0.93)."""
ALONG_TILES = {(14, 1): 1.0, (7, 1): 0.96, (4, 2): 0.93, (7, 2): 0.9, (4, 1): 0.85}
"""The same where both operands vary with the columns: one vector read serves several rows."""
NARROW_ALONG_TILES = {(7, 1): 1.0, (6, 1): 0.98, (4, 1): 0.9}
NARROW_TILES = {(6, 2): 1.0, (5, 2): 0.98, (4, 3): 0.97, (4, 2): 0.94, (8, 1): 0.6}
"""The same tiles for 16 registers."""
HALF_WIDTH_PEAK = 0.95
"""The part of the peak that vectors of half the width reach on a machine that computes only that
many lanes at once."""
PACKED_HALF_WIDTH_PEAK = 0.99
"""The same where a panel is read: 6 x 4 vectors reach 0.97 to 1.01 of those of the whole width."""
MIN_TILE_ROWS = 3
"""Rows below which a tile takes as long as one of this many rows: it waits for its columns."""
MAX_SKINNY_ROWS = 16
"""Rows of a product up to which it is bound by reading the column operand."""
MAX_TILE_ROWS = 14
"""Rows of a register tile beyond which no room is left for two vectors."""
MEMORY_BOUND_ROWS = 4
"""Rows of a product up to which it is bound by memory even if the last-level cache holds
everything."""
MIN_STRIP_COLUMNS = 512
"""Columns of a strip, at least: memory is faster in longer runs."""
STRIP_L1_DIVISOR = 2
"""The part of the L1 cache, 1/2, that one row of a strip of the operand may take."""
MIN_PREFETCHED_COLUMNS = 128
"""Columns of a strip, at least, for `MEMORY_BOUND_ROWS` or fewer rows, which prefetch."""
STRIP_UNIT_COLUMNS = 64
"""Columns that the width of a strip is a multiple of."""
SUMS_L2_DIVISOR = 8
"""The part of the L2 cache that the sums of a strip may take, at most (1/8)."""
MIN_L2_BYTES = 1 << 18
"""Bytes of the smallest L2 cache of a CPU with vectors."""
MIN_PANELS = 16
"""Panels that keep a few threads busy: one of two threads waits for 6 % of the time at most."""
MIN_BLOCKS = 32
"""Blocks that keep a few threads evenly busy: one waits for 3 % of the time at most."""
MIN_FAR_BLOCKS = 8
"""Blocks that suffice if each block of rows packs again an operand that L1 does not hold."""
MAX_WAITING = 0.03
"""The part of the time that threads may wait for the longest before blocks are split further."""
MIN_BLOCK_TILES = 8
"""Register tiles of rows that read a panel of columns from the L1 cache repay packing it there."""
MIN_BLOCK_PANELS = 2
"""Panels of columns that a block has at least as many rows as: fewer rows read columns from beyond
the L2 cache more often than more rows are read from there."""
MAX_WORDS_DEPTH_BYTES = 2048
"""Depth in bytes of a panel of words that leaves room for rows in the L2 cache."""
WORD_BYTES = WORD // 8
"""Bytes of a word."""
ROW_PADDING_BYTES = 64
"""Bytes of padding between packed rows."""
COLUMN_PACKING_COST = 2
"""Cost of packing columns as words, relative to copying rows."""
MAX_BLOCK_LINES = 16
"""Lines of an image that repay packing filters for them."""
BLOCKS_PER_THREAD = 2
"""Blocks for each thread that keep it busy."""
MIN_BLOCK_PRODUCTS = 1 << 19
"""Products of bytes that are worth a block of their own."""
SPLIT = "and the machine computes with so many lanes at once"


def usual_tile(machine: Machine) -> tuple[int, int]:
    """Return rows and vectors of the register tile that reaches most of the peak."""
    return next(iter(TILES if machine.vector_registers >= 32 else NARROW_TILES))


def lanes_of_columns(found: Loops, axis: int, width: int, machine: Machine) -> int:
    """Return the lanes with the shortest tail of columns that are read in place.

    Half the lanes are possible if the machine computes only that many at once.
    """
    half, wide = width // 2, found.extents[axis]
    whole = width == full_lanes([found], machine) and machine.is_halved
    picks = any(stride(index, axis) not in (0, 1) for index in found.accesses)
    if wide == DYNAMIC_INDEX or half < MIN_LANES or picks or not whole:
        return width
    return half if -(-wide // half) < HALF_WIDTH_PEAK * 2 * -(-wide // width) else width


def fastest_tile(
    found: Loops,
    shared: int,
    width: int,
    bytes: int,
    machine: Machine,
    along: bool,
    panels: bool = False,
    words: bool = False,
) -> tuple[tuple[int, int], int]:
    """Return the fastest register tile and the lanes of its vectors.

    Half the lanes are possible if the machine computes only that many at once.

    panels : whether rows are read from panels as wide as those of columns, in whole tiles
    words : whether operands are packed as words for dot products
    """
    many = machine.vector_registers >= 32
    if along:
        tiles = ALONG_TILES if many else NARROW_ALONG_TILES
        return _tile(found, shared, width, tiles, machine)[0], width
    usual, half = TILES if many else NARROW_TILES, width // 2
    split = many and not words and 0 < machine.vector_unit <= half * bytes * 8
    tiles, peak = (TWO_PASS_TILES, PACKED_HALF_WIDTH_PEAK) if split else (usual, HALF_WIDTH_PEAK)
    if panels:
        tiles, usual = (
            {tile: part for tile, part in each.items() if tile[1] * half % tile[0] == 0}
            for each in (tiles, usual)
        )
    operand = prod(map(found.size, range(shared - 1, len(found.parallel)))) * bytes
    repaid = found.size(shared - 2) >= MIN_BLOCK_TILES * MAX_TILE_ROWS
    if split and not (repaid and operand > machine.l2):
        tiles = {tile: part for tile, part in tiles.items() if tile[1] > 1}
    tile, reached = _tile(found, shared, width, tiles, machine)
    if half < MIN_LANES or not 0 < machine.vector_unit <= half * bytes * 8:
        return tile, width
    other, reaches = _tile(found, shared, half, usual, machine)
    if reaches * peak <= reached:
        return tile, width
    wide = found.size(shared - 1)
    explain_choice(
        found.op, lambda: f"vectors of {half}: {wide} columns fill more of them, {SPLIT}"
    )
    return other, half


def _tile(
    found: Loops,
    shared: int,
    width: int,
    tiles: Mapping[tuple[int, int], float],
    machine: Machine,
) -> tuple[tuple[int, int], float]:
    """Return rows and vectors of the fastest register tile, and the part of the peak it reaches.

    Only results inside the edges count. Few rows of one vector wait for their own sums.
    """
    high, wide = found.extents[shared - 2], found.size(shared - 1)

    def worth(tile: tuple[int, int]) -> float:
        rows, columns = tile[0], tile[1] * width
        inside = wide / (-(-wide // columns) * columns) if wide else 1.0
        if high != DYNAMIC_INDEX and high:
            left, least = high % rows, MIN_TILE_ROWS if tile[1] > 1 else machine.in_flight
            inside *= high / (high - left + (max(left, least) if left else 0))
        return inside * tiles[tile]

    tile = max(tiles, key=worth)
    return tile, worth(tile)


def tall_tile(found: Loops, shared: int, width: int, machine: Machine) -> tuple[int, int]:
    """Return a tile of many rows for a window, whose panel is as deep as all its places."""
    return _tile(found, shared, width, TALL_TILES, machine)[0]


def tile_of_few(high: int, wide: int, width: int, machine: Machine) -> tuple[int, int]:
    """Return a tile of all rows, if they are few, by as many vectors as fit the registers.

    The packed operand is then read once, sequentially; enough panels remain for the threads.
    """
    tiles = -(-high // MAX_TILE_ROWS)
    rows = -(-high // tiles)
    vectors = max(min((machine.vector_registers - 1) // (rows + 1), 8), 1)
    while wide and vectors > 2 and -(-wide // (vectors * width)) < busy(machine, MIN_PANELS):
        vectors -= 1
    return rows, min(vectors, -(-wide // width)) if wide else vectors


def strips_from(high: int, meeting: bool, machine: Machine) -> int:
    """Return the bytes from which an operand of so few rows is read in strips.

    An operand that stays in the last-level cache is not, unless there are so few rows that this
    cache is the bound too: for one to four rows half of the L2 cache is enough. From memory 768 x
    768 of bf16 take half of the time in strips, and as long as before from the caches (Zen 4).

    meeting : whether its rows evict each other from the L1 cache
    """
    if high <= MEMORY_BOUND_ROWS:  # other reads of a call evict half of that cache
        return machine.l2 // 2
    return max(machine.last_cache // (4 if meeting else 1), machine.l2)


def strip_of(
    found: Loops, packed: int, shared: int, bytes: int, machine: Machine
) -> tuple[int, int] | None:
    """Return columns and depth of a strip of a large operand that few rows read.

    Strips help where memory is the bound, the more so the fewer the rows, and where rows would
    evict each other from a cache. Strips are equally long; their number is a multiple of the
    threads.
    """
    op = found.op
    high, wide = found.extents[shared - 2], found.extents[shared - 1]
    known = DYNAMIC_INDEX not in (high, wide) and len(found.parallel) == shared + 1
    if not known or stride(found.where[packed], shared - 1) != 1 or not 0 < high <= MAX_SKINNY_ROWS:
        return None
    each = bits_of(element(op.operands[packed])) // 8
    meeting = found.size(shared) * each % page(machine) == 0
    if bytes < strips_from(high, meeting, machine):
        return None
    least = MIN_PREFETCHED_COLUMNS if high <= MEMORY_BOUND_ROWS else MIN_STRIP_COLUMNS
    run = machine.l1 // STRIP_L1_DIVISOR
    sum = bits_of(element(op.outputs[0])) // 8
    most = min(
        run // max(each, 1),
        max(machine.l2, MIN_L2_BYTES) // SUMS_L2_DIVISOR // (high * max(sum, 1)),
    )
    count = -(-wide // (machine.threads * most)) * machine.threads
    columns = -(-max(-(-wide // max(count, 1)), least) // STRIP_UNIT_COLUMNS) * STRIP_UNIT_COLUMNS
    return (columns, machine.streams) if wide >= 2 * least and most >= least else None


def held_and_computing(machine: Machine) -> tuple[float, float]:
    """Return the cycles that a line beyond L2 holds a buffer for misses, and a tile's step takes.

    Where the first are more, a tile that asked for one line in each step would wait for buffers.
    """
    tile = usual_tile(machine)
    return machine.l3_latency / machine.misses, tile[0] * tile[1] / machine.fma_rate


def depth_of(machine: Machine) -> int:
    """Return the largest depth of a block of f32 for panels as wide as the fastest tile."""
    column = usual_tile(machine)[1] * machine.full_lanes(32) * 4
    part, of = PANEL_PART_OF_L1
    if (deep := machine.l1 * part // of // column) < MIN_DEPTH:
        part, of = PANEL_PART_OF_L2
        deep = max(machine.l2 * part // of // column, MIN_DEPTH)
    return min(deep, MAX_DEPTH)


def block_of(
    found: Loops,
    first: int,
    shared: int,
    tile: tuple[int, int],
    machine: Machine,
    bytes: int,
    in_panels: bool = False,
) -> tuple[int, ...]:
    """Return the block's sizes of the shared loops from ``first``, and its depth.

    Results depend on the depth only.

    in_panels : whether rows are read from panels: hardware prefetches little of what a tile reads
        of one, so that the L2 cache should hold the rows of a block in all parts of the sum
    """
    rows, columns = tile
    last = len(found.parallel) - 1
    before = max(prod(map(found.size, range(shared, last))), 1)
    deep = _depth(found, before, columns * bytes, machine)
    parts = found.extents[last] == DYNAMIC_INDEX or found.size(last) > deep
    sizes = [found.size(k) for k in range(first, shared - 1)]
    wide = found.size(shared - 1)
    panels = [min(columns, wide - k) for k in range(0, wide, columns)]
    panels *= prod(map(found.size, range(first)))
    packed = wide * before * found.size(last) * bytes
    least = busy(machine, MIN_BLOCKS if packed <= machine.l1 else MIN_FAR_BLOCKS)
    least = least if machine.threads > 1 else 1  # each block of rows packs the columns again
    wanted = _evenly_shared(-(-prod(sizes) // rows), panels, least, machine.threads) * rows
    unknown = first == shared - 2 and found.extents[first] == DYNAMIC_INDEX
    most = machine.l2 // 2 // (deep * bytes)  # rows counted at launch are split evenly there
    of_sum = machine.l2 // 2 // (max(found.size(last), 1) * bytes)
    most = of_sum if in_panels and of_sum >= MIN_BLOCK_PANELS * columns else most
    most = max(rows, most if unknown else min(most, wanted))
    lengths, taken, held = list[int](), 1, 1
    for size in reversed(sizes):
        here = (
            min(most // taken, MAX_SCRATCH_BYTES // (columns * bytes) // held)
            if parts
            else most // taken
        )
        unit = 1 if lengths else rows
        here = max(here // unit, 1) * unit if unknown else even(size, here, unit)
        lengths.insert(0, here)
        taken *= max(min(here, size), 1)
        held *= here
    for k, size in enumerate(sizes[:-1]):  # the windows of several lines
        while lengths[k] > 1 and _touched(found, first, lengths, deep) * bytes > machine.l2 // 2:
            lengths[k] = even(size, lengths[k] - 1, 1)
    return *lengths, columns, max(deep, 1)


def _evenly_shared(high: int, panels: Sequence[float], most: int, threads: int) -> int:
    """Return the tiles of rows of a block: of the fewest blocks that threads share evenly.

    A thread takes one run of blocks, as long as the others', so that more blocks do not help. Each
    block has tiles enough to repay packing a panel, unless a thread would have none.

    high : tiles of rows
    panels : the widths of the blocks beside each other for the same rows
    most : blocks in all that need not be exceeded
    """
    found, least = max(high, 1), math.inf
    beside = max(len(panels), 1)
    repaid = min(-(-most // beside), high // MIN_BLOCK_TILES)
    for count in range(1, max(repaid, -(-threads // beside)) + 1):
        tall = max(-(-high // count), 1)
        rows = [min(tall, high - since) for since in range(0, high, tall)]
        blocks = [tiles * wide for tiles in rows for wide in panels]
        waits = _longest(blocks, threads) * threads / (sum(blocks) or 1.0)
        if waits < least - MAX_WAITING:
            found, least = tall, waits
    return found


def _longest(blocks: Sequence[float], threads: int) -> float:
    """Return the longest of the runs of blocks that threads take."""
    each, more = divmod(len(blocks), threads)
    begins = [k * each + min(k, more) for k in range(threads + 1)]
    return max(sum(blocks[since:end]) for since, end in pairwise(begins))


def _depth(found: Loops, before: int, column: int, machine: Machine) -> int:
    """Return the depth of a block.

    before : iterations of the loops of the sum before the last one
    column : bytes of a row of a panel
    """
    last = len(found.parallel) - 1
    deepest = MAX_SCRATCH_BYTES // column
    alone = found.parallel[last - 1]  # the last loop is the only one of the sum
    deepest = max((min(depth_of(machine), deepest) if alone else deepest) // before, 1)
    if found.extents[last] == DYNAMIC_INDEX:
        return deepest
    cut = found.size(last) > deepest >= TRANSPOSED_FEATURES
    unit = 8 if before == 1 else TRANSPOSED_FEATURES if cut else 1
    return even(found.size(last), deepest, unit)


def _touched(found: Loops, first: int, lengths: Sequence[int], deep: int) -> int:
    """Return how many elements of the row operand a block reads.

    A strided window reads more of an image than it has positions.
    """
    rows = range(first, first + len(lengths))
    last = len(found.parallel) - 1
    sizes = {k: min(n, found.size(k)) for k, n in zip(rows, lengths, strict=True)}
    sizes |= {k: found.size(k) for k in range(rows.stop + 1, last)} | {last: deep}

    def reach(expr: AffineExpr) -> int:
        form = linear(expr)
        factors = form[0].items() if form else ()
        return 1 + sum(abs(factor) * (sizes.get(k, 1) - 1) for k, factor in factors)

    return max(
        prod(map(reach, each.place)) for each in found.operands if not each.loops.isdisjoint(rows)
    )


def block_of_words(
    found: Loops,
    first: int,
    shared: int,
    tile: tuple[int, int],
    machine: Machine,
    terms: int,
    in_place: bool,
) -> tuple[int, ...]:
    """Return the sizes of blocks that pack both operands as words of ``terms`` elements.

    Rows are packed once for each block of columns, and columns, at a higher cost, once for each
    block of rows; the choice is the cheapest that keeps all threads busy. Of images a block takes
    several lines, for which columns are packed once. No result depends on any of the sizes.

    in_place : whether rows are read in place, which needs no scratch, and makes blocks as deep as
        a panel may be
    """
    rows, columns = tile
    last = len(found.parallel) - 1
    high, wide, long = (found.size(k) for k in (shared - 2, shared - 1, last))
    size = WORD_BYTES // terms
    long *= size  # the sum is counted in bytes from here on
    before = max(prod(map(found.size, range(shared, last))), 1)
    deep = _depth_of_words(found, long, before, columns, in_place)
    whole = found.extents[last] != DYNAMIC_INDEX and long <= deep
    depth = deep // size
    lanes, bytes = machine.full_lanes(WORD), before * deep
    most = machine.l2 // 2 // bytes
    if not in_place:
        most = min(most, MAX_SCRATCH_BYTES // (bytes + ROW_PADDING_BYTES) // lanes * lanes)
    most = max((most if whole else min(most, MAX_SCRATCH_BYTES // (4 * columns))) // rows, 1) * rows
    batch = max(prod(map(found.size, range(shared - 2))), 1)
    long *= before
    wanted = BLOCKS_PER_THREAD * machine.threads if machine.threads > 1 else 1
    wanted = max(min(-(-wanted // batch), high * wide * long // MIN_BLOCK_PRODUCTS), 1)
    fewest, panels = -(-high // most), -(-wide // columns)
    if prod(map(found.size, range(first, shared - 2))) > 1:
        rows = even(high, most, rows)
        held = MAX_BLOCK_LINES if whole else MAX_SCRATCH_BYTES // (4 * columns * rows)
        lines = found.size(shared - 3)
        each = -(-batch // max(lines, 1)) * panels * fewest
        busy = max(lines * each // (BLOCKS_PER_THREAD * machine.threads), 1)
        held = even(lines, max(min(MAX_BLOCK_LINES, held, busy), 1), 1)
        return (*(1 for _ in range(first, shared - 3)), held, rows, columns, depth)
    down, along = _cheapest((high, wide), (fewest, panels), wanted)
    across = -(-panels // along) * columns if whole else columns
    return even(high, min(most, max(-(-high // down), 1)), rows), max(across, columns), depth


def _cheapest(sizes: tuple[int, int], bounds: tuple[int, int], wanted: int) -> tuple[int, int]:
    """Return how many blocks of rows and of columns pack least, of those that are enough.

    sizes : rows and columns of the result
    bounds : blocks of rows, at least, and panels of columns
    wanted : blocks that are enough
    """
    (high, wide), (fewest, panels) = sizes, bounds
    rows = range(max(fewest, 1), max(fewest, 1) + wanted)
    choices = [(n, m) for n in rows for m in range(1, min(panels, wanted) + 1)]
    enough = [(n, m) for n, m in choices if n * m >= wanted] or choices[-1:]
    return min(enough, key=lambda c: (c[1] * high + COLUMN_PACKING_COST * c[0] * wide, c))


def _depth_of_words(found: Loops, long: int, before: int, columns: int, in_place: bool) -> int:
    """Return the depth, in bytes, of a block of words of a sum of ``long`` bytes."""
    most = MAX_SCRATCH_BYTES // columns
    most = (most if in_place else min(most, MAX_WORDS_DEPTH_BYTES)) // before
    deepest = max(most // ROW_PADDING_BYTES, 1) * ROW_PADDING_BYTES
    if found.extents[-1] == DYNAMIC_INDEX:
        return max(deepest // 2, ROW_PADDING_BYTES)
    return even(long, deepest, ROW_PADDING_BYTES if before == 1 else WORD_BYTES)


def even(size: int, most: int, unit: int) -> int:
    """Return the length of equal runs of at most ``most``, in whole units, that cover ``size``."""
    most = max(most // unit, 1) * unit
    runs = -(-size // most)
    return -(-size // runs // unit) * unit if runs else unit
