"""Blocks of operands that are narrower than the type that is computed with."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import DYNAMIC_INDEX

from stepwell.analysis.levels.legality import MAX_SCRATCH_BYTES
from stepwell.analysis.structured import CASTS, bits_of, element
from stepwell.transforms.kernels.schedule.block_sizes import even
from stepwell.transforms.kernels.schedule.contraction import Contraction
from stepwell.transforms.kernels.schedule.reasons import explain_choice
from stepwell.transforms.kernels.schedule.vectors import Loops

WIDENED = "rows are packed too: they are narrower than what is computed with, and widened once"


def is_along(found: Loops, packed: int, shared: int) -> bool:
    """Whether the operand that is read in place varies with the columns too."""
    return any(shared - 1 in each.loops for each in found.operands if each.number != packed)


def widened(found: Loops, chosen: Contraction, packed: int, first: int, shared: int) -> Contraction:
    """Return the choice for operands narrower than the type that is computed with.

    Rows are widened once for each block, not for each use.
    """
    op = found.op
    simple = first == shared - 2 and len(found.parallel) == shared + 1
    if not simple or not is_widened(found) or is_along(found, packed, shared):
        return chosen
    *_, rows, columns, deep = chosen.block
    bytes = bits_of(element(op.outputs[0])) // 8
    deep = min(deep, MAX_SCRATCH_BYTES // (columns * bytes) // 8 * 8)
    unit = columns if chosen.mirror else chosen.tile[0]
    most = MAX_SCRATCH_BYTES // (deep * bytes) // chosen.width * chosen.width // unit * unit
    if not most:
        return chosen
    high = found.extents[shared - 2]
    if rows > most:
        rows = most if high == DYNAMIC_INDEX else even(high, most, unit)
    block = (*chosen.block[:-3], rows, columns, deep)
    explain_choice(op, lambda: WIDENED)
    return replace(chosen, block=block, pack_rows="")


def is_widened(found: Loops) -> bool:
    """Whether operands are narrower than the type that is computed with."""
    arguments = found.op.regions[0].block.args[: len(found.op.inputs)]
    return any(isinstance(use.operation, CASTS) for arg in arguments for use in arg.uses)
