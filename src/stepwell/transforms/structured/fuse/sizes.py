"""Replace tensor.dim by the size at the tensor's definition, so that no op lives only for it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, OpResult, SSAValue

from stepwell.analysis.structured import constant_of, shape
from stepwell.transforms.structured.fuse.draft import located


def resolve_sizes(block: Block) -> None:
    """Replace each tensor.dim of a computed tensor by the size of its destination."""
    for op in list(block.ops):
        if isinstance(op, tensor.DimOp):
            _resolve(op)
        for region in op.regions if not isinstance(op, linalg.GenericOp) else ():
            for inner in region.blocks:
                resolve_sizes(inner)


def _resolve(op: tensor.DimOp) -> None:
    axis = constant_of(op.index)
    if axis is None:
        return
    created = _Maker(op)
    size = created.size(op.source, axis)
    if size is None or size is op.result:
        return
    op.result.replace_all_uses_with(size)
    op.detach()
    op.erase()


class _Maker:
    """Finds sizes, inserting the ops that compute them before ``dim``."""

    def __init__(self, dim: tensor.DimOp) -> None:
        self.dim = dim

    def size(self, value: SSAValue, axis: int) -> SSAValue | None:
        """Return the size of an axis; None where only ``dim`` itself gives it."""
        if (static := shape(value)[axis]) != DYNAMIC_INDEX:
            return self._insert(arith.ConstantOp(IntegerAttr(static, IndexType())))
        made_by = value.owner
        match made_by:
            case linalg.GenericOp() | linalg.FillOp():
                assert isinstance(value, OpResult)
                return self._known(made_by.outputs[value.index], axis)
            case tensor.InsertSliceOp():
                return self._known(made_by.dest, axis)
            case tensor.InsertOp():
                return self._known(made_by.dest, axis)
            case tensor.EmptyOp():
                return _dynamic(made_by.dynamic_sizes, value, axis)
            case tensor.SplatOp():
                return _dynamic(made_by.dynamicSizes, value, axis)
            case tensor.ExpandShapeOp():
                return _dynamic(made_by.dynamic_output_shape, value, axis)
            case tensor.CollapseShapeOp():
                return self._product(made_by, axis)
            case _:
                return self.dim.result if value is self.dim.source else None

    def _known(self, value: SSAValue, axis: int) -> SSAValue:
        """Return the size of an axis, by a new tensor.dim where nothing better is known."""
        if (size := self.size(value, axis)) is not None:
            return size
        number = self._insert(arith.ConstantOp(IntegerAttr(axis, IndexType())))
        return self._insert(tensor.DimOp(value, number))

    def _product(self, op: tensor.CollapseShapeOp, axis: int) -> SSAValue:
        group = op.reassociation.data[axis].data
        total = self._known(op.src, group[0].value.data)
        for each in group[1:]:
            factor = self._known(op.src, each.value.data)
            total = self._insert(arith.MuliOp(total, factor))
        return total

    def _insert(self, op: Operation) -> SSAValue:
        assert self.dim.parent is not None
        self.dim.parent.insert_op_before(located(op, self.dim.location), self.dim)
        return op.results[0]


def _dynamic(sizes: Sequence[SSAValue], value: SSAValue, axis: int) -> SSAValue:
    return sizes[shape(value)[:axis].count(DYNAMIC_INDEX)]
