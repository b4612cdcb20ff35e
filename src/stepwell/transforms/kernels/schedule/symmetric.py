"""Products whose rows are read from panels, as columns are, and those that are symmetric.

Rows of a transposed operand are contiguous across the sum: a tile would read a few elements of each
of many lines. An operand that is multiplied by itself is packed once, and rows and columns read the
same panels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX

from stepwell.analysis.levels.symmetry import is_symmetric
from stepwell.analysis.structured import bits_of, element, stride
from stepwell.core.machine import Machine
from stepwell.transforms.kernels.schedule.beyond import reads_in_place
from stepwell.transforms.kernels.schedule.contraction import Contraction
from stepwell.transforms.kernels.schedule.reasons import explain_choice
from stepwell.transforms.kernels.schedule.vectors import Loops

MIN_MIRRORED_BLOCKS = 8
"""Blocks of rows of a symmetric product, of which 9/16 of all blocks are on or below the diagonal:
twice as many would save 1/32."""


def is_across(found: Loops, shared: int, machine: Machine) -> bool:
    """Whether the rows of a plain product are contiguous across the sum, and on many pages."""
    row, depth = shared - 2, shared
    if len(found.parallel) != shared + 1 or DYNAMIC_INDEX in found.extents:
        return False
    across = [
        prod(map(found.size, each.loops)) * bits_of(element(each.value)) // 8
        for each in found.operands
        if row in each.loops and stride(each.place, row) == 1 and stride(each.place, depth) != 1
    ]
    return max(across, default=0) > reads_in_place(machine)


def mirrors(ops: Sequence[Loops], found: Loops, shared: int) -> bool:
    """Whether the results of a plain product are equal on both sides of the diagonal."""
    plain = len(found.parallel) == shared + 1
    return plain and is_symmetric([each.op for each in ops], shared)


def with_mirror(chosen: Contraction, found: Loops, shared: int) -> Contraction | None:
    """Return the choice with blocks of whole steps of columns, of which half are computed.

    None where there are too few rows.
    """
    *before, rows, columns, deep = chosen.block
    high = found.extents[shared - 2]
    most = rows if high == DYNAMIC_INDEX else min(rows, high // MIN_MIRRORED_BLOCKS)
    rows = max(most // columns, 1) * columns
    if 0 <= high <= 2 * rows:
        return None
    explain_choice(found.op, lambda: "symmetric: blocks beyond the diagonal are copied")
    return replace(chosen, block=(*before, rows, columns, deep), mirror=True)
