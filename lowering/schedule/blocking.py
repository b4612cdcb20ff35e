"""When a contraction runs in blocks with one operand packed, and how large they are.

Packing costs a pass over the packed operand for each block of rows, so it pays where there are
many rows; it saves reading that operand by columns that lie far apart, so it pays where the
operand is larger than the first cache. The depth of a block is the only one of the three sizes
that the result depends on (by rounding), so it depends on the sizes of the operands alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument, SSAValue

from stepwell.lowering.schedule.reasons import because, spell_bytes
from stepwell.lowering.schedule.vectors import (
    NARROWEST,
    Loops,
    Vectors,
    bits_of,
    full_lanes,
    lanes,
    stride,
)
from stepwell.transforms.products import byte_products, exact_count
from stepwell.transforms.structured import CASTS, combiner, element, indices

DEEP = 384
"""A sliver of so much depth, 64 columns wide, leaves the second cache room for rows beside it."""
SCRATCH = 1 << 18
"""Bytes of packed operand, or of partial sums, that a block may have on the stack."""
TURNED = 16
"""Filters are packed in squares of as many lanes, so parts of so many features leave none over."""
FEW_ROWS = 12
"""Packing for fewer rows costs more than it saves."""
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
SMALL = 1 << 13
"""An operand of so few bytes need not be packed, however it lies, ..."""
MANY_ROWS = 64
"""... unless so many rows read it."""
RAGGED = 1 << 16
"""An operand of more bytes is packed where its columns do not fill vectors."""
SKINNY = 16
"""A product of at most so many rows waits for the operand of the columns alone."""
MOST_ROWS = 14
"""A register tile of more rows leaves no room for two vectors."""
LONE = 4
"""A product of at most so many rows waits for memory even where the last cache holds it all."""
STRETCH = 512, 16 << 10
"""Columns of one row of a large operand that are worth reading in one go, and bytes at most: the
longer the runs the better memory answers, and the sums of one wait in the caches."""
RUNS = 8
"""So many rows of it are read side by side: more runs than that are not fetched ahead."""
UNIT = 64
"""A stretch is a multiple of so many columns."""
LINES = 128
"""Bytes of each of these rows that are added up in registers; half of that for more than two rows
of the result."""
SUMS = 1 << 17
"""Bytes of sums that wait while a stretch is read."""
SLIVERS = 16
"""So many slivers keep every thread busy."""
MANY = 32
"""So many blocks keep every thread busy, and evenly so."""
FEW = 8
"""So many do where each block of rows reads a packed operand anew that is too large for a cache."""


@dataclass(frozen=True)
class Contraction:
    """What is to be written on a kernel whose contraction is blocked."""

    width: int
    tile: tuple[int, int]
    block: tuple[int, ...] = ()
    stream: tuple[int, ...] = ()
    """Columns and depth, where the operand is read in place once and there is no block."""
    pack_rows: bool = False
    in_floats: bool = False
    pack_first: bool = False
    prefetch: bool = False


def choose(
    ops: Sequence[Loops], shared: int, machine: Vectors, l2: int, ready: Collection[int] = ()
) -> Contraction | None:
    """Return tile and block of a kernel that is one large contraction and what comes after.

    ready : the kernel's arguments that are the same in every call, so that packing costs nothing
    """
    found = _only_sum(ops, shared)
    if not l2 or found is None or (packed := _packed(found, shared)) is None:
        if any(each.contracts for each in ops):
            because(ops[0].op, lambda: NO_SCRATCH if not l2 else NO_SINGLE_SUM)
        return None
    if not all(_writes_along(each, shared - 1) for each in ops):
        because(found.op, lambda: NOT_ALONG)
        return None
    along = _is_along(found, packed, shared)
    width = lanes(ops, shared - 1, machine) if along else full_lanes(ops, machine)
    if width == 1:
        return None
    first = _first(found, packed, shared)
    high, wide = prod(map(found.size, range(first, shared - 1))), found.size(shared - 1)
    deep = prod(map(found.size, range(shared, len(found.parallel))))
    bytes = wide * deep * bits_of(element(found.op.operands[packed])) // 8
    operand = found.op.operands[packed]
    free = isinstance(operand, BlockArgument) and operand.index in ready and not along
    enough = _enough(found, packed, shared, width, l2, high)
    enough = min(enough, SMALL) if free else enough
    if not free and not along and (stream := _stream(found, packed, shared, bytes, machine, l2)):
        because(found.op, lambda: _why_streamed(operand, high, stream))
        return _streamed(operand, high, width, machine, stream)
    size = machine.bits // width // 8
    width = width if along else _narrowed(width, wide)
    least = 1 if free else FEW_ROWS
    if high < least or wide < width or bytes <= enough:
        because(found.op, lambda: _why_in_place(high, wide < width, bytes, enough))
        return None
    few = free and first == shared - 2 and high <= SKINNY
    tile, width = (
        (_few(high, wide, width, machine), width)
        if few
        else _fastest(found, shared, width, size, machine, along)
    )
    unit = tile[0], tile[1] * width
    block = _block(found, first, shared, unit, l2, size)
    if few and high <= tile[0] and found.extents[-1] != DYNAMIC_INDEX:
        block = *block[:-1], max(found.size(len(found.parallel) - 1), 1)
    because(found.op, lambda: _why_packed(operand, bytes, enough, l2, free))
    plain = Contraction(width, tile, block)
    if not free and not along:
        simple = _in_rows(found, packed, shared, unit[1])
        plain = replace(plain, pack_first=simple, prefetch=bytes >= l2)
    chosen = _widened(found, plain, packed, first, shared)
    because(found.op, lambda: _why_so_large(tile, chosen.block, size))
    if chosen.prefetch:
        because(found.op, lambda: FAR)
    return chosen


def _narrowed(width: int, wide: int) -> int:
    """Return how many lanes so few columns fill, all of them where they are many."""
    while wide < width and width > NARROWEST:
        width //= 2
    return width


def _streamed(
    operand: SSAValue, high: int, width: int, machine: Vectors, stream: tuple[int, ...]
) -> Contraction:
    """Return what is written where ``operand`` is read in stretches."""
    rows, vectors = _few(high, 0, width, machine)
    lines = LINES if high <= 2 else LINES // 2
    vectors = min(vectors, max(lines * 8 // bits_of(element(operand)) // width, 1))
    return Contraction(width, (rows, vectors), stream=stream)


NO_SCRATCH = "not in blocks: the target has no scratch to pack an operand into"
NO_SINGLE_SUM = (
    "not in blocks: they are for one sum, started by a fill, of an operand that varies with "
    "the rows and one that varies with the columns"
)
SPLIT = "and the machine computes with so many lanes at once"
FAR = "what is packed next is asked for while a block computes, for it exceeds L2"
NOT_ALONG = "not in blocks: the results of neighbouring columns do not lie side by side"


def _why_in_place(high: int, narrow: bool, bytes: int, enough: int) -> str:
    """Say why no operand is packed."""
    if high < FEW_ROWS:
        return f"not in blocks: {high} rows read what would be packed, {FEW_ROWS} repay it"
    if narrow:
        return "not in blocks: the columns do not fill a vector"
    size, most = spell_bytes(bytes), spell_bytes(enough)
    return f"not in blocks: {size} are read where they lie, as up to {most} are well enough"


def _why_packed(operand: SSAValue, bytes: int, enough: int, l2: int, free: bool) -> str:
    """Say why an operand is packed."""
    name = f"%{operand.name_hint}" if operand.name_hint else "the operand of the columns"
    if free:
        return f"in blocks, {name} packed: it is the same in every call, so that costs nothing"
    least = (
        "lies across its rows" if enough < l2 // 4 else f"exceeds a quarter of L2 ({l2 >> 10} KB)"
    )
    return f"in blocks, {name} packed: it has {spell_bytes(bytes)} and {least}"


def _why_streamed(operand: SSAValue, high: int, stream: tuple[int, ...]) -> str:
    """Say why an operand is read in stretches."""
    name = f"%{operand.name_hint}" if operand.name_hint else "the operand of the columns"
    return (
        f"{name} is read in place, {stream[1]} rows at a time along {stream[0]} columns: "
        f"a product of {high} row{'s' if high > 1 else ''} waits for memory alone"
    )


def _why_so_large(tile: tuple[int, int], block: tuple[int, ...], bytes: int) -> str:
    """Say what the sizes of tile and block are good for."""
    *rows, columns, deep = block
    sliver, part = spell_bytes(columns * deep * bytes), spell_bytes(prod(rows) * deep * bytes)
    return (
        f"{tile[0]} rows by {tile[1]} vectors in registers leave least over at the edges; a block "
        f"of {' x '.join(map(str, rows))} rows, {columns} columns and a depth of {deep} reads "
        f"a packed sliver of {sliver} and {part} of the other operand from L2"
    )


def _is_along(found: Loops, packed: int, shared: int) -> bool:
    """Whether the operand that is read in place varies with the columns too."""
    op = found.op
    assert isinstance(op, linalg.GenericOp)
    return any(
        shared - 1 in {d for expr in index for d in expr.used_dims()}
        for k, index in enumerate(indices(op)[: len(op.inputs)])
        if k != packed and op.body.block.args[k].first_use is not None
    )


WIDENED = "rows are packed too: they are narrower than what is computed with, and widened once"
IN_FLOATS = "; products of bytes are added up in floats, which is exact for a part so deep"


def _widened(
    found: Loops, chosen: Contraction, packed: int, first: int, shared: int
) -> Contraction:
    """Return the choice for operands narrower than what is computed with.

    Rows are widened once for each block, not for each use, and bytes become floats: one
    instruction multiplies and adds them, and a part of so much depth is exact.
    """
    op = found.op
    assert isinstance(op, linalg.GenericOp)
    simple = first == shared - 2 and len(found.parallel) == shared + 1
    if not simple or not _is_widened(op) or _is_along(found, packed, shared):
        return chosen
    signs = byte_products(op.body.block)
    *_, rows, columns, deep = chosen.block
    deep = min(deep, exact_count(signs) // 8 * 8) if signs else deep
    bytes = bits_of(element(op.outputs[0])) // 8
    unit = chosen.tile[0]
    most = SCRATCH // (deep * bytes) // chosen.width * chosen.width // unit * unit
    if not most:
        return chosen
    high = found.extents[shared - 2]
    if rows > most:
        rows = most if high == DYNAMIC_INDEX else _even(high, most, unit)
    block = (*chosen.block[:-3], rows, columns, deep)
    because(op, lambda: WIDENED + (IN_FLOATS if signs else ""))
    return replace(chosen, block=block, pack_rows=True, in_floats=signs is not None)


def _is_widened(op: linalg.GenericOp) -> bool:
    """Whether operands are narrower than what is computed with."""
    arguments = op.body.block.args[: len(op.inputs)]
    return any(isinstance(use.operation, CASTS) for arg in arguments for use in arg.uses)


def _first(found: Loops, packed: int, shared: int) -> int:
    """Return the first of the shared loops that stand between the rows and what is packed anew."""
    op = found.op
    assert isinstance(op, linalg.GenericOp)
    used = {d for expr in indices(op)[packed] for d in expr.used_dims()}
    first = shared - 2
    while first and first - 1 not in used:
        first -= 1
    return first


def _in_rows(found: Loops, packed: int, shared: int, columns: int) -> bool:
    """Whether the columns lie side by side and make whole slivers."""
    op, wide = found.op, found.extents[shared - 1]
    assert isinstance(op, linalg.GenericOp)
    whole = wide != DYNAMIC_INDEX and wide % columns == 0
    return whole and stride(indices(op)[packed], shared - 1) == 1


def _writes_along(loops: Loops, column: int) -> bool:
    """Whether the results of neighbouring columns lie side by side, as far as they are kept."""
    op = loops.op
    if not isinstance(op, linalg.GenericOp):
        return True
    written = zip(op.outputs, indices(op)[len(op.inputs) :], strict=True)
    return all(_is_passed_on(into) or stride(index, column) in (0, 1) for into, index in written)


def _is_passed_on(value: SSAValue) -> bool:
    """Whether what is written into ``value`` never leaves the kernel, nor registers."""
    owner = value.owner
    if isinstance(owner, linalg.FillOp):
        owner = owner.outputs[0].owner
    return isinstance(owner, tensor.EmptyOp)


def _only_sum(ops: Sequence[Loops], shared: int) -> Loops | None:
    """Return the one op with loops of its own, a sum that a fill starts, if there is no more."""
    inner = [each for each in ops if len(each.parallel) > shared]
    if shared < 2 or len(inner) != 1 or any(each.gathers for each in ops):
        return None
    (found,) = inner
    op = found.op
    if any(found.parallel[shared:]) or not found.free:
        return None
    if any(found.extents[k] == DYNAMIC_INDEX for k in range(shared, len(found.parallel) - 1)):
        return None
    if not isinstance(op, linalg.GenericOp) or len(op.outputs) != 1:
        return None
    started = isinstance(op.outputs[0].owner, linalg.FillOp) and op.outputs[0].has_one_use()
    return found if started and combiner(op, 0) is not None else None


def _packed(found: Loops, shared: int) -> int | None:
    """Return the operand that varies with the columns alone, if another one varies with the rows.

    That one may vary with the columns too if neighbours of them lie side by side.
    """
    op = found.op
    assert isinstance(op, linalg.GenericOp)
    row, column = shared - 2, shared - 1
    roles: dict[str, list[int]] = {"packed": [], "streamed": [], "other": []}
    for k, index in enumerate(indices(op)[: len(op.inputs)]):
        if op.body.block.args[k].first_use is None:
            continue
        loops = {d for expr in index for d in expr.used_dims()}
        role = "streamed" if row in loops else "packed" if column in loops else "other"
        if role == "streamed" and stride(index, column) not in (0, 1):
            role = "other"
        roles[role].append(k)
    if [len(of) for of in roles.values()] != [1, 1, 0]:
        return None
    (k,) = roles["packed"]
    own = isinstance(op.inputs[k].owner, linalg.GenericOp | linalg.FillOp)
    return None if own or bits_of(element(op.inputs[k])) < 8 else k


def _enough(found: Loops, packed: int, shared: int, width: int, l2: int, high: int) -> int:
    """Return up to how many bytes the operand is better read in place by ``high`` rows.

    Beyond a part of the second cache its rows lie on more pages than are found quickly.
    """
    op = found.op
    assert isinstance(op, linalg.GenericOp)
    if _is_widened(op) or stride(indices(op)[packed], shared - 1) != 1:
        return SMALL if high < MANY_ROWS else 0
    wide = found.extents[shared - 1]
    if wide != DYNAMIC_INDEX and wide % width and wide > 2 * width:
        return min(RAGGED, l2 // 4)
    return l2 // 4


def _fastest(
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


def _few(high: int, wide: int, width: int, machine: Vectors) -> tuple[int, int]:
    """Return a tile of all of few rows, as many vectors of them as the registers hold.

    Then the packed operand is read once, from end to end; enough slivers are left for the threads.
    """
    tiles = -(-high // MOST_ROWS)
    rows = -(-high // tiles)
    vectors = max(min((machine.registers - 1) // (rows + 1), 8), 1)
    while wide and vectors > 2 and -(-wide // (vectors * width)) < SLIVERS:
        vectors -= 1
    return rows, min(vectors, -(-wide // width)) if wide else vectors


def _stream(
    found: Loops, packed: int, shared: int, bytes: int, machine: Vectors, l2: int
) -> tuple[int, ...]:
    """Return columns and depth of a stretch of a large operand that few rows wait for.

    It is worth it where memory is what they wait for, the more so the fewer they are. Stretches
    are of equal length, as many as threads or a multiple of that.
    """
    op = found.op
    assert isinstance(op, linalg.GenericOp)
    high, wide = found.extents[shared - 2], found.extents[shared - 1]
    known = DYNAMIC_INDEX not in (high, wide) and len(found.parallel) == shared + 1
    if not known or stride(indices(op)[packed], shared - 1) != 1 or not 0 < high <= SKINNY:
        return ()
    if bytes < (4 if high <= LONE else 32) * l2:
        return ()
    least, run = STRETCH
    sum, each = bits_of(element(op.outputs[0])) // 8, bits_of(element(op.operands[packed])) // 8
    most = min(run // max(each, 1), SUMS // (high * max(sum, 1)))
    count = -(-wide // (machine.threads * most)) * machine.threads
    columns = -(-max(-(-wide // max(count, 1)), least) // UNIT) * UNIT
    return (columns, RUNS) if wide >= 2 * least and most >= least else ()


def _block(
    found: Loops, first: int, shared: int, tile: tuple[int, int], l2: int, bytes: int
) -> tuple[int, ...]:
    """Return how much of the shared loops from ``first`` a block is, and the depth.

    Only the depth has to do with the result.
    """
    rows, columns = tile
    last = len(found.parallel) - 1
    before = max(prod(map(found.size, range(shared, last))), 1)
    deepest = SCRATCH // (columns * bytes)
    deepest = max((min(DEEP, deepest) if last == shared else deepest) // before, 1)
    cut = found.size(last) > deepest >= TURNED
    unit = 8 if before == 1 else TURNED if cut else 1
    deep = _even(found.size(last), deepest, unit)
    if found.extents[last] == DYNAMIC_INDEX:
        deep = deepest
    parts = found.extents[last] == DYNAMIC_INDEX or found.size(last) > deep
    sizes = [found.size(k) for k in range(first, shared - 1)]
    wide = found.size(shared - 1)
    others = prod(map(found.size, range(first))) * -(-wide // columns)
    packed = wide * before * found.size(last) * bytes
    wanted = -(-prod(sizes) * others // (MANY if packed <= l2 // 4 else FEW))
    wanted = max(-(-wanted // rows), 8) * rows
    most = max(rows, min(l2 // 2 // (deep * bytes), wanted))
    lengths, taken, held = list[int](), 1, 1
    for size in reversed(sizes):
        here = min(most // taken, SCRATCH // (columns * bytes) // held) if parts else most // taken
        here = _even(size, here, 1 if lengths else rows)
        lengths.insert(0, here)
        taken *= max(min(here, size), 1)
        held *= here
    return *lengths, columns, max(deep, 1)


def _even(size: int, most: int, unit: int) -> int:
    """Return the length of equal runs of at most ``most``, in whole units, that cover ``size``."""
    most = max(most // unit, 1) * unit
    runs = -(-size // most)
    return -(-size // runs // unit) * unit if runs else unit
