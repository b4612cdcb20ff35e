"""Decide which structured ops share one kernel: clusters are grown greedily, in one pass.

The members of a cluster run inside common parallel loops. Loop j of the cluster is loop
``loops[op][j]`` of each member. A value passed inside is read at the indices it was written at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import permutations
from math import prod

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr

from stepwell.analysis.costs import SERIAL
from stepwell.analysis.structured import (
    Index,
    combiner,
    contracts_in_groups,
    cost,
    extents,
    indices,
    is_not_fused,
    is_parallel,
    plain,
    shape,
)

GUESS = 1024
"""The trip count assumed for a loop of dynamic size."""
ENOUGH = 64
"""The number of parallel iterations that keeps every thread busy."""
SMALL_ROW = 256
"""The most iterations per row with which a contraction may run row by row, without a tile."""
TALL = 1 << 12
"""The number of rows from which a column, one or two cache lines a row, exceeds a core's cache."""
WIDE = 1 << 19
"""The number of summed elements from which a reduction is split into runs of rows for threads."""
MEMBERS = 32
"""The most ops in a kernel; a larger one gains nothing by another op."""


@dataclass(eq=False)
class Facts:
    """Properties of a member that are used often while clusters grow; each is computed once."""

    op: Operation

    @cached_property
    def reads(self) -> list[Read]:
        """Its tensor operands."""
        return reads(self.op)

    @cached_property
    def sizes(self) -> list[int]:
        """The trip counts of its loops."""
        return _sizes(self.op)

    @cached_property
    def work(self) -> int:
        """Its iterations times the cost of one."""
        each = cost(self.op.body.block) if isinstance(self.op, linalg.GenericOp) else 1
        return prod(self.sizes) * max(each, 1)

    @cached_property
    def contracts(self) -> bool:
        """Whether it is a contraction."""
        return isinstance(self.op, linalg.GenericOp) and contracts_in_groups(self.op)


@dataclass(eq=False)
class Cluster:
    """Ops that may become one kernel, and its position in the order of kernels."""

    members: list[Operation]
    loops: dict[Operation, list[int]]
    position: int
    host: int = 0
    """The last position on which the host ops that define its operands depend."""
    needs: set[Cluster] = field(default_factory=set["Cluster"])
    users: set[Cluster] = field(default_factory=set["Cluster"])
    held: bool = False
    """Whether a host op uses a result: the cluster then cannot move behind that op."""
    into: Cluster | None = None
    facts: dict[Operation, Facts] = field(default_factory=dict["Operation", "Facts"])

    def __post_init__(self) -> None:
        self.facts = self.facts or {op: Facts(op) for op in self.members}

    def find(self) -> Cluster:
        """Return the cluster into which this one was merged, or itself."""
        at = self
        while at.into is not None:
            at = at.into
        return at


@dataclass
class Read:
    """One operand of a member: the value, and the index it is read at (None: unknown)."""

    value: SSAValue
    index: Index | None


def reads(op: Operation) -> list[Read]:
    """Return every tensor operand of a member, destinations included, with its index."""
    found: list[Read] = []
    if isinstance(op, linalg.GenericOp):
        found = [Read(v, i) for v, i in zip(op.operands, indices(op), strict=True)]
    else:
        found = [Read(v, None) for v in op.operands]
    inside = {id(each) for each in op.walk()}
    for region in op.regions:
        for each in region.walk():
            for value in each.operands:
                if isinstance(value, OpResult):
                    outer = id(value.op) not in inside
                else:
                    parent = value.owner.parent_op()
                    outer = parent is None or id(parent) not in inside
                if outer:
                    found.append(Read(value, None))
    return found


def merged_loops(a: Cluster, b: Cluster) -> list[tuple[int, int]]:
    """Return the pairs of loops that two clusters can share, for all values passed between."""
    pairs: list[tuple[int, int]] | None = None
    for writer, reader in ((a, b), (b, a)):
        for op in reader.members:
            for read in reader.facts[op].reads:
                made_by = read.value.owner
                if not isinstance(made_by, linalg.GenericOp) or made_by not in writer.loops:
                    continue
                found = _matching(writer, made_by, read, reader.loops[op])
                if reader is a:
                    found = [(j, i) for i, j in found]
                pairs = found if pairs is None else [p for p in pairs if p in found]
    return pairs or []


def _matching(
    writer: Cluster, made_by: linalg.GenericOp, read: Read, loops: Sequence[int]
) -> list[tuple[int, int]]:
    if read.index is None:
        return []
    assert isinstance(read.value, OpResult)
    written = indices(made_by)[len(made_by.inputs) + read.value.index]
    found: list[tuple[int, int]] = []
    for j, loop in enumerate(writer.loops[made_by]):
        axis = written.index(AffineDimExpr(loop)) if AffineDimExpr(loop) in written else None
        where = plain(read.index[axis]) if axis is not None else None
        if where is not None and where in loops:
            found.append((j, list(loops).index(where)))
    return found


def waited_for(first: Cluster, last: Cluster) -> bool:
    """Whether ``first`` computes only scalars, and ops outside of both clusters use them.

    Merged, those users would also wait for the operands of ``last``.
    """
    members = {*first.members, *last.members}
    results = [v for op in first.members for v in op.results]
    return all(isinstance(v.type, TensorType) and not v.type.get_shape() for v in results) and any(
        use.operation not in members for v in results for use in v.uses
    )


def refusal(a: Cluster, b: Cluster, pairs: list[tuple[int, int]]) -> str:
    """Return why one kernel would be worse than two, "" if it would not be."""
    if any(is_not_fused(op) for op in (*a.members, *b.members)):
        return "one of them is a kernel of its own"
    if len(a.members) + len(b.members) > MEMBERS:
        return "the kernel is long enough"
    if _updates_value_with_readers(a, b):
        return "it updates a value of unknown size that others read"
    work = _work(a) + _work(b)
    tiny = work <= SERIAL
    if not pairs and all(_splits(op) for op in (*a.members, *b.members)):
        return ""
    if not pairs and not tiny:
        return "they have no parallel loop in common"
    if _contracts(b) and not tiny:
        return "a contraction wants its registers for itself"
    if (contraction := _contracts(a)) and not tiny:
        kept = [i for i, _ in pairs]
        if not _stays_tiled(contraction, b, kept) and not _small_rows(a, contraction, kept):
            return "the contraction would lose its register tile"
    before = min(_parallelism(a, range(len(_loops(a)))), _parallelism(b, range(len(_loops(b)))))
    after = _parallelism(a, [i for i, _ in pairs])
    if after < min(before, ENOUGH) and not tiny:
        return f"only {after} iterations would be left to run in parallel"
    return _order(a, b, pairs, tiny)


def _updates_value_with_readers(a: Cluster, b: Cluster) -> bool:
    """Whether an op of ``b`` updates a result of ``a`` in place that has another reader.

    The kernel would need a scratch copy of it, which it cannot allocate for a dynamic size.
    """
    begun = (init for op in b.loops if isinstance(op, linalg.GenericOp) for init in op.outputs)
    return any(
        isinstance(init, OpResult)
        and init.op in a.loops
        and DYNAMIC_INDEX in shape(init)
        and not init.has_one_use()
        for init in begun
    )


def _order(a: Cluster, b: Cluster, pairs: list[tuple[int, int]], tiny: bool) -> str:
    """Return why one kernel would traverse memory in a worse order, "" if it would not."""
    if _sums_down_columns(a, b, pairs):
        return "a sum over rows would walk down columns, a few at a time"
    if not tiny and any(
        _gathers_across(op, c, k) for c, k in _shared_loops(a, b, pairs) for op in c.loops
    ):
        return "gathered elements would be written across rows"
    return ""


def _shared_loops(
    a: Cluster, b: Cluster, pairs: list[tuple[int, int]]
) -> Sequence[tuple[Cluster, list[int]]]:
    return (a, [i for i, _ in pairs]), (b, [j for _, j in pairs])


def _gathers_across(op: Operation, cluster: Cluster, kept: list[int]) -> bool:
    """Whether the loop of the last written axis of the gather ``op`` is shared, and another not.

    The shared loop would run outside of the other, and vectors along it do not make up for that.
    """
    if not isinstance(op, linalg.GenericOp) or not all(is_parallel(op)):
        return False
    if not any(isinstance(inner, tensor.ExtractOp) for inner in op.body.block.ops):
        return False
    written = indices(op)[-1]
    shared = {cluster.loops[op][j] for j in kept}
    last = plain(written[-1]) if written else None
    return last in shared and len(shared) < len(op.iterator_types)


def _sums_down_columns(a: Cluster, b: Cluster, pairs: list[tuple[int, int]]) -> bool:
    """Whether one cluster sums over many rows and the other has loops besides the columns.

    On its own such a sum reads whole rows contiguously, in runs that are divided among threads.
    """
    for (tall, kept), (other, _) in permutations(_shared_loops(a, b, pairs)):
        if len(kept) == 1 and any(_sums_rows(op, tall.loops[op][kept[0]]) for op in tall.loops):
            return any(
                isinstance(op, linalg.GenericOp) and len(op.iterator_types) > 1
                for op in other.loops
            )
    return False


def _sums_rows(op: Operation, column: int) -> bool:
    """Whether ``op`` sums many rows whose elements are contiguous along the loop ``column``."""
    if not isinstance(op, linalg.GenericOp) or contracts_in_groups(op):
        return False
    sizes, kinds = extents(op), is_parallel(op)
    rows = prod(n for n, parallel in zip(sizes, kinds, strict=True) if not parallel)
    if DYNAMIC_INDEX in sizes or rows < TALL or rows * sizes[column] < WIDE or sum(kinds) != 1:
        return False
    return any(index and plain(index[-1]) == column for index in indices(op)[: len(op.inputs)])


def _splits(op: Operation) -> bool:
    """Whether ``op`` is a full reduction that can be split into runs, or computes on scalars."""
    return (
        isinstance(op, linalg.GenericOp)
        and not any(is_parallel(op))
        and all(combiner(op, k) for k in range(len(op.outputs) if op.iterator_types.data else 0))
    )


def _loops(cluster: Cluster) -> list[int]:
    return cluster.loops[cluster.members[0]]


def _sizes(op: Operation) -> list[int]:
    if isinstance(op, linalg.GenericOp):
        return [GUESS if n == DYNAMIC_INDEX else n for n in extents(op)]
    return [
        GUESS if n == DYNAMIC_INDEX else n
        for result in op.results
        if isinstance(result.type, TensorType)
        for n in result.type.get_shape()
    ]


def _parallelism(cluster: Cluster, which: Sequence[int]) -> int:
    op = cluster.members[0]
    sizes = cluster.facts[op].sizes
    return prod(sizes[cluster.loops[op][j]] for j in which)


def _work(cluster: Cluster) -> int:
    return sum(each.work for each in cluster.facts.values())


def _contracts(cluster: Cluster) -> linalg.GenericOp | None:
    for op in cluster.members:
        if isinstance(op, linalg.GenericOp) and cluster.facts[op].contracts:
            return op
    return None


def heavy_contraction(cluster: Cluster) -> linalg.GenericOp | None:
    """Return the first contraction of a cluster, if it is worth a kernel of its own."""
    op = _contracts(cluster)
    return op if op is not None and cluster.facts[op].work > SERIAL else None


def _stays_tiled(contraction: linalg.GenericOp, b: Cluster, kept: list[int]) -> bool:
    """Whether all loops of the contraction's result stay shared, and ``b`` has no other loop."""
    return len(kept) == sum(is_parallel(contraction)) and all(
        isinstance(op, linalg.GenericOp) and len(op.iterator_types) == len(kept) for op in b.members
    )


def _small_rows(a: Cluster, contraction: linalg.GenericOp, kept: list[int]) -> bool:
    sizes = _sizes(contraction)
    loops = a.loops[contraction]
    shared = {loops[i] for i in kept}
    return bool(kept) and prod(n for d, n in enumerate(sizes) if d not in shared) <= SMALL_ROW
