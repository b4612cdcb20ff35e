"""Partition the ops of one block into kernels and host code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.dialects import scf, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from stepwell.analysis.structured import is_parallel, shape, yielded
from stepwell.core.machine import Machine
from stepwell.dialects import kernel
from stepwell.dialects.kernel.sharing import is_border
from stepwell.lowering.outline_kernels.borders import border_groups, join
from stepwell.lowering.outline_kernels.clusters import (
    Cluster,
    merged_loops,
    refusal,
    waited_for,
)
from stepwell.lowering.outline_kernels.outside import Outside
from stepwell.lowering.outline_kernels.predicted import slower_together
from stepwell.transforms.passes import remark

_SCALAR = ("arith", "math")
_ELEMENTS = (
    *(scf.ForOp, scf.WhileOp, scf.IfOp, scf.YieldOp, scf.ConditionOp),
    *(tensor.InsertOp, tensor.ExtractOp, tensor.DimOp, kernel.CheckOp),
)


@dataclass
class Cut:
    """The clusters of one block, grown op by op in program order."""

    block: Block
    outside: Outside
    machine: Machine
    of: dict[Operation, Cluster] = field(default_factory=dict[Operation, Cluster])
    clusters: list[Cluster] = field(default_factory=list[Cluster])
    order: dict[Operation, int] = field(default_factory=dict[Operation, int])
    reached: dict[Operation, int] = field(default_factory=dict[Operation, int])
    """Maps a host op to the last position that it depends on."""

    def grow(self, borders: bool) -> list[Cluster]:
        """Visit every op of the block; return the clusters in execution order.

        borders : whether the fills and copies that make one padded tensor may share a kernel
        """
        for number, op in enumerate(self.block.ops):
            self.order[op] = number
            if is_computing(op):
                self._add(op)
            elif not isinstance(op, linalg.FillOp | tensor.EmptyOp):
                self._record_host_op(op)
            else:
                self.reached[op] = self._latest(op)
        if borders:
            self._join_borders()
        self._take_in_edges()
        live = [c for c in self.clusters if c.into is None]
        return sorted(live, key=lambda c: c.position)

    def _join_borders(self) -> None:
        """Merge the clusters that fill and copy the parts of one tensor."""
        for ops, common in border_groups(self.block):
            clusters = [self.of[op].find() for op in ops if op in self.of]
            if len(set(clusters)) == len(ops):
                join(clusters, ops, common)

    def _take_in_edges(self) -> None:
        """Move each border op, which places an image within its padding, to its reader's kernel."""
        for op, cluster in list(self.of.items()):
            if is_border(op):
                (use,) = op.results[0].uses
                reader = self.of[use.operation].find()
                pairs = [(k, k) for k in range(len(reader.loops[use.operation]))]
                self._merge(cluster, reader, self._merged(cluster, reader, pairs), reader.position)

    def _record_host_op(self, op: Operation) -> None:
        """Record the dependences of a host op, and hold the clusters whose results it uses."""
        for value in self.outside.values(op):
            if isinstance(value, OpResult) and value.op in self.of:
                self.of[value.op].find().held = True
        self.reached[op] = self._latest(op)

    def _latest(self, op: Operation) -> int:
        return max((self._position(v) for v in self.outside.values(op)), default=0)

    def _position(self, value: SSAValue) -> int:
        if not isinstance(value, OpResult):
            return 0
        if (cluster := self.of.get(value.op)) is not None:
            return cluster.find().position
        return self.reached.get(value.op, 0)

    def _add(self, op: Operation) -> None:
        """Start a cluster with ``op``, then try to merge it with its producers."""
        cluster = Cluster([op], {op: _parallel_loops(op)}, len(self.clusters) + 1)
        self.clusters.append(cluster)
        self.of[op] = cluster
        producers: dict[Cluster, None] = {}
        for read in cluster.facts[op].reads:
            for value in self._through_fill(read.value):
                if isinstance(value, OpResult) and value.op in self.of:
                    producers[self.of[value.op].find()] = None
                else:
                    cluster.host = max(cluster.host, self._position(value))
        for producer in producers:
            producer.users.add(cluster)
            cluster.needs.add(producer)
        if isinstance(op, linalg.GenericOp):
            for producer in sorted(producers, key=lambda c: -c.position):
                self._try(producer, cluster)

    def _through_fill(self, value: SSAValue) -> Iterator[SSAValue]:
        """Yield the real dependences of a destination: a fill is repeated inside the kernel."""
        fill = value.owner
        if isinstance(fill, linalg.FillOp) and fill not in self.of:
            for operand in fill.operands:
                yield from self._through_fill(operand)
        else:
            yield value

    def _try(self, producer: Cluster, consumer: Cluster) -> None:
        first, last = producer.find(), consumer.find()
        if first is last or not isinstance(first.members[0], linalg.GenericOp):
            return
        if first.position > last.position:
            first, last = last, first
        others = max((c.find().position for c in last.needs if c.find() is not first), default=0)
        hoists = max(others, last.host) < first.position
        sinks = not first.held and all(c.find() in (first, last) for c in first.users)
        where = consumer.members[-1]
        if not hoists and not sinks:
            remark(where, "not in the kernel of what feeds it: other kernels run between them")
            return
        if waited_for(first, last) and not {c.find() for c in last.needs} <= {
            first,
            *(c.find() for c in first.needs),
        }:
            remark(where, "not in the kernel of numbers that others wait for as well")
            return
        pairs = merged_loops(first, last)
        merged = self._merged(first, last, pairs)
        why = refusal(first, last, pairs) or slower_together(first, last, merged, self.machine)
        if why:
            remark(where, f"not in the kernel of what feeds it: {why}")
            return
        self._merge(first, last, merged, first.position if hoists else last.position)

    def _merged(self, first: Cluster, last: Cluster, pairs: list[tuple[int, int]]) -> Cluster:
        """Return the ops of both clusters as one, with the loops of ``pairs`` shared."""
        loops = {op: [own[i] for i, _ in pairs] for op, own in first.loops.items()}
        loops |= {op: [own[j] for _, j in pairs] for op, own in last.loops.items()}
        members = sorted((*first.members, *last.members), key=self.order.__getitem__)
        return Cluster(members, loops, 0, facts=first.facts | last.facts)

    def _merge(self, first: Cluster, last: Cluster, merged: Cluster, position: int) -> None:
        """Replace both clusters by ``merged``, at a position."""
        first.members, first.loops, first.facts = merged.members, merged.loops, merged.facts
        first.position = position
        first.host = max(first.host, last.host)
        first.needs = {c.find() for c in first.needs | last.needs} - {first, last}
        first.users = {c.find() for c in first.users | last.users} - {first, last}
        first.held |= last.held
        last.into = first


def is_computing(op: Operation) -> bool:
    """Whether ``op`` belongs in a kernel."""
    if isinstance(op, linalg.GenericOp | tensor.SplatOp):
        return True
    if isinstance(op, linalg.FillOp):
        return any(not _is_destination(use.operation, use.index) for use in op.results[0].uses)
    return isinstance(op, scf.ForOp) and is_scalar_nest(op)


def is_scalar_nest(op: Operation) -> bool:
    """Whether ``op`` is a loop that writes single elements, such as a scatter, or checks some.

    A loop that also carries a scalar stays on the host: kernels return only tensors.
    """
    return (
        is_scalar_code(op)
        and all(isinstance(result.type, TensorType) for result in op.results)
        and any(isinstance(inner, tensor.InsertOp | kernel.CheckOp) for inner in op.walk())
        and not any(_reads_initial_value(inner) for inner in op.walk() if inner is not op)
        and all(_yields_in_place(inner) for inner in op.walk())
    )


def _yields_in_place(op: Operation) -> bool:
    """Whether a loop yields each carried tensor updated in place, as kernels require."""
    if not isinstance(op, scf.ForOp):
        return True
    return all(
        _updated_tensor(value) is given
        for value, given in zip(yielded(op.body.block), op.body.block.args[1:], strict=True)
        if isinstance(value.type, TensorType)
    )


def _updated_tensor(value: SSAValue) -> SSAValue:
    """Return the tensor that ``value`` updates in place."""
    while isinstance(value, OpResult):
        match value.op:
            case tensor.InsertOp() as insert:
                value = insert.dest
            case scf.ForOp() as loop:
                value = loop.iter_args[value.index]
            case scf.WhileOp() as loop:
                forwarded = yielded(loop.before_region.block)[1 + value.index]
                if not isinstance(forwarded, BlockArgument):
                    break
                value = loop.arguments[forwarded.index]
            case scf.IfOp() as branch:
                ways = [
                    _updated_tensor(yielded(region.block)[value.index]) for region in branch.regions
                ]
                if ways[0] is not ways[1]:
                    break
                value = ways[0]
            case _:
                break
    return value


def _reads_initial_value(op: Operation) -> bool:
    """Whether the body of a loop also reads the initial value of a tensor that it carries.

    Inside one kernel both share a buffer; as separate launches they have two.
    """
    return isinstance(op, scf.ForOp) and any(
        op.is_ancestor(use.operation) and use.operation is not op
        for init in op.iter_args
        if isinstance(init.type, TensorType)
        for use in init.uses
    )


def is_scalar_code(op: Operation) -> bool:
    """Whether ``op`` and its nested ops work on scalars and single elements of tensors."""
    return all(
        isinstance(inner, _ELEMENTS) or inner.name.split(".")[0] in _SCALAR for inner in op.walk()
    )


def _parallel_loops(op: Operation) -> list[int]:
    match op:
        case linalg.GenericOp():
            return [d for d, parallel in enumerate(is_parallel(op)) if parallel]
        case linalg.FillOp() | tensor.SplatOp():
            return list(range(len(shape(op.results[0]))))
        case _:
            return []


def _is_destination(user: Operation, operand: int) -> bool:
    if isinstance(user, linalg.GenericOp):
        return operand >= len(user.inputs)
    return isinstance(user, scf.ForOp) and operand >= 3 and is_scalar_nest(user)
