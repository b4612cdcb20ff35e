"""Find the products for which the machine has a dot-product instruction, or a matrix unit."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import i32

from stepwell.analysis.levels.matrix_units import are_rows_of_words
from stepwell.analysis.products import dot_elements
from stepwell.analysis.structured import element
from stepwell.core.dot_instructions import TOTALS, WORD, speedup, tile_instruction
from stepwell.core.machine import Machine
from stepwell.transforms.kernels.schedule.vectors import Loops

MIN_LINE_PLACES = 4
"""Places of a line that repay packing filters as words for each line."""
MIN_PRODUCTS = 8
"""Products of a sum below which words are not worth packing."""
SIDE = 16
"""Rows, columns and words of a tile of a matrix unit."""
MATRIX_TILE = 2 * SIDE, 2
"""Four tiles of sums: each tile of words that is loaded serves two products."""
IN_TILES = (
    "a unit of the machine multiplies tiles of 16 rows and columns, of which four are at hand"
)
IN_DOTS = (
    "in blocks, {} packed as words of {}, whose products are added up by one instruction where "
    "there is such a one"
)
BOTH, ONE = "both operands", "the operand of the columns"
WORDS = {"i8": "four bytes", "ui8": "four bytes", "f16": "two f16", "bf16": "two bf16"}


def multiplied(found: Loops, first: int, shared: int, machine: Machine) -> tuple[str, str] | None:
    """Return the element types if an instruction, or two shorts at a time, sums products.

    Bytes are worth it on any machine, floats where there is an instruction. Columns are packed
    again for each iteration of loops before the rows.
    """
    op = found.op
    again = prod(map(found.size, range(first, shared - 2)))
    repaid = again <= 1 or found.size(shared - 2) >= MIN_LINE_PLACES
    short = found.size(len(found.parallel) - 1) < MIN_PRODUCTS
    if not repaid or short:
        return None
    elements = dot_elements(op.regions[0].block)
    if elements is None or machine.vector_bits // _bits(elements[0]) > machine.vector_lanes:
        return None  # a vector of words is loaded as a vector of their elements
    if TOTALS[elements[0]] == "i32":
        return elements if element(op.outputs[0]) == i32 else None
    return elements if speedup(machine.instructions.split("+"), *elements) > 1 else None


def _bits(name: str) -> int:
    """Return the bits of an element by the name of its type."""
    return int("".join(filter(str.isdigit, name)))


def fills_matrix_unit(
    found: Loops, first: int, shared: int, machine: Machine, elements: tuple[str, str]
) -> bool:
    """Whether the machine multiplies whole tiles, and the product is large enough to fill them."""
    plain = first == shared - 2 and len(found.parallel) == shared + 1
    lanes = machine.full_lanes(WORD)
    worth = min(found.size(shared - 2), found.size(shared - 1)) >= SIDE
    return (
        plain
        and worth
        and lanes >= SIDE
        and bool(tile_instruction(machine.instructions.split("+"), *elements))
    )


def reads_words_in_place(found: Loops, shared: int, bytes: int) -> bool:
    """Whether the unit reads the operand of the rows in place: its rows are whole steps of words.

    bytes : of an element
    """
    loops = shared - 2, len(found.parallel) - 1
    rows = next(each for each in found.operands if loops[0] in each.loops)
    return are_rows_of_words(rows.place, loops, found.extents[loops[1] :], bytes)
