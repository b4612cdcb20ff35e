"""In how many runs of rows a sum over rows is cut, which threads share where columns are few."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.linalg import ops as linalg

from stepwell.analysis.levels import Lanes, Nesting
from stepwell.analysis.structured import element, indices
from stepwell.dialects import kernel
from stepwell.transforms.kernels.schedule.beyond import ends_soon, is_beyond
from stepwell.transforms.kernels.schedule.block_sizes import LEAST_L2
from stepwell.transforms.kernels.schedule.reasons import because
from stepwell.transforms.kernels.schedule.vectors import Loops, Vectors, bits_of, sums_rows

MOST = 64
"""So many runs keep every thread busy."""
PARTIALS = 8
"""The sums of all runs may take one in so many bytes of the second cache, which rows go through."""
FEWEST = 8
"""Fewer runs than this are not worth it, ..."""
SHORTEST = 16
"""... nor are runs of fewer rows, ..."""
ENOUGH = 1 << 19
"""... nor are fewer elements."""


ROW = 1 << 8
"""Rows of fewer bytes are fetched ahead as one run."""
ABREAST = 8
"""So many rows are read side by side: more runs of memory than that are not fetched ahead."""
VECTORS = 2
"""So many vectors of each row are added up in registers at a time."""


def cut_rows(
    function: kernel.FuncOp, ops: Sequence[Loops], nesting: Nesting, machine: Vectors, l2: int
) -> bool:
    """Cut a sum over rows in runs, if that is worth it."""
    if not (runs := _runs(ops, nesting.shared, max(l2, LEAST_L2) // PARTIALS)):
        return False
    nesting.split, nesting.split_rows = runs, ABREAST
    for loops in ops:
        loops.lanes = Lanes(0, loops.lanes.width, min(loops.lanes.many, VECTORS))
    why = f"summed in {runs} runs of rows, read from end to end, for threads to share"
    because(function, lambda: why)
    if _asks(ops, machine, l2):
        nesting.prefetch = True
    return True


def _asks(ops: Sequence[Loops], machine: Vectors, l2: int) -> bool:
    """Whether rows are long enough to be asked for, and come from memory or are short ones.

    Short ones of a product are asked for: weights are seldom in a cache, as what is only summed
    often is.
    """
    (loops,) = [loops for loops in ops if not all(loops.parallel)]
    op = loops.op
    assert isinstance(op, linalg.GenericOp)
    rows = [
        bits_of(element(operand)) // 8
        for operand, index in zip(op.inputs, indices(op), strict=False)
        if any(0 in expr.used_dims() for expr in index)
    ]
    each = max(rows, default=0)
    bytes = each * prod(loops.size(k) for k in range(len(loops.extents)))
    row = each * loops.size(0)
    if row < ROW:
        return False
    beyond = is_beyond(loops.op, bytes, machine, l2)
    return beyond or (len(op.inputs) > 1 and ends_soon(loops.op, row, bytes, l2))


def _runs(ops: Sequence[Loops], shared: int, most: int) -> int:
    """Return the number of runs; 0 where columns are what threads share.

    most : bytes that the sums of all runs may take
    """
    sums = [loops for loops in ops if not all(loops.parallel)]
    if shared != 1 or len(sums) != 1 or any(any(loops.parallel[1:]) for loops in ops):
        return 0
    (loops,) = sums
    op = loops.op
    if not isinstance(op, linalg.GenericOp) or not loops.free or not sums_rows(loops, 0):
        return 0
    results = indices(op)[len(op.inputs) :]
    if loops.lanes.axis != 0 or any(e.used_dims() - {0} for index in results for e in index):
        return 0
    columns, rows = loops.extents[0], loops.size(1)
    size = sum(bits_of(element(o)) // 8 for o in op.outputs)
    if columns == DYNAMIC_INDEX or loops.extents[1] == DYNAMIC_INDEX:
        return 0
    runs = min(MOST, most // max(columns * size, 1))
    if runs < FEWEST or rows < runs * SHORTEST or rows * columns < ENOUGH:
        return 0
    return runs
