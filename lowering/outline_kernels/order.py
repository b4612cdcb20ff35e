"""The order in which the loops of a cluster run."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation

from stepwell.analysis.loop_order import memory_order, shared_order, tiled
from stepwell.analysis.structured import contracts, indices, stride
from stepwell.lowering.outline_kernels.clusters import Cluster


def arrange(cluster: Cluster) -> None:
    """Order the shared loops of ``cluster``."""
    cluster.loops = shared_loops(cluster)


def shared_loops(cluster: Cluster) -> dict[Operation, list[int]]:
    """Return the shared loops of each op: as the output lies in memory, a tile's two loops last."""
    last = cluster.members[-1]
    if not isinstance(last, linalg.GenericOp):
        return cluster.loops
    own = cluster.loops[last]
    sums = [op for op in cluster.members if isinstance(op, linalg.GenericOp) and contracts(op)]
    if len(sums) > 1:
        order = _rows_last(sums, cluster.loops, memory_order(last, own))
    elif sums and sums[0] is not last:
        out = indices(last)[len(last.inputs)]
        written = [stride(out, d) for d in own]
        order = tiled(sums[0], cluster.loops[sums[0]], memory_order(last, own), written)
    else:
        order = shared_order(last, own, len(cluster.members) == 1)
    return {op: [loops[j] for j in order] for op, loops in cluster.loops.items()}


def _rows_last(
    sums: Sequence[linalg.GenericOp], loops: dict[Operation, list[int]], order: list[int]
) -> list[int]:
    """Return ``order`` with a loop last in which each of ``sums`` has an invariant operand."""

    def is_row(j: int) -> bool:
        return all(
            any(
                all(loops[op][j] not in expr.used_dims() for expr in index)
                for index in indices(op)[: len(op.inputs)]
            )
            for op in sums
        )

    rows = [j for j in order if is_row(j)]
    return [*(j for j in order if j != rows[-1]), rows[-1]] if rows else order
