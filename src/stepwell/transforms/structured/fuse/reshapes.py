"""Move elementwise ops above reshapes where that lets a reader merge the producer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from stepwell.analysis.structured import (
    PARALLEL,
    Index,
    array_of_maps,
    element,
    extents,
    identity,
    indices,
    is_elementwise,
    is_not_fused,
    plain,
    shape,
)
from stepwell.transforms.structured.fuse.cost import is_view, repeats
from stepwell.transforms.structured.fuse.draft import located
from stepwell.transforms.structured.fuse.producers import Fusion, Use
from stepwell.transforms.structured.fuse.splats import splat_of

Reshape: TypeAlias = tensor.ExpandShapeOp | tensor.CollapseShapeOp


@dataclass
class ReshapingFusion(Fusion):
    """Fusion through reshapes."""

    moved: set[Operation] = field(default_factory=set[Operation])

    def visit(self, op: linalg.GenericOp) -> None:
        """Merge ``op`` unless it has been moved above a reshape."""
        if op not in self.moved:
            super().visit(op)

    def reshapes(self, op: Reshape) -> None:
        """Rewrite ``reshape(f(x, ...))`` as ``f(reshape(x), ...)`` where readers can merge f.

        f must read all at its own index (or scalars), so that reshapes stay views. A broadcast
        operand is read from its source, if the reshape neither merges nor splits the source's axes.
        """
        producer = op.src.owner
        if not isinstance(producer, linalg.GenericOp) or not self._movable(producer, op):
            return
        uses = [
            Use(draft, index, index)
            for draft, index in self.readers.get(op.result, ())
            if (op.result, index) in draft.reads
        ]
        if self.blocked(op) or len({use.draft for use in uses}) != 1 or len(uses) != 1:
            return
        if any(self.refusal(producer, use) for use in uses):
            return
        reshaped, views = self._reshaped(producer, op)
        self.moved.add(producer)
        self.gone.extend((op, producer))
        for use in uses:
            use.draft.reads[reshaped.results[0], use.index] = use.draft.reads.pop(
                (op.result, use.index)
            )
            self.readers.setdefault(reshaped.results[0], []).append((use.draft, use.index))
        self.visit(reshaped)
        for view in views:
            self.reshapes(view)

    def _movable(self, producer: linalg.GenericOp, op: Reshape) -> bool:
        """Whether ``producer`` computes each element from the same element of its operands."""
        if (
            producer.parent is not op.parent
            or len(producer.results) != 1
            or not op.src.has_one_use()
            or not is_elementwise(producer)
            or any(isinstance(inner, linalg.IndexOp) for inner in producer.body.block.ops)
            or (isinstance(op, tensor.CollapseShapeOp) and DYNAMIC_INDEX in shape(op.result))
        ):
            return False
        own = identity(len(producer.iterator_types))
        *inputs, out = zip(
            producer.operands, indices(producer), producer.body.block.args, strict=True
        )
        return (
            out[1] == own
            and out[2].first_use is None
            and all(
                argument.first_use is None or self._moves_with(value, index, own, op)
                for value, index, argument in inputs
            )
        )

    def _moves_with(self, value: SSAValue, index: Index, own: Index, op: Reshape) -> bool:
        if not shape(value) or splat_of(value):
            return True
        made_by = value.owner
        if index != own:
            return False
        if isinstance(made_by, linalg.GenericOp) and _is_broadcast(made_by):
            return _before_broadcast(value, op) is not None
        return not isinstance(made_by, linalg.GenericOp) or is_elementwise(made_by)

    def _reshaped(
        self, producer: linalg.GenericOp, op: Reshape
    ) -> tuple[linalg.GenericOp, list[Reshape]]:
        """Return ``producer`` on reshaped operands, and the reshapes."""
        assert op.parent is not None
        views: list[Reshape] = []
        new_shape = shape(op.result)
        own = identity(len(new_shape))
        inputs: list[SSAValue] = []
        where: list[Index] = []
        for value in producer.inputs:
            if not shape(value):
                inputs.append(value)
                where.append(())
                continue
            if (found := _before_broadcast(value, op)) is not None:
                inputs.append(found[0])
                where.append(found[1])
                continue
            view = op.clone({op.src: value})
            view.result._type = TensorType(element(value), new_shape)  # pyright: ignore
            view.result.name_hint = value.name_hint
            op.parent.insert_op_before(view, op)
            views.append(view)
            inputs.append(view.result)
            where.append(own)
        sizes = list(op.dynamic_output_shape) if isinstance(op, tensor.ExpandShapeOp) else []
        empty = located(tensor.EmptyOp(sizes, op.result.type), producer.location)
        rank = len(new_shape)
        body = producer.body
        producer.detach_region(body)
        new = located(
            linalg.GenericOp(
                inputs,
                [empty.tensor],
                body,
                array_of_maps(rank, [*where, own]),
                [PARALLEL] * rank,
                [op.result.type],
            ),
            producer.location,
        )
        new.results[0].name_hint = op.result.name_hint
        op.parent.insert_ops_before([empty, new], op)
        return new, views


def _is_broadcast(op: linalg.GenericOp) -> bool:
    """Whether ``op`` only broadcasts."""
    single = len(op.inputs) == len(op.results) == 1
    return single and is_view(op) and bool(repeats(indices(op)[0], extents(op)))


def _before_broadcast(value: SSAValue, op: Reshape) -> tuple[SSAValue, Index] | None:
    """Return the source of the broadcast ``value`` and its index in the shape after ``op``.

    None where it is no broadcast, or ``op`` merges or splits an axis of the source.
    """
    made_by = value.owner
    if not isinstance(made_by, linalg.GenericOp) or not _is_broadcast(made_by):
        return None
    source, index = made_by.inputs[0], indices(made_by)
    if is_not_fused(made_by) or index[-1] != identity(len(index[-1])):
        return None
    becomes = _kept(op)
    axes = [None if (loop := plain(expr)) is None else becomes.get(loop) for expr in index[0]]
    known = tuple(AffineDimExpr(axis) for axis in axes if axis is not None)
    return (source, known) if len(known) == len(axes) else None


def _kept(op: Reshape) -> dict[int, int]:
    """Map each axis that is neither merged nor split to its axis in the result."""
    groups = [[axis.value.data for axis in group] for group in op.reassociation]
    alone = [(k, group[0]) for k, group in enumerate(groups) if len(group) == 1]
    return (
        {k: a for k, a in alone}
        if isinstance(op, tensor.ExpandShapeOp)
        else {a: k for k, a in alone}
    )
