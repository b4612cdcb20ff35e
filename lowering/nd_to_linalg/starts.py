"""Where blocks begin: starts that are constants, and slices that are written again."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, TensorType
from xdsl.ir import SSAValue

from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.nd.creation import ConstantOp, FullOp
from stepwell.dialects.nd.indexing import DynamicUpdateSliceOp
from stepwell.dialects.nd.shape import SliceOp
from stepwell.dialects.nd.syntax import axes, shape_of
from stepwell.dialects.types import dtype
from stepwell.lowering.nd_to_linalg.sizes import Size


def known_start(start: SSAValue) -> int | None:
    """Return a start that is a constant, as an index; one beyond i64 as its greatest."""
    match start.owner:
        case (
            arith.ConstantOp(value=IntegerAttr(value=number))
            | FullOp(value=IntegerAttr(value=number))
        ):
            found = int(number.data)
        case ConstantOp(value=DenseIntOrFPElementsAttr() as values):
            (first, *_) = values.get_values()
            found = int(first)  # pyright: ignore
        case _:
            return None
    if isinstance(start.type, TensorType):
        kind = dtype(start.type.element_type)
        if kind.kind == "unsigned" and found < 0:
            found += 1 << 8 * kind.bytes
    return min(found, (1 << 63) - 1)


def is_written_again(op: SliceOp, begins: Sequence[Size]) -> bool:
    """Whether the very block that a slice takes is replaced later, as ``x[1:] += v`` does.

    Then it is best a view: what is computed of it can be written where it lies.
    """
    if {stride for _, _, stride in op.ranges} - {1} or DYNAMIC in shape_of(op.x):
        return False
    return any(
        isinstance(use.operation, DynamicUpdateSliceOp)
        and use.index == 0
        and shape_of(use.operation.update) == shape_of(op.y)
        and _begins(use.operation) == list(begins)
        for use in op.x.uses
    )


def _begins(op: DynamicUpdateSliceOp) -> list[int | None]:
    """Return where an update begins along each axis, None where only the run knows."""
    found: list[int | None] = [0] * len(shape_of(op.x))
    for axis, start in zip(axes(op.axes), op.starts, strict=True):
        known, room = known_start(start), shape_of(op.x)[axis] - shape_of(op.update)[axis]
        found[axis] = None if known is None else max(min(known, room), 0)
        if room == 0:
            found[axis] = 0
    return found
