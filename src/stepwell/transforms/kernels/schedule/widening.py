"""Blocks of operands that are narrower than the type that is computed with."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import DYNAMIC_INDEX

from stepwell.analysis.levels.legality import MAX_SCRATCH_BYTES
from stepwell.analysis.products import byte_products, exact_count
from stepwell.analysis.structured import CASTS, bits_of, element
from stepwell.transforms.kernels.schedule.block_sizes import even
from stepwell.transforms.kernels.schedule.contraction import Contraction
from stepwell.transforms.kernels.schedule.reasons import explain_choice
from stepwell.transforms.kernels.schedule.vectors import Loops

WIDENED = "rows are packed too: they are narrower than what is computed with, and widened once"
IN_FLOATS = "; products of bytes are added up in floats, which is exact for a part so deep"


def is_along(found: Loops, packed: int, shared: int) -> bool:
    """Whether the operand that is read in place varies with the columns too."""
    return any(shared - 1 in each.loops for each in found.operands if each.number != packed)


def widened(found: Loops, chosen: Contraction, packed: int, first: int, shared: int) -> Contraction:
    """Return the choice for operands narrower than the type that is computed with.

    Rows are widened once for each block, not for each use, and bytes become f32: one instruction
    multiplies and adds them, and a part of this depth is exact.
    """
    op = found.op
    simple = first == shared - 2 and len(found.parallel) == shared + 1
    if not simple or not is_widened(found) or is_along(found, packed, shared):
        return chosen
    signs = byte_products(op.regions[0].block)
    *_, rows, columns, deep = chosen.block
    deep = min(deep, exact_count(signs) // 8 * 8) if signs else deep
    bytes = max(bits_of(element(op.outputs[0])), 32 if signs else 0) // 8  # as f32
    deep = min(deep, MAX_SCRATCH_BYTES // (columns * bytes) // 8 * 8)
    unit = columns if chosen.mirror else chosen.tile[0]
    most = MAX_SCRATCH_BYTES // (deep * bytes) // chosen.width * chosen.width // unit * unit
    if not most:
        return chosen
    high = found.extents[shared - 2]
    if rows > most:
        rows = most if high == DYNAMIC_INDEX else even(high, most, unit)
    block = (*chosen.block[:-3], rows, columns, deep)
    explain_choice(op, lambda: WIDENED + (IN_FLOATS if signs else ""))
    return replace(chosen, block=block, pack_rows="", accumulate_in_f32=signs is not None)


def is_widened(found: Loops) -> bool:
    """Whether operands are narrower than the type that is computed with."""
    arguments = found.op.regions[0].block.args[: len(found.op.inputs)]
    return any(isinstance(use.operation, CASTS) for arg in arguments for use in arg.uses)
