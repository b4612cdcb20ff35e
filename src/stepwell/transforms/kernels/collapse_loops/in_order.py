"""Decide whether two axes of a host tensor will be contiguous in memory."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import OpResult, SSAValue

from stepwell.analysis.sizes import kept_axes
from stepwell.analysis.structured import shape
from stepwell.dialects import kernel

RESHAPES = (tensor.ExpandShapeOp, tensor.CollapseShapeOp, tensor.CastOp)


def follows(value: SSAValue, result: OpResult | None, axis: int) -> bool:
    """Whether a launch may merge an axis of an operand with the next.

    result : the launch's result, where the operand is a destination
    """
    return _is_contiguous_source(value, axis) and (
        result is None or _is_contiguous_where_inserted(result, axis)
    )


def _is_contiguous_source(value: SSAValue, axis: int) -> bool:
    """Whether the tensor that ``value`` is a view of has both axes contiguous."""
    match value.owner:
        case tensor.ExtractSliceOp() as op:
            place = _place(op, shape(op.result), shape(op.source), axis)
            return place is not None and _is_contiguous_source(op.source, place)
        case tensor.ExpandShapeOp() | tensor.CollapseShapeOp() as op:
            return _is_whole(op.operands[0])
        case _:
            return _is_contiguous_where_inserted(value, axis)


def _is_whole(value: SSAValue) -> bool:
    """Whether a tensor is no view of another."""
    match value.owner:
        case tensor.ExtractSliceOp():
            return False
        case op if isinstance(op, RESHAPES):
            return _is_whole(op.operands[0])
        case _:
            parts = tensor.InsertSliceOp | kernel.StackOp
            return not any(isinstance(op, parts) for op in _readers(value))


def _is_contiguous_where_inserted(value: SSAValue, axis: int) -> bool:
    """Whether every tensor that ``value`` is inserted into has both axes contiguous."""
    for use in value.uses:
        op = use.operation
        if isinstance(op, tensor.InsertSliceOp) and use.index == 0:
            place = _place(op, shape(op.source), shape(op.dest), axis)
            if place is None or not _is_contiguous_where_inserted(op.result, place):
                return False
        elif isinstance(op, kernel.StackOp) or (
            isinstance(op, RESHAPES) and not _is_whole(op.results[0])
        ):
            return False
    return True


def _readers(value: SSAValue) -> list[object]:
    """Return the ops that insert a tensor, possibly reshaped, into another."""
    found: list[object] = []
    for use in value.uses:
        op = use.operation
        if isinstance(op, RESHAPES):
            found += _readers(op.results[0])
        elif use.index == 0 or isinstance(op, kernel.StackOp):
            found.append(op)
    return found


def _place(
    op: tensor.ExtractSliceOp | tensor.InsertSliceOp,
    part: Sequence[int],
    whole: Sequence[int],
    axis: int,
) -> int | None:
    """Return the axis of the whole for ``axis`` of a part; None where the next axis is partial."""
    sizes, strides = op.static_sizes.get_values(), op.static_strides.get_values()
    kept = kept_axes(sizes, part)
    if len(kept) != len(part) or kept[axis + 1] != kept[axis] + 1:
        return None
    first, second = kept[axis], kept[axis + 1]
    full = sizes[second] == whole[second] != DYNAMIC_INDEX
    return first if full and strides[first] == strides[second] == 1 else None
