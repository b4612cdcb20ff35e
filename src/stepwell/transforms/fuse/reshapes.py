"""Compute before reshaping rather than after, where that brings producer and reader together."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from stepwell.transforms.fuse.draft import located
from stepwell.transforms.fuse.producers import Fusion, Use
from stepwell.transforms.fuse.splats import splat_of
from stepwell.transforms.structured import (
    PARALLEL,
    Index,
    array_of_maps,
    element,
    identity,
    indices,
    is_elementwise,
    shape,
)


@dataclass
class ReshapingFusion(Fusion):
    """Fusion that looks through reshapes."""

    moved: set[Operation] = field(default_factory=set[Operation])

    def visit(self, op: linalg.GenericOp) -> None:
        """Merge ``op`` unless it has moved above a reshape already."""
        if op not in self.moved:
            super().visit(op)

    def reshapes(self, op: tensor.ExpandShapeOp | tensor.CollapseShapeOp) -> None:
        """Rewrite ``reshape(f(x, ...))`` as ``f(reshape(x), ...)`` where readers can merge f.

        Only if f reads everything at its own index (or scalars), so that reshapes stay views.
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

    def _movable(
        self, producer: linalg.GenericOp, op: tensor.ExpandShapeOp | tensor.CollapseShapeOp
    ) -> bool:
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
                argument.first_use is None or self._moves_with(value, index, own)
                for value, index, argument in inputs
            )
        )

    def _moves_with(self, value: SSAValue, index: Index, own: Index) -> bool:
        if not shape(value) or splat_of(value):
            return True
        made_by = value.owner
        reduced = isinstance(made_by, linalg.GenericOp) and not is_elementwise(made_by)
        return index == own and not reduced

    def _reshaped(
        self, producer: linalg.GenericOp, op: tensor.ExpandShapeOp | tensor.CollapseShapeOp
    ) -> tuple[linalg.GenericOp, list[tensor.ExpandShapeOp | tensor.CollapseShapeOp]]:
        """Return ``producer`` on reshaped operands, and their reshapes."""
        assert op.parent is not None
        views: list[tensor.ExpandShapeOp | tensor.CollapseShapeOp] = []
        new_shape = shape(op.result)
        inputs: list[SSAValue] = []
        for value in producer.inputs:
            if not shape(value):
                inputs.append(value)
                continue
            view = op.clone({op.src: value})
            view.result._type = TensorType(element(value), new_shape)  # pyright: ignore
            view.result.name_hint = value.name_hint
            op.parent.insert_op_before(view, op)
            views.append(view)
            inputs.append(view.result)
        sizes = list(op.dynamic_output_shape) if isinstance(op, tensor.ExpandShapeOp) else []
        empty = located(tensor.EmptyOp(sizes, op.result.type), producer.location)
        rank = len(new_shape)
        own = identity(rank)
        where = [*(own if shape(value) else () for value in inputs), own]
        body = producer.body
        producer.detach_region(body)
        new = located(
            linalg.GenericOp(
                inputs,
                [empty.tensor],
                body,
                array_of_maps(rank, where),
                [PARALLEL] * rank,
                [op.result.type],
            ),
            producer.location,
        )
        new.results[0].name_hint = op.result.name_hint
        op.parent.insert_ops_before([empty, new], op)
        return new, views
