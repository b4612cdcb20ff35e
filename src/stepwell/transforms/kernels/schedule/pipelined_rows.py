"""Decide whether rows are pipelined: the first loop of one along with the second of the last."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX

from stepwell.analysis.structured import bits_of, element
from stepwell.transforms.kernels.schedule.nest import Nest
from stepwell.transforms.kernels.schedule.vectors import Loops

MAX_RUN_ROWS = 16
"""Rows of a pipelined run: the first loop of one runs alone, that of another in vain."""
MIN_RUN_ROWS = 4
"""Rows below which a run does not repay that."""
MIN_COLUMNS = 64
"""Columns of a row below which there is no latency to hide."""
L1_DIVISOR = 2
"""The part of the L1 cache, 1/2, that this row, the next and a result may take; the rest is for
other operands."""


def pipelined_rows(nest: Nest, enough: int, l1: int) -> int:
    """Return the rows of a pipelined run; 0 where the loops of rows are not merged.

    The first op reduces a row; the second reads the same row and the reduction's result.

    enough : runs of rows that keep every thread busy
    l1 : bytes of the L1 cache
    """
    ops, shared = nest.ops, nest.shared
    if not shared or nest.steps:
        return 0
    long = [loops for loops in ops if len(loops.extents) > shared]
    if len(long) < 2 or long[0] is not ops[0] or not long[0].free or long[0].writes_along:
        return 0
    first, second = long[:2]
    sizes = first.extents
    apart = first.parallel[shared:] == [False] and second.extents == sizes
    if not apart or DYNAMIC_INDEX in sizes or not all(_runs_in_vectors(x, shared) for x in long):
        return 0
    columns, rows = sizes[shared], prod(sizes[:shared])
    bits = sum(bits_of(element(operand)) for operand in first.op.inputs[:1])
    writes = any(all(loops.parallel) or loops.writes_along for loops in long)
    if columns < MIN_COLUMNS or columns * bits * (3 if writes else 2) > l1 // L1_DIVISOR * 8:
        return 0
    run = min(MAX_RUN_ROWS, rows // enough)
    return run if run >= MIN_RUN_ROWS else 0


def _runs_in_vectors(loops: Loops, shared: int) -> bool:
    return loops.lanes.axis >= shared
