"""Move a padding fill before the launch whose result is inserted into it.

The launch can then write into the filled buffer, without a copy.

Before:  %a = kernel.launch @k ...                       After:  %f = kernel.launch @fill outs(%e)
         %f = kernel.launch @fill outs(%e)                       %a = kernel.launch @k ...
         %y = tensor.insert_slice %a into %f[1, 1] ...           %y = tensor.insert_slice ...
"""

from __future__ import annotations

from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, OpResult, SSAValue

from stepwell.dialects import kernel

_RESHAPES = (tensor.ExpandShapeOp, tensor.CollapseShapeOp)
_FREE = (tensor.EmptyOp, tensor.DimOp)


def fill_early(block: Block) -> None:
    """Move each fill before the launch that makes the only part inserted into it."""
    inserts = [op for op in block.ops if isinstance(op, tensor.InsertSliceOp)]
    if inserts:
        order = {op: number for number, op in enumerate(block.ops)}
        for insert in inserts:
            _fill_early(insert, block, order)
    for op in block.ops:
        for region in op.regions:
            for inner in region.blocks:
                fill_early(inner)


def _fill_early(insert: tensor.InsertSliceOp, block: Block, order: dict[Operation, int]) -> None:
    fill, part = insert.dest.owner, _defining_launch(insert.source)
    if not isinstance(fill, kernel.LaunchOp) or not _fills(fill, insert.dest, block):
        return
    if part is None or part.parent is not block or order[part] > order[fill]:
        return
    moving: dict[Operation, None] = {}
    if all(_movable(value, block, order, order[part], moving) for value in fill.operands):
        for op in (*moving, fill):
            op.detach()
            block.insert_op_before(op, part)
            order[op] = order[part] - 1


def _fills(launch: kernel.LaunchOp, whole: SSAValue, block: Block) -> bool:
    """Whether ``launch``, of a kernel that reads no tensor, makes ``whole`` for a single use."""
    return (
        launch.parent is block
        and len(launch.results) == 1
        and isinstance(launch.outputs[0].owner, tensor.EmptyOp)
        and not any(isinstance(v.type, TensorType) for v in launch.inputs)
        and whole.has_one_use()
    )


def _defining_launch(value: SSAValue) -> kernel.LaunchOp | None:
    """Return the launch that makes ``value``, through reshapes, for a single use; else None."""
    owner = value.owner
    while value.has_one_use() and isinstance(owner, _RESHAPES):
        value = owner.operands[0]
        owner = value.owner
    return owner if isinstance(owner, kernel.LaunchOp) and value.has_one_use() else None


def _movable(
    value: SSAValue,
    block: Block,
    order: dict[Operation, int],
    before: int,
    moving: dict[Operation, None],
) -> bool:
    """Whether ``value`` is, or can be, defined before op ``before``; collect the ops to move."""
    if not isinstance(value, OpResult) or value.op.parent is not block:
        return True
    op = value.op
    if order[op] < before or op in moving:
        return True
    if not isinstance(op, _FREE) and not _is_arithmetic(op):
        return False
    if not all(_movable(v, block, order, before, moving) for v in op.operands):
        return False
    moving[op] = None
    return True


def _is_arithmetic(op: Operation) -> bool:
    return op.name.startswith("arith.") and not op.regions
