"""Whether the first loop of a row may run along with the second of the row before."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.linalg import ops as linalg

from stepwell.analysis.levels import Nesting
from stepwell.analysis.structured import element
from stepwell.transforms.kernels.schedule.vectors import Loops, bits_of

RUN = 16
"""So many rows one after the other: the first loop of one stands alone, of one runs in vain."""
LEAST = 4
"""Fewer are not worth that."""
SHORTEST = 64
"""Shorter rows are over at once."""
ROOM = 2
"""More than one in so many bytes of the first cache, of this row, the next and a result, leave no
room for what else is read."""


def rows_ahead(ops: Sequence[Loops], nesting: Nesting, enough: int, l1: int) -> int:
    """Return how many rows run one after the other; 0 where their loops run apart.

    The first op reduces a row, the second walks over the same row and wants what the first found.

    enough : runs of rows keep every thread busy
    l1 : bytes of the first cache
    """
    shared = nesting.shared
    if not shared or nesting.tile != (1, 1) or nesting.whole_reads or nesting.band > 1:
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
    assert isinstance(first.op, linalg.GenericOp)
    bits = sum(bits_of(element(operand)) for operand in first.op.inputs[:1])
    writes = any(all(loops.parallel) or loops.writes_along for loops in long)
    if columns < SHORTEST or columns * bits * (3 if writes else 2) > l1 // ROOM * 8:
        return 0
    run = min(RUN, rows // enough)
    return run if run >= LEAST else 0


def _runs_in_vectors(loops: Loops, shared: int) -> bool:
    return loops.lanes.axis >= shared
