"""The order in which the loops of a kernel of one op run."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.linalg import ops as linalg

from stepwell.analysis.structured import contracts, extents, indices, plain, stride

SHORT = 5
"""The number of rows below which a register tile is not filled."""


def shared_order(op: linalg.GenericOp, loops: list[int], alone: bool) -> list[int]:
    """Return the order of shared loops: as the output lies in memory, a tile's two loops last.

    loops : the shared loops, by number
    alone : whether a kernel has no other op
    """
    out = indices(op)[len(op.inputs)]
    order = memory_order(op, loops)
    if contracts(op):
        order = tiled(op, loops, order, [stride(out, d) for d in loops])
    if alone and len(op.inputs) == 1 and len(loops) > 1:
        order = _transposed_tile(op, loops, order)
    return order


def memory_order(op: linalg.GenericOp, loops: list[int]) -> list[int]:
    """Return the order of loops in which the output of an op lies in memory."""
    out = indices(op)[len(op.inputs)]
    rank = {loop: axis for axis, expr in enumerate(out) if (loop := plain(expr)) is not None}
    return sorted(range(len(loops)), key=lambda j: rank.get(loops[j], len(rank)))


def loop_order(op: linalg.GenericOp, shared: list[int]) -> list[int]:
    """Return the loops of ``op`` with the shared ones first.

    The reduction loops of a contraction follow the memory order of the operand that a register
    tile reads row by row.
    """
    own = [d for d in range(len(op.iterator_types)) if d not in shared]
    if len(own) > 1 and len(shared) > 1 and contracts(op):
        row, column = shared[-2:]
        for index in indices(op)[: len(op.inputs)]:
            axes = {d: axis for axis, expr in enumerate(index) for d in expr.used_dims()}
            if row in axes and column not in axes:
                own.sort(key=lambda d: axes.get(d, -1))
                break
    return [*shared, *own]


def tiled(
    op: linalg.GenericOp, loops: list[int], order: list[int], written: Sequence[int | None]
) -> list[int]:
    """Return ``order`` with a row loop before the last, vector, loop.

    The operands that vary along the vector loop should be invariant in the row loop, so that a
    register tile loads them once; of such loops the innermost is taken. Only the final outputs
    count, which move by ``written`` elements with each step of a loop, not the intermediates.
    """
    if len(order) < 2:
        return order

    def along(j: int) -> int:
        where = [*(stride(index, loops[j]) for index in indices(op)[: len(op.inputs)]), written[j]]
        return sum(by in (0, 1) for by in where)

    vector = max(order, key=lambda j: (along(j), order.index(j)))
    others = [j for j in order if j != vector]
    inputs = [
        {d for expr in index for d in expr.used_dims()} for index in indices(op)[: len(op.inputs)]
    ]
    beside = [used for used in inputs if loops[vector] in used]
    rows = [j for j in others if all(loops[j] not in used for used in beside)]
    if rows:
        row = _row(op, loops, rows)
        others = [*(j for j in others if j != row), row]
    return [*others, vector]


def _row(op: linalg.GenericOp, loops: list[int], rows: Sequence[int]) -> int:
    """Return the loop of ``rows`` that a register tile unrolls: the last, unless it is short.

    A short one is replaced by a longer one along which an operand is contiguous, as the features
    of an image are in the gradient of a convolution's filters.
    """
    sizes, where = extents(op), indices(op)[: len(op.inputs)]
    last = rows[-1]
    if not 0 <= sizes[loops[last]] < SHORT:
        return last
    beside = [j for j in rows if any(stride(index, loops[j]) == 1 for index in where)]
    longer = [j for j in beside if sizes[loops[j]] > sizes[loops[last]]]
    return max(longer, key=lambda j: sizes[loops[j]], default=last)


def _transposed_tile(op: linalg.GenericOp, loops: list[int], order: list[int]) -> list[int]:
    """Return ``order`` with the loop in which the input is contiguous before the last.

    The output is contiguous in the last one, so a tile of the two loops is transposed.
    """
    read = indices(op)[0]
    side = plain(read[-1]) if read else None
    if side is None or loops[order[-1]] == side:
        return order
    rows = [j for j in order if loops[j] == side]
    return [*(j for j in order[:-1] if j not in rows), *rows, order[-1]]
