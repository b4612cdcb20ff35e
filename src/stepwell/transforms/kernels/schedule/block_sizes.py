"""How large the tiles, blocks and stretches of contractions are.

The depth of a block is the only one of these sizes that the result depends on (by rounding), so it
depends on the sizes of the operands and the machine's caches and vectors, not on its threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir.affine import AffineExpr

from stepwell.analysis.structured import element, indices, linear
from stepwell.transforms.kernels.schedule.reasons import because
from stepwell.transforms.kernels.schedule.vectors import (
    NARROWEST,
    Loops,
    Vectors,
    bits_of,
    full_lanes,
    stride,
)

IN_L1 = 3, 4
"""The part of the first cache that a sliver of packed columns may take, rows beside it, ..."""
IN_L2 = 3, 32
"""... and of the second where the first is too small: there rows of a block and what is packed next
lie too. On Zen 4 a sliver of 64 columns is 384 deep then, which was the best of those measured;
on Granite Rapids, with twice the cache, it is 768, as was measured there."""
SHALLOW = 256
"""A part of a sum less deep begins and ends too often: sums are loaded and stored for each."""
DEEPEST_SUM = 1024
"""A deeper one saves less than 1 % of that."""
SCRATCH = 1 << 18
"""Bytes of packed operand, or of partial sums, that a block may have on the stack."""
TURNED = 16
"""Filters are packed in squares of as many lanes, so parts of so many features leave none over."""
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
"""Rows and vectors of register tiles, of 32 registers, and the part of the peak each reaches."""
ALONG = {(14, 1): 1.0, (7, 1): 0.96, (4, 2): 0.93, (7, 2): 0.9, (4, 1): 0.85}
"""The same where both operands vary with the columns: one vector read serves several rows."""
NARROW_ALONG = {(7, 1): 1.0, (6, 1): 0.98, (4, 1): 0.9}
NARROW_TILES = {(6, 2): 1.0, (5, 2): 0.98, (4, 3): 0.97, (4, 2): 0.94, (8, 1): 0.6}
"""Those for 16 registers."""
HALVED = 0.95
"""The part of the peak that vectors of half the width reach, where a machine computes with so
many lanes at once anyway."""
LEAST = 3
"""A tile of fewer rows waits for its columns, as long as one of so many."""
SKINNY = 16
"""A product of at most so many rows waits for the operand of the columns alone."""
MOST_ROWS = 14
"""A register tile of more rows leaves no room for two vectors."""
LONE = 4
"""A product of at most so many rows waits for memory even where the last cache holds it all."""
STRETCH = 512, 2
"""Columns of one row of a large operand that are worth reading in one go, and at most one in so
many bytes of the first cache: the longer the runs the better memory answers; sums wait there."""
FEW_COLUMNS = 128
"""The same for so few rows that memory is asked for what follows while they are added up."""
RUNS = 8
"""So many rows of it are read side by side: more runs than that are not fetched ahead."""
UNIT = 64
"""A stretch is a multiple of so many columns."""
SUMS = 8
"""Sums that wait while a stretch is read take one in so many bytes of the second cache at most."""
LEAST_L2 = 1 << 18
"""No processor with vectors has a smaller one."""
SLIVERS = 16
"""So many slivers keep a few threads busy: one of two waits for 6 % of the time at most."""
MANY = 32
"""So many blocks keep a few threads busy, and evenly so: one waits for 3 % of the time at most."""
FEW = 8
"""So many do where each block of rows reads a packed operand anew that is too large for a cache."""
DEEPEST = 2048
"""A sliver of words of so much depth leaves the second cache room for rows beside it."""
EACH = 4
"""Bytes of a word."""
BESIDE = 64
"""Bytes that packed rows lie apart."""
DEARER = 2
"""How much more laying columns out as words costs than copying rows."""
LINES = 16
"""So many lines of an image repay packing filters for them."""
BUSY = 2
"""So many blocks for each thread keep it busy."""
PRODUCTS = 1 << 19
"""So many products of bytes are worth a block of their own."""
SPLIT = "and the machine computes with so many lanes at once"


def lanes_of_columns(found: Loops, axis: int, width: int, machine: Vectors) -> int:
    """Return how many lanes leave least over of columns that are read in place.

    Halves of whole vectors do where the machine computes with so many lanes at once anyway.
    """
    half, wide = width // 2, found.extents[axis]
    whole = width == full_lanes([found], machine) and 0 < machine.unit <= machine.bits // 2
    picks = any(stride(index, axis) not in (0, 1) for index in found.accesses)
    if wide == DYNAMIC_INDEX or half < NARROWEST or picks or not whole:
        return width
    return half if -(-wide // half) < HALVED * 2 * -(-wide // width) else width


def fastest_tile(
    found: Loops, shared: int, width: int, bytes: int, machine: Vectors, along: bool
) -> tuple[tuple[int, int], int]:
    """Return the register tile and how many lanes its vectors have.

    Narrower vectors may serve where the machine computes with so few lanes at once anyway.
    """
    many = machine.registers >= 32
    if along:
        return _tile(found, shared, width, ALONG if many else NARROW_ALONG)[0], width
    tiles = TILES if many else NARROW_TILES
    tile, reached = _tile(found, shared, width, tiles)
    half = width // 2
    if half < NARROWEST or not 0 < machine.unit <= half * bytes * 8:
        return tile, width
    other, reaches = _tile(found, shared, half, tiles)
    if reaches * HALVED <= reached:
        return tile, width
    wide = found.size(shared - 1)
    because(found.op, lambda: f"vectors of {half}: {wide} columns fill more of them, {SPLIT}")
    return other, half


def _tile(
    found: Loops, shared: int, width: int, tiles: Mapping[tuple[int, int], float]
) -> tuple[tuple[int, int], float]:
    """Return rows and vectors of the register tile, and the part of the peak that it reaches.

    It is the fastest for what is inside the edges.
    """

    high, wide = found.extents[shared - 2], found.size(shared - 1)

    def worth(tile: tuple[int, int]) -> float:
        rows, columns = tile[0], tile[1] * width
        inside = wide / (-(-wide // columns) * columns) if wide else 1.0
        if high != DYNAMIC_INDEX and high:
            left = high % rows
            inside *= high / (high - left + (max(left, LEAST) if left else 0))
        return inside * tiles[tile]

    tile = max(tiles, key=worth)
    return tile, worth(tile)


def tile_of_few(high: int, wide: int, width: int, machine: Vectors) -> tuple[int, int]:
    """Return a tile of all of few rows, as many vectors of them as the registers hold.

    Then the packed operand is read once, from end to end; enough slivers are left for the threads.
    """
    tiles = -(-high // MOST_ROWS)
    rows = -(-high // tiles)
    vectors = max(min((machine.registers - 1) // (rows + 1), 8), 1)
    while wide and vectors > 2 and -(-wide // (vectors * width)) < machine.busy(SLIVERS):
        vectors -= 1
    return rows, min(vectors, -(-wide // width)) if wide else vectors


def streams_from(high: int, meeting: bool, machine: Vectors, l2: int) -> int:
    """Return how many bytes of an operand are worth reading in stretches for so many rows.

    What stays in the last cache is not, unless so few rows wait that they wait for that cache too:
    of one to four rows half of the second cache is enough. From memory 768 x 768 of bf16 take half
    of the time so, and as long as before from the caches (Zen 4).

    meeting : its rows throw each other out of the first cache
    """
    if high <= LONE:  # whatever else a call reads, half of that cache is not there again
        return l2 // 2
    return max(machine.last_cache // (4 if meeting else 1), l2)


def stretch(
    found: Loops, packed: int, shared: int, bytes: int, machine: Vectors, l2: int
) -> tuple[int, int] | None:
    """Return columns and depth of a stretch of a large operand that few rows wait for.

    It is worth it where memory is what they wait for, the more so the fewer they are, and where
    they would throw each other out of a cache. Stretches are of equal length, as many as threads
    or a multiple of that.
    """
    op = found.op
    assert isinstance(op, linalg.GenericOp)
    high, wide = found.extents[shared - 2], found.extents[shared - 1]
    known = DYNAMIC_INDEX not in (high, wide) and len(found.parallel) == shared + 1
    if not known or stride(indices(op)[packed], shared - 1) != 1 or not 0 < high <= SKINNY:
        return None
    each = bits_of(element(op.operands[packed])) // 8
    meeting = found.size(shared) * each % machine.page == 0
    if bytes < streams_from(high, meeting, machine, l2):
        return None
    least = FEW_COLUMNS if high <= LONE else STRETCH[0]
    run = machine.l1 // STRETCH[1]
    sum = bits_of(element(op.outputs[0])) // 8
    most = min(run // max(each, 1), max(l2, LEAST_L2) // SUMS // (high * max(sum, 1)))
    count = -(-wide // (machine.threads * most)) * machine.threads
    columns = -(-max(-(-wide // max(count, 1)), least) // UNIT) * UNIT
    return (columns, RUNS) if wide >= 2 * least and most >= least else None


def depth_of(machine: Vectors, l2: int) -> int:
    """Return how deep a block may be for slivers as wide as the fastest tile, of f32."""
    vectors = next(iter(TILES if machine.registers >= 32 else NARROW_TILES))[1]
    column = vectors * min(machine.bits // 32, machine.lanes) * 4
    part, of = IN_L1
    if (deep := machine.l1 * part // of // column) < SHALLOW:
        part, of = IN_L2
        deep = max(l2 * part // of // column, SHALLOW)
    return min(deep, DEEPEST_SUM)


def block_of(
    found: Loops,
    first: int,
    shared: int,
    tile: tuple[int, int],
    machine: Vectors,
    l2: int,
    bytes: int,
) -> tuple[int, ...]:
    """Return how much of the shared loops from ``first`` a block is, and the depth.

    Only the depth has to do with the result.
    """
    rows, columns = tile
    last = len(found.parallel) - 1
    before = max(prod(map(found.size, range(shared, last))), 1)
    deepest = SCRATCH // (columns * bytes)
    deepest = max((min(depth_of(machine, l2), deepest) if last == shared else deepest) // before, 1)
    cut = found.size(last) > deepest >= TURNED
    unit = 8 if before == 1 else TURNED if cut else 1
    deep = even(found.size(last), deepest, unit)
    if found.extents[last] == DYNAMIC_INDEX:
        deep = deepest
    parts = found.extents[last] == DYNAMIC_INDEX or found.size(last) > deep
    sizes = [found.size(k) for k in range(first, shared - 1)]
    wide = found.size(shared - 1)
    others = prod(map(found.size, range(first))) * -(-wide // columns)
    packed = wide * before * found.size(last) * bytes
    wanted = -(-prod(sizes) * others // machine.busy(MANY if packed <= l2 // 4 else FEW))
    wanted = max(-(-wanted // rows), 8) * rows
    unknown = first == shared - 2 and found.extents[first] == DYNAMIC_INDEX
    most = l2 // 2 // (deep * bytes)  # where only the launch counts rows, it cuts them evenly
    most = max(rows, most if unknown else min(most, wanted))
    lengths, taken, held = list[int](), 1, 1
    for size in reversed(sizes):
        here = min(most // taken, SCRATCH // (columns * bytes) // held) if parts else most // taken
        unit = 1 if lengths else rows
        here = max(here // unit, 1) * unit if unknown else even(size, here, unit)
        lengths.insert(0, here)
        taken *= max(min(here, size), 1)
        held *= here
    for k, size in enumerate(sizes[:-1]):  # the windows of several lines
        while lengths[k] > 1 and _touched(found, first, lengths, deep) * bytes > l2 // 2:
            lengths[k] = even(size, lengths[k] - 1, 1)
    return *lengths, columns, max(deep, 1)


def _touched(found: Loops, first: int, lengths: Sequence[int], deep: int) -> int:
    """Return how many elements of the operand of the rows a block reads.

    Windows that move in steps reach over more of an image than there are places.
    """
    op, rows = found.op, range(first, first + len(lengths))
    assert isinstance(op, linalg.GenericOp)
    last = len(found.parallel) - 1
    sizes = {k: min(n, found.size(k)) for k, n in zip(rows, lengths, strict=True)}
    sizes |= {k: found.size(k) for k in range(rows.stop + 1, last)} | {last: deep}

    def reach(expr: AffineExpr) -> int:
        form = linear(expr)
        factors = form[0].items() if form else ()
        return 1 + sum(abs(factor) * (sizes.get(k, 1) - 1) for k, factor in factors)

    return max(
        prod(map(reach, index))
        for index in indices(op)[: len(op.inputs)]
        if any(k in rows for expr in index for k in expr.used_dims())
    )


def block_of_words(
    found: Loops,
    first: int,
    shared: int,
    tile: tuple[int, int],
    l2: int,
    machine: Vectors,
    terms: int,
) -> tuple[int, ...]:
    """Return the sizes of blocks both of whose operands are packed as words of ``terms`` elements.

    Rows are packed once for each block of columns and columns, at a higher price, once for each
    of rows: the fewest of them that keep all threads busy. Of images a block takes several lines,
    for which columns are packed once. No result depends on any of the sizes.
    """
    rows, columns = tile
    last = len(found.parallel) - 1
    high, wide, long = (found.size(k) for k in (shared - 2, shared - 1, last))
    size = EACH // terms
    long *= size  # the sum is counted in bytes from here on
    before = max(prod(map(found.size, range(shared, last))), 1)
    deepest = max(min(DEEPEST, SCRATCH // columns) // before // BESIDE, 1) * BESIDE
    deep = even(long, deepest, BESIDE if before == 1 else EACH)
    if found.extents[last] == DYNAMIC_INDEX:
        deep = max(deepest // 2, BESIDE)
    whole = found.extents[last] != DYNAMIC_INDEX and long <= deep
    depth = deep // size
    lanes, bytes = machine.bits // 32, before * deep
    most = min(l2 // 2 // bytes, SCRATCH // (bytes + BESIDE) // lanes * lanes)
    most = max((most if whole else min(most, SCRATCH // (4 * columns))) // rows, 1) * rows
    batch = max(prod(map(found.size, range(shared - 2))), 1)
    long *= before
    wanted = BUSY * machine.threads if machine.threads > 1 else 1
    wanted = max(min(-(-wanted // batch), high * wide * long // PRODUCTS), 1)
    fewest, slivers = -(-high // most), -(-wide // columns)
    if prod(map(found.size, range(first, shared - 2))) > 1:
        rows = even(high, most, rows)
        held = LINES if whole else SCRATCH // (4 * columns * rows)
        lines = found.size(shared - 3)
        each = -(-batch // max(lines, 1)) * slivers * fewest
        busy = max(lines * each // (BUSY * machine.threads), 1)
        held = even(lines, max(min(LINES, held, busy), 1), 1)
        return (*(1 for _ in range(first, shared - 3)), held, rows, columns, depth)
    choices = [
        (n, m)
        for n in range(max(fewest, 1), max(fewest, 1) + wanted)
        for m in range(1, min(slivers, wanted) + 1)
    ]
    busy = [(n, m) for n, m in choices if n * m >= wanted] or choices[-1:]
    down, along = min(busy, key=lambda c: (c[1] * high + DEARER * c[0] * wide, c))
    across = -(-slivers // along) * columns if whole else columns
    return even(high, min(most, max(-(-high // down), 1)), rows), max(across, columns), depth


def even(size: int, most: int, unit: int) -> int:
    """Return the length of equal runs of at most ``most``, in whole units, that cover ``size``."""
    most = max(most // unit, 1) * unit
    runs = -(-size // most)
    return -(-size // runs // unit) * unit if runs else unit
