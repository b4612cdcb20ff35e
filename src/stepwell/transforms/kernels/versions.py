"""Extract the versions of a kernel as kernels, and select the versions to keep."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import memref, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    FunctionType,
    MemRefType,
    NoneAttr,
    TensorType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument, Operation, SSAValue, Use
from xdsl.ir.affine import AffineDimExpr
from xdsl.rewriter import Rewriter

from stepwell.analysis.cost.compute import STRIDES
from stepwell.analysis.loop_extents import axes_of_extent
from stepwell.analysis.structured import array_of_maps, contracts, indices
from stepwell.dialects import kernel
from stepwell.dialects.kernel.sharing import SCHEDULE
from stepwell.dialects.kernel.versions import VERSIONS, versions_in

SIZED = (linalg.GenericOp, linalg.FillOp, memref.DimOp, tensor.DimOp, kernel.ReturnOp)
"""Ops that accept an operand with a static size in place of an unknown one."""


def version(function: kernel.FuncOp, number: int) -> kernel.FuncOp:
    """Return a copy of a kernel that has the levels of its version ``number`` only.

    In a version for a single length that length is static.
    """
    some = versions_in(function.attributes.get(VERSIONS))[number]
    copy = function.clone()
    for old, new in zip(function.walk(), copy.walk(), strict=True):
        new.location = old.location
    del copy.attributes[VERSIONS]
    copy.attributes[SCHEDULE] = some.schedule
    if some.exact is not None:
        set_extent(copy, some.loop.data, some.exact)
    return copy


def keep_versions_of_shared_loops(function: kernel.FuncOp, shared: int) -> None:
    """Drop the versions by a loop of one op, before another op becomes the first of the kernel."""
    found = versions_in(function.attributes.pop(VERSIONS, None))
    if kept := [each for each in found if each.loop.data < shared]:
        function.attributes[VERSIONS] = ArrayAttr(kept)


def set_extent(function: kernel.FuncOp, loop: int, size: int) -> None:
    """Make the extent of a loop static in the types of a kernel.

    loop : as `analysis.loop_extents.op_of_loop` numbers it
    """
    axes: dict[SSAValue, list[int]] = {}
    for value, axis in axes_of_extent(function, loop):
        axes.setdefault(value, []).append(axis)
    changed = [value.index for value in axes if isinstance(value, BlockArgument)]
    for value, numbers in axes.items():
        _set_axes(value, numbers, size)
    for number in changed if size in (1, *STRIDES) else ():
        _join_last_axes(function.body.block.args[number], size)
    arguments, last = list(function.body.block.arg_types), function.body.block.last_op
    results = last.operand_types if isinstance(last, kernel.ReturnOp) else []
    function.properties["function_type"] = FunctionType.from_lists(arguments, list(results))


def _set_axes(value: SSAValue, axes: Sequence[int], size: int) -> None:
    """Make sizes of a tensor or buffer static, where only loops use it."""
    kind, owner = value.type, value.owner
    assert isinstance(kind, MemRefType | TensorType)
    if not all(isinstance(use.operation, SIZED) for use in value.uses):
        return
    old = kind.get_shape()
    sizes = [size if axis in axes else n for axis, n in enumerate(old)]
    new: MemRefType | TensorType = TensorType(kind.element_type, sizes)
    if isinstance(kind, MemRefType):
        new = MemRefType(kind.element_type, sizes, kind.layout, kind.memory_space)
    if isinstance(owner, memref.AllocOp | tensor.EmptyOp):
        unknown = [axis for axis, n in enumerate(old) if n == DYNAMIC_INDEX]
        pairs = zip(unknown, owner.dynamic_sizes, strict=True)
        _replace_allocation(owner, [v for axis, v in pairs if axis not in axes], new)
    elif isinstance(value, BlockArgument) or isinstance(owner, linalg.GenericOp | linalg.FillOp):
        Rewriter.replace_value_with_new_type(value, new)


def _join_last_axes(value: BlockArgument, size: int) -> None:
    """Make one axis of the last two of an argument that ops only read, if the last has this size.

    A last axis of one element goes: along the axis before it neighbours then lie side by side. A
    contraction picks the lanes of a sum out of vectors along few columns.
    """
    kind, uses = value.type, list(value.uses)
    assert isinstance(kind, MemRefType | TensorType)
    *sizes, last = kind.get_shape()
    if last != size or not sizes or (size > 1 and sizes[-1] == DYNAMIC_INDEX):
        return
    plain = isinstance(kind, TensorType) or isinstance(kind.layout, NoneAttr)
    if not plain or not all(_has_loop_without(use, size > 1) for use in uses):
        return
    for use in uses:
        op = use.operation
        assert isinstance(op, linalg.GenericOp)
        found = indices(op)
        *rest, row, column = found[use.index]
        found[use.index] = (*rest, row if size == 1 else row * size + column)
        op.properties["indexing_maps"] = array_of_maps(len(op.iterator_types), found)
    joined = [*sizes[:-1], sizes[-1] if size == 1 else sizes[-1] * size]
    new: MemRefType | TensorType = TensorType(kind.element_type, joined)
    if isinstance(kind, MemRefType):
        new = MemRefType(kind.element_type, joined, memory_space=kind.memory_space)
    Rewriter.replace_value_with_new_type(value, new)


def _has_loop_without(use: Use, contracted: bool) -> bool:
    """Whether an op reads an operand, and its results tell the extent of the last axis' loop.

    contracted : whether it must be a contraction that sums along the axis before
    """
    op = use.operation
    if not isinstance(op, linalg.GenericOp) or use.index >= (count := len(op.inputs)):
        return False
    where = indices(op)
    last, written = where[use.index][-1], where[count:]
    if not isinstance(last, AffineDimExpr) or not any(last in index for index in written):
        return False
    before = where[use.index][-2] if contracted else None
    summed = isinstance(before, AffineDimExpr) and before not in written[0]
    return not contracted or (summed and contracts(op))


def _replace_allocation(
    old: memref.AllocOp | tensor.EmptyOp, sizes: list[SSAValue], kind: MemRefType | TensorType
) -> None:
    new: Operation
    if isinstance(kind, MemRefType):
        new = memref.AllocOp(sizes, [], kind)
    else:
        new = tensor.EmptyOp(sizes, kind)
    new.location = old.location
    new.results[0].name_hint = old.results[0].name_hint
    Rewriter.replace_op(old, new)
