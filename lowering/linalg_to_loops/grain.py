"""The grain of a parallel loop, iterations that are worth a thread, computed at launch."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith

from stepwell.analysis.structured import cost
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.writer import Index, Writer
from stepwell.transforms.kernels.schedule.vectors import CHUNK


def grain_at_launch(
    writer: Writer,
    ops: Sequence[Structured],
    extents: Sequence[Sequence[Index]],
    blocks: Sequence[int],
) -> Index:
    """Return how many parallel iterations have as much work as is worth handing to a thread.

    blocks : the iterations of each parallel loop that one parallel iteration takes
    """
    each = Index.of(1)
    for op, loops in zip(ops, extents, strict=True):
        one = Index.of(_work(op))
        for k, extent in enumerate(loops):
            block = blocks[k] if k < len(blocks) else 0
            if block != 1:
                here = writer.minimum(Index.of(block), extent) if block else extent
                one = writer.product(one, here)
        each = each + one
    return writer.divide(Index.of(CHUNK), each.number or writer.value(each), arith.DivUIOp)


def _work(op: Structured) -> int:
    """Return the cost of one iteration, in additions and memory accesses, as `schedule` counts."""
    if op.body is None:
        return 1
    touched = sum(op.body.args[k].first_use is not None for k in range(len(op.inputs)))
    return max(cost(op.body), 1) + touched + len(op.outputs)
