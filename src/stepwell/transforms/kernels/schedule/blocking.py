"""Decide whether a contraction runs in packed blocks, or reads an operand in strips.

Packing costs a pass over the operand for each block of rows, so it pays where there are many rows;
it avoids strided reads of that operand by columns, so it pays where the operand is larger than the
L1 cache.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import isqrt, prod

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue

from stepwell.analysis.cost.compute import STRIDES
from stepwell.analysis.levels.kernel_ops import first_of_rows
from stepwell.analysis.levels.legality import MAX_SCRATCH_BYTES
from stepwell.analysis.structured import bits_of, combiner, element, stride
from stepwell.core.dot_instructions import TOTALS, terms_of
from stepwell.core.machine import Machine
from stepwell.transforms.kernels.schedule.beyond import (
    NO_ARGUMENTS,
    Arguments,
    is_beyond,
    is_hidden,
    reads_in_place,
)
from stepwell.transforms.kernels.schedule.block_sizes import (
    MAX_SKINNY_ROWS,
    MAX_TILE_ROWS,
    MEMORY_BOUND_ROWS,
    ROW_PADDING_BYTES,
    WORD_BYTES,
    block_of,
    block_of_words,
    fastest_tile,
    held_and_computing,
    strip_of,
    tile_of_few,
)
from stepwell.transforms.kernels.schedule.blocking_reasons import (
    FAR,
    NO_SCRATCH,
    NO_SINGLE_SUM,
    NOT_ALONG,
    why_in_place,
    why_in_strips,
    why_in_tiles,
    why_packed,
    why_sizes,
)
from stepwell.transforms.kernels.schedule.contraction import Contraction
from stepwell.transforms.kernels.schedule.dot_products import (
    BOTH,
    IN_DOTS,
    IN_TILES,
    MATRIX_TILE,
    ONE,
    SIDE,
    WORDS,
    fills_matrix_unit,
    multiplied,
    reads_words_in_place,
)
from stepwell.transforms.kernels.schedule.marks import with_marks
from stepwell.transforms.kernels.schedule.reasons import explain_choice, spell_bytes
from stepwell.transforms.kernels.schedule.searching import MODEL_ERROR
from stepwell.transforms.kernels.schedule.symmetric import is_across, mirrors, with_mirror
from stepwell.transforms.kernels.schedule.tall_tiles import with_taller
from stepwell.transforms.kernels.schedule.tiles import MAX_ROW_VECTORS
from stepwell.transforms.kernels.schedule.vectors import (
    MIN_LANES,
    Loops,
    Operand,
    full_lanes,
    lanes,
    page,
)
from stepwell.transforms.kernels.schedule.widening import is_along, is_widened, widened

MIN_ROWS = 12
"""Rows below which packing costs more than it saves."""
MIN_ROWS_OF_WORDS = 2
"""The same bound where words of bytes are packed, of which one instruction multiplies many."""
SMALL_L1_DIVISOR = 4
"""The part of the L1 cache, 1/4, up to which an operand is not packed, whatever its layout."""
MIN_ROWS_OF_SMALL = 64
"""Rows from which even such an operand is packed."""
MAX_RAGGED_BYTES = 1 << 16
"""Bytes beyond which an operand is packed if its columns do not fill vectors."""
MAX_PANEL_VECTORS = 4
"""Vectors of columns up to which an operand is laid out as one panel of it would be."""
MAX_PANEL_ROWS = 128
"""Rows up to which packing such an operand does not pay: on Zen 4 it wins from 500 rows on."""
MAX_BURST_ROWS = 2
"""Rows of the result up to which a strip reads `Machine.burst` bytes of each row at a time."""
STRIP_ROW_BYTES = 64
"""Bytes of each row of a strip that are accumulated in registers for more rows of the result."""

LOST_L2_MULTIPLE = 4
"""Multiples of the L2 cache from which nothing stays in those of two cores that share the columns:
1.7 were measured for one core (note 112), and 4 x 1200 x 1000 of f32, 2.3 of them, gains nothing.
The number of threads must not decide, for rounding may differ between strips and tiles."""
MAX_ROW_TILES = 2
"""Tiles of a single row, at most: strips of more columns are longer runs of memory, and no slower
from the last cache (1 x 784 x 512: 0.88 of the time of strips; 1 x 768 x 768: 1.13; Zen 4)."""


def choose(
    ops: Sequence[Loops], shared: int, machine: Machine, given: Arguments = NO_ARGUMENTS
) -> Contraction | None:
    """Return tile and block of a kernel that is one large contraction with an epilogue.

    given : properties of the kernel's arguments
    """
    chosen = _chosen(ops, shared, machine, given)
    found = _only_sum(ops, shared)
    if chosen is None or not chosen.block or found is None:
        return chosen
    if prod(chosen.tile) == 1:  # a tile of one vector keeps nothing in registers
        return None
    before = prod(map(found.size, range(shared, len(found.parallel) - 1)))
    bytes = (
        ROW_PADDING_BYTES
        if chosen.pack_columns == "dot"
        else machine.vector_bits // chosen.width // 8
    )
    panel = before * chosen.block[-2] * bytes
    packed = _packed(found, shared)
    operand = found.op.operands[packed] if packed is not None else None
    free = operand is not None and given.is_ready(operand) and chosen.pack_columns != "dot"
    if (
        panel > MAX_SCRATCH_BYTES and not free
    ):  # only the sum's last loop is split; all iterations of the others are packed
        explain_choice(
            found.op, lambda: f"not in blocks after all: a panel has {spell_bytes(panel)}"
        )
        return None
    return chosen


def _chosen(
    ops: Sequence[Loops], shared: int, machine: Machine, given: Arguments
) -> Contraction | None:
    """Return tile and block, whatever the size of a packed panel."""
    if (candidate := _candidate(ops, shared, machine)) is None:
        return None
    found, packed = candidate
    along = is_along(found, packed, shared)
    width = lanes(ops, shared - 1, machine) if along else full_lanes(ops, machine)
    if width == 1:
        return None
    first = _first(found, packed, shared)
    high, wide = prod(map(found.size, range(first, shared - 1))), found.size(shared - 1)
    deep = prod(map(found.size, range(shared, len(found.parallel))))
    bytes = wide * deep * bits_of(element(found.op.operands[packed])) // 8
    operand = found.op.operands[packed]
    dots = None if along else multiplied(found, first, shared, machine)
    free = given.is_ready(operand) and not along
    free = free and dots is None  # blocks pack words themselves
    usual = _in_place_bytes(found, packed, shared, width, machine, high)
    in_place = _in_place_part(found, packed, shared, bytes > reads_in_place(machine))
    symmetric = dots is None and mirrors(ops, found, shared)
    across = dots is None and is_across(found, shared, machine)
    asks = (in_place and dots is None and given.is_unaligned(operand)) or symmetric
    enough = min(usual, machine.l1 // SMALL_L1_DIVISOR) if free or asks else usual
    of_bytes = dots is not None and TOTALS[dots[0]] == "i32"
    in_words = of_bytes and high >= MIN_ROWS_OF_WORDS and bytes < machine.last_cache // 8
    settled = free or along or in_words
    if not settled and (strip := strip_of(found, packed, shared, bytes, machine)):
        return _of_few_rows(found, packed, strip, (high, wide, width, bytes), machine, given)
    size = machine.vector_bits // width // 8
    width = width if along else _narrowed(width, wide, machine)
    least = 1 if free else MIN_ROWS_OF_WORDS if of_bytes else MIN_ROWS
    if high < least or wide < min(width, MIN_LANES) or bytes <= enough:
        explain_choice(
            found.op, lambda: why_in_place((high, least), wide < MIN_LANES, bytes, enough)
        )
        return None
    if dots is not None:
        return _in_words(found, first, shared, width, machine, dots)
    by_sizes = partial(_by_sizes, found, first, shared, (width, size), machine, along, free)
    plain = with_mirror(by_sizes(True), found, shared) if symmetric else None
    if plain is None and not free and symmetric and bytes <= usual:
        return None
    plain = plain or by_sizes(across)
    explain_choice(found.op, lambda: why_packed(operand, bytes, usual, machine.l2, free))
    if not along:
        plain = with_marks(plain, found, packed, shared, machine, free)
        settled = free or across or plain.mirror
        plain = replace(plain, in_place=0.0 if settled else in_place)
    return _finished(found, plain, packed, first, shared, machine)


def _finished(
    found: Loops, plain: Contraction, packed: int, first: int, shared: int, machine: Machine
) -> Contraction:
    """Return the choice of blocks with what follows from the elements, and explain it."""
    chosen = widened(found, plain, packed, first, shared)
    size = machine.vector_bits // plain.width // 8
    explain_choice(found.op, lambda: why_sizes(plain.tile, chosen.block, size))
    if chosen.prefetch:
        explain_choice(found.op, lambda: FAR)
    return with_taller(chosen, found, packed, shared, machine)


def _candidate(ops: Sequence[Loops], shared: int, machine: Machine) -> tuple[Loops, int] | None:
    """Return the sum of a kernel that blocks are for, and the operand that they would pack."""
    found = _only_sum(ops, shared)
    if not machine.l2 or found is None or (packed := _packed(found, shared)) is None:
        if any(each.contracts for each in ops):
            explain_choice(ops[0].op, lambda: NO_SCRATCH if not machine.l2 else NO_SINGLE_SUM)
        return None
    if not all(_writes_along(each, shared - 1) for each in ops):
        explain_choice(found.op, lambda: NOT_ALONG)
        return None
    return found, packed


def _in_place_part(found: Loops, packed: int, shared: int, large: bool) -> float:
    """Return the part of the time in place that blocks must not exceed; 0 if they are settled.

    Only a plain product whose packed operand is of known size, with contiguous columns, may read it
    in place. One that usually does, if it is not ``large``, is packed where the cost model is
    certain of the gain.
    """
    product = _first(found, packed, shared) == shared - 2 and len(found.parallel) == shared + 1
    along = stride(found.where[packed], shared - 1) == 1
    known = DYNAMIC_INDEX not in found.extents[shared - 1 :]
    if not product or not along or is_widened(found) or not known:
        return 0.0
    return 1.0 if large else 1 - MODEL_ERROR


def _by_sizes(
    found: Loops,
    first: int,
    shared: int,
    lanes_and_bytes: tuple[int, int],
    machine: Machine,
    along: bool,
    free: bool,
    panels: bool,
) -> Contraction:
    """Return tile and block chosen by sizes alone."""
    width, size = lanes_and_bytes
    high, wide = prod(map(found.size, range(first, shared - 1))), found.size(shared - 1)
    few = free and first == shared - 2 and high <= MAX_SKINNY_ROWS
    tile, width = (
        (tile_of_few(high, wide, width, machine), width)
        if few
        else fastest_tile(found, shared, width, size, machine, along, panels)
    )
    block = block_of(found, first, shared, (tile[0], tile[1] * width), machine, size, panels)
    if few and high <= tile[0] and found.extents[-1] != DYNAMIC_INDEX:
        block = *block[:-1], max(found.size(len(found.parallel) - 1), 1)
    return Contraction(width, tile, block)


def _in_words(
    found: Loops,
    first: int,
    shared: int,
    width: int,
    machine: Machine,
    elements: tuple[str, str],
) -> Contraction:
    """Return the choice for products with a dot-product instruction."""
    high, wide = found.size(shared - 2), found.size(shared - 1)
    if high <= MAX_SKINNY_ROWS and found.extents[shared - 2] != DYNAMIC_INDEX:
        tile = tile_of_few(high, wide, width, machine)
    else:
        tile, width = fastest_tile(found, shared, width, 4, machine, False, words=True)
    unit = fills_matrix_unit(found, first, shared, machine, elements)
    if unit:
        tile, width = MATRIX_TILE, SIDE
        explain_choice(found.op, lambda: IN_TILES)
    terms = terms_of(elements[0])
    in_place = unit and reads_words_in_place(found, shared, WORD_BYTES // terms)
    packed = ONE if in_place else BOTH
    explain_choice(found.op, lambda: IN_DOTS.format(packed, WORDS[elements[0]]))
    shape = tile[0], tile[1] * width
    sizes = block_of_words(found, first, shared, shape, machine, terms, in_place)
    explain_choice(found.op, lambda: why_sizes(tile, sizes, WORD_BYTES // terms))
    biased = elements == ("i8", "i8") and not machine.signed_dots and not unit
    rows = None if in_place else "biased_dot" if biased else "dot"
    return Contraction(width, tile, sizes, pack_rows=rows, pack_columns="dot")


def _narrowed(width: int, wide: int, machine: Machine) -> int:
    """Return the lanes that so few columns fill, all of them where the columns are many.

    A vector that the machine computes in one pass may have padding: two of half the lanes would
    take twice the time.
    """
    while wide < width and width > MIN_LANES and (machine.is_halved or 2 * wide <= width):
        width //= 2
    return width


def _of_few_rows(
    found: Loops,
    packed: int,
    strip: tuple[int, int],
    sizes: tuple[int, int, int, int],
    machine: Machine,
    given: Arguments,
) -> Contraction:
    """Return the choice for few rows that are bound by reading a large operand.

    From memory an operand is read in strips, as long runs that are prefetched. From the last cache
    it comes so fast that loading and storing the sums of a strip takes longer than tiles wait for
    it: 3 rows by 628 x 1070 take 0.75 of a strip's time, and twice the time from memory (Zen 4). A
    last cache that is hardly faster than memory counts as memory (4 rows by 768 x 3072 take 0.83 of
    the time of tiles in strips, of bf16 0.65; Granite Rapids). Tiles prefetch where buffers for
    misses are free again in time: else hardware does it better (3 to 4 rows take 0.83 to 0.94 of
    the time without, Granite Rapids).

    sizes : rows, columns, lanes, and bytes of the operand
    """
    (high, wide, width, bytes), op = sizes, found.op
    operand = op.operands[packed]
    meets = wide * bits_of(element(operand)) // 8 % page(machine) == 0
    distance, few = given.distance(operand, bytes), 1 < high <= MEMORY_BOUND_ROWS
    slow = machine.last_cache <= machine.l2 and distance >= LOST_L2_MULTIPLE * machine.l2
    far = is_beyond(op, distance, machine) or (few and slow)
    vectors = -(-wide // width)
    most = tile_of_few(high, 0, width, machine)[1] if high > 1 else MAX_ROW_VECTORS
    if not far and (few or (high == 1 and vectors <= MAX_ROW_TILES * most)):
        explain_choice(op, lambda: why_in_tiles(operand, high))
        tiles = -(-vectors // (most * machine.threads)) * machine.threads
        held, step = held_and_computing(machine)
        waits = held <= step and not is_hidden(bytes, machine)
        asks = few and bytes >= machine.l2 and not meets and waits
        return Contraction(width, (high, -(-vectors // tiles)), prefetch=asks)
    explain_choice(op, lambda: why_in_strips(operand, high, strip))
    rows, vectors = tile_of_few(high, 0, width, machine)
    lines = machine.burst if high <= MAX_BURST_ROWS else STRIP_ROW_BYTES
    vectors = min(vectors, max(lines * 8 // bits_of(element(operand)) // width, 1))
    rows_packed = "" if high > 1 else None
    return Contraction(width, (rows, vectors), strip=strip, pack_rows=rows_packed, prefetch=far)


def _first(found: Loops, packed: int, shared: int) -> int:
    """Return the first shared loop after the last one that the packed operand varies with."""
    return first_of_rows(found.where[packed], shared)


def _writes_along(loops: Loops, column: int) -> bool:
    """Whether the stored results of neighbouring columns are contiguous."""
    if not loops.where:
        return True
    written = zip(loops.op.outputs, loops.where[len(loops.op.inputs) :], strict=True)
    return all(_is_passed_on(into) or stride(index, column) in (0, 1) for into, index in written)


def _is_passed_on(value: SSAValue) -> bool:
    """Whether the value written into ``value`` stays within the kernel, in registers."""
    owner = value.owner
    if isinstance(owner, linalg.FillOp):
        owner = owner.outputs[0].owner
    return isinstance(owner, tensor.EmptyOp)


def _only_sum(ops: Sequence[Loops], shared: int) -> Loops | None:
    """Return the only op with loops of its own, a sum that a fill initialises, or None."""
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
    """Return the operand that varies with the columns only, if another varies with the rows.

    That one may vary with the columns too if it is contiguous along them.
    """
    row, column = shared - 2, shared - 1
    roles: dict[str, list[Operand]] = {"packed": [], "rows": [], "other": []}
    for each in found.operands:
        loops = each.loops
        role = "rows" if row in loops else "packed" if column in loops else "other"
        if role == "rows" and stride(each.place, column) not in (0, 1):
            role = "other"
        roles[role].append(each)
    if [len(of) for of in roles.values()] != [1, 1, 0]:
        return None
    ((number, value, *_),) = roles["packed"]
    own = isinstance(value.owner, linalg.GenericOp | linalg.FillOp)
    return None if own or bits_of(element(value)) < 8 else number


def longest_in_place(found: Loops, shared: int, machine: Machine) -> tuple[int, int] | None:
    """Return the loop of a plain product whose unknown length decides whether it is packed.

    That is the loop of the columns, else that of the sum, if the columns lie side by side. Return
    also up to how many iterations of it the operand is read in place. A sum of unknown length is
    taken to be as long as there are unknown columns. An operand of one panel's columns lies as a
    panel does, so that its length decides nothing.
    """
    column = shared - 1
    if len(found.parallel) != shared + 1 or DYNAMIC_INDEX not in found.extents[column:]:
        return None
    packed = _packed(found, shared)
    if packed is None or is_widened(found) or stride(found.where[packed], column) != 1:
        return None
    bits = bits_of(element(found.op.operands[packed]))
    most = reads_in_place(machine) * 8 // bits
    wide, deep = found.extents[column:]
    if wide != DYNAMIC_INDEX and wide * bits <= MAX_PANEL_VECTORS * machine.vector_bits:
        return None
    if wide == DYNAMIC_INDEX:
        return column, isqrt(most) if deep == DYNAMIC_INDEX else most // max(deep, 1)
    return shared, most // max(wide, 1)


def _in_place_bytes(
    found: Loops, packed: int, shared: int, width: int, machine: Machine, high: int
) -> int:
    """Return the bytes up to which ``high`` rows should read the operand in place.

    Beyond a part of the L2 cache its rows are on too many pages for the TLB.
    """
    step = stride(found.where[packed], shared - 1)
    if step in STRIDES and found.extents[shared - 2] != DYNAMIC_INDEX and high <= MAX_TILE_ROWS:
        return sys.maxsize  # one tile has all rows: its shuffles serve all of them
    if is_widened(found) or step != 1:
        return machine.l1 // SMALL_L1_DIVISOR if high < MIN_ROWS_OF_SMALL else 0
    wide = found.extents[shared - 1]
    if wide != DYNAMIC_INDEX and wide <= MAX_PANEL_VECTORS * width and high <= MAX_PANEL_ROWS:
        return sys.maxsize
    if wide != DYNAMIC_INDEX and wide % width and wide > 2 * width:
        return min(MAX_RAGGED_BYTES, reads_in_place(machine))
    if not found.likely and longest_in_place(found, shared, machine) is not None:
        return 0  # it may be large; smaller operands have a version
    return reads_in_place(machine)
