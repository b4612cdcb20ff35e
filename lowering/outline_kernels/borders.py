"""Fill all borders of one image in one kernel, which also copies the interior.

Before:  launches of a kernel for each side of the border and for the copy, one after the other
After:   one launch with a destination for each, sharing the loops in which their sizes are equal

Each of them writes a part of one tensor, inserted by `tensor.insert_slice`; none reads another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, OpResult

from stepwell.analysis.structured import identity, indices, is_not_fused, shape
from stepwell.lowering.outline_kernels.clusters import Cluster

PLACES = 8
"""The number of iterations of the shared loops that keeps the threads busy."""


def border_groups(block: Block) -> Iterator[tuple[list[Operation], int]]:
    """Yield the ops that fill or copy parts of one tensor, and how many loops they can share."""
    for op in block.ops:
        if isinstance(op, tensor.InsertSliceOp) and _is_end(op):
            pieces = list(_pieces(op))
            common = _common_leading_axes([shape(p.results[0]) for p in pieces])
            if len(pieces) > 1 and prod(shape(op.result)[:common]) >= PLACES:
                yield pieces, common
                continue
            alike: dict[tuple[int, ...], list[Operation]] = {}
            for piece in pieces:
                alike.setdefault(shape(piece.results[0]), []).append(piece)
            yield from ((ops, len(sizes)) for sizes, ops in alike.items() if len(ops) > 1)


def join(clusters: Sequence[Cluster], ops: Sequence[Operation], common: int) -> None:
    """Merge the clusters of ``ops`` if each has a single member and none depends on another."""
    first, *others = clusters
    last = max(clusters, key=lambda c: c.position)
    if any(len(c.members) > 1 or (c.needs and c is not last) for c in clusters):
        return
    if any(c.users or c.host > last.position for c in clusters):
        return
    first.members = list(ops)
    first.loops = {op: list(range(common)) for op in ops}
    first.position, first.needs = last.position, last.needs
    first.host = max(c.host for c in clusters)
    for other in others:
        other.into = first


def _is_end(op: tensor.InsertSliceOp) -> bool:
    """Whether no other insertion has the result of ``op`` as its destination."""
    return not any(
        isinstance(use.operation, tensor.InsertSliceOp) and use.index == 1 for use in op.result.uses
    )


def _pieces(end: tensor.InsertSliceOp) -> Iterator[Operation]:
    """Yield the fills and plain copies that are inserted, in order, and have no other use."""
    chain: list[tensor.InsertSliceOp] = []
    at: Operation | Block = end
    while isinstance(at, tensor.InsertSliceOp) and (at is end or at.result.has_one_use()):
        chain.insert(0, at)
        at = at.dest.owner
    for op in chain:
        made_by, whole = op.source.owner, shape(op.result)
        if not isinstance(op.source, OpResult) or not op.source.has_one_use():
            continue
        sizes = shape(op.source)
        if len(sizes) == len(whole) and DYNAMIC_INDEX not in sizes and _is_piece(made_by):
            yield op.source.op


def _is_piece(op: Operation | Block) -> bool:
    if isinstance(op, linalg.FillOp):
        return isinstance(op.outputs[0].owner, tensor.EmptyOp)
    if not isinstance(op, linalg.GenericOp) or not is_not_fused(op):
        return False
    plain = identity(len(op.iterator_types))
    return len(op.inputs) == 1 and all(index == plain for index in indices(op))


def _common_leading_axes(shapes: Sequence[tuple[int, ...]]) -> int:
    """Return the number of leading axes in which all shapes are equal."""
    for axis, sizes in enumerate(zip(*shapes, strict=True)):
        if len(set(sizes)) > 1:
            return axis
    return len(shapes[0]) if shapes else 0
