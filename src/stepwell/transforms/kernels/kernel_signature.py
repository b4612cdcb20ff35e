"""Rewrite launches of kernels whose tensors get more or fewer axes."""

from __future__ import annotations

from typing import TypeAlias

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    IndexType,
    IntegerAttr,
    ModuleOp,
    TensorType,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from stepwell.analysis.structured import is_not_fused, shape
from stepwell.dialects import kernel

Axes: TypeAlias = tuple[tuple[int, ...], ...]
"""For each axis of a collapsed tensor, the axes of the expanded one."""
PLAIN = (linalg.GenericOp, linalg.FillOp, tensor.EmptyOp, arith.ConstantOp, kernel.ReturnOp)


def is_unscheduled(function: kernel.FuncOp, plain: tuple[type[Operation], ...] = PLAIN) -> bool:
    """Whether the kernel has no schedule yet and consists of ``plain`` ops."""
    chosen = [name for name in function.attributes if name.startswith("kernel.")]
    return chosen == ["kernel.shared"] and all(
        isinstance(op, plain) and not is_not_fused(op) for op in function.body.block.ops
    )


def launches_of(module: ModuleOp) -> dict[str, list[kernel.LaunchOp]]:
    """Return the launches of each kernel, by its name."""
    launches: dict[str, list[kernel.LaunchOp]] = {}
    for function in module.ops:
        if not isinstance(function, kernel.FuncOp):
            for op in function.walk():
                if isinstance(op, kernel.LaunchOp):
                    launches.setdefault(op.callee.string_value(), []).append(op)
    return launches


def put(launch: Operation, op: Operation) -> None:
    """Insert ``op`` before a launch, with its location."""
    op.location = launch.location
    assert launch.parent is not None
    launch.parent.insert_op_before(op, launch)


def collapsed(launch: Operation, value: SSAValue, axes: Axes, kind: TensorType) -> SSAValue:
    """Return ``value`` collapsed to ``kind``, whose axes are groups of ``axes``."""
    made_by, reassociation = value.owner, _reassociation(axes)
    if isinstance(made_by, tensor.ExpandShapeOp) and made_by.reassociation == reassociation:
        return made_by.src
    view = tensor.CollapseShapeOp.build(
        operands=[value],
        properties={"reassociation": reassociation},
        result_types=[kind],
    )
    put(launch, view)
    view.result.name_hint = value.name_hint
    return view.result


def expanded(
    launch: Operation, value: SSAValue, axes: Axes, kind: TensorType, like: SSAValue
) -> SSAValue:
    """Return ``value`` expanded to ``kind`` by ``axes``; ``like`` has its dynamic sizes."""
    sizes: list[SSAValue] = []
    if isinstance(like.owner, tensor.EmptyOp):
        sizes += like.owner.dynamic_sizes
    else:
        for axis, size in enumerate(shape(like)):
            if size == DYNAMIC_INDEX:
                number = arith.ConstantOp(IntegerAttr(axis, IndexType()))
                put(launch, number)
                dim = tensor.DimOp(like, number.result)
                put(launch, dim)
                sizes.append(dim.result)
    view = tensor.ExpandShapeOp(value, sizes, _reassociation(axes), kind.get_shape(), kind)
    put(launch, view)
    view.result.name_hint = value.name_hint
    return view.result


def _reassociation(axes: Axes) -> ArrayAttr[ArrayAttr[IntegerAttr]]:
    return ArrayAttr(ArrayAttr(IntegerAttr(axis, i64) for axis in group) for group in axes)
