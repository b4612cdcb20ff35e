"""Collapse loops of a contraction, sum or copy whose axes are adjacent in memory.

Before:  kernel.func @k(%x: tensor<8x3x64xf32>, %w, %y) attributes {kernel.shared = 3} {
           linalg.generic {maps: (b, s, k), (k, j), (b, s, j)} ins(%x, %w) ... }
         %y = kernel.launch @k ins(%x, %w) outs(%e)
After:   kernel.func @k(%x: tensor<24x64xf32>, %w, %y) attributes {kernel.shared = 2} {
           linalg.generic {maps: (r, k), (k, j), (r, j)} ins(%x, %w) ... }
         %xc = tensor.collapse_shape %x, %ec = tensor.collapse_shape %e
         %r = kernel.launch @k ins(%xc, %w) outs(%ec)
         %y = tensor.expand_shape %r

Afterwards a register tile may have rows of several lines, where a single line would not fill it; a
sum over several axes is one loop of whole vectors, except for its tail; a copy across short rows
takes several of them as one. Loops are collapsed only if every operand of the kernel has both as
adjacent axes, contiguous in memory, or neither; a kernel with any schedule attribute is left as it
is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    ModuleOp,
    TensorType,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from stepwell.analysis.structured import array_of_maps, at, indices, shape
from stepwell.dialects import kernel
from stepwell.dialects.kernel import choices
from stepwell.transforms.kernels.collapse_loops.merging import Merging, find
from stepwell.transforms.kernels.kernel_signature import Axes, collapsed, expanded, launches_of, put
from stepwell.transforms.passes import Pass


@dataclass(frozen=True)
class CollapseLoops(Pass):
    """Collapse loops of a contraction or reduction whose axes are adjacent in memory."""

    name = "collapse-loops"
    one_block = True
    expects_work = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Collapse the loops of each kernel where all its launches allow it."""
        launches = launches_of(op)
        views: list[tensor.ExpandShapeOp] = []
        for function in list(op.ops):
            if isinstance(function, kernel.FuncOp):
                found = launches.get(function.sym_name.data, [])
                if found and (merging := find(function, found)):
                    views += _Rewriting(function, merging).run(found)
        for view in views:
            if view.result.first_use is None:
                view.detach()
                view.erase()


@dataclass
class _Rewriting:
    """Rewrites one kernel and its launches."""

    function: kernel.FuncOp
    merging: Merging

    def run(self, launches: Sequence[kernel.LaunchOp]) -> list[tensor.ExpandShapeOp]:
        """Rewrite the kernel; return the views of results in their old shape."""
        block = self.function.body.block
        arguments = list(block.args)
        axes = [self.merging.axes(a) for a in arguments]
        self._retype(block)
        for op in list(block.ops):
            if isinstance(op, linalg.GenericOp):
                self._merge_loops(op)
        for op in list(block.ops):
            if isinstance(op, tensor.EmptyOp):
                self._size(op)
        kept = [k for k, a in enumerate(arguments) if not _is_idle(a)]
        for argument in arguments:
            if _is_idle(argument):
                block.erase_arg(argument)
        returned = block.last_op
        assert returned is not None
        results = [v.type for v in returned.operands]
        kind = FunctionType.from_lists([a.type for a in block.args], results)
        self.function.properties["function_type"] = kind
        self.function.attributes["kernel.shared"] = choices.spelled(self.merging.shared_left)
        return [view for launch in launches for view in _relaunch(launch, axes, kept)]

    def _retype(self, block: Block) -> None:
        """Give every value of the kernel the type it has with axes merged."""
        values = [*block.args, *(r for op in block.ops for r in op.results)]
        for value in values:
            if groups := self.merging.axes(value):
                value._type = _merged_type(value.type, groups)  # pyright: ignore[reportPrivateUsage]

    def _merge_loops(self, op: linalg.GenericOp) -> None:
        """Remove each loop that is merged into another from maps and body."""
        gone, order = self.merging.merged_away(op), self.merging.order(op)
        loops = range(len(op.iterator_types))
        if order == [*loops]:
            return
        moved: list[AffineExpr] = [
            AffineDimExpr(order.index(k) if k in order else 0) for k in loops
        ]
        where = [
            at(tuple(e for e in index if not _is_one_of(e, gone)), moved) for index in indices(op)
        ]
        op.properties["indexing_maps"] = array_of_maps(len(order), where)
        op.properties["iterator_types"] = ArrayAttr(op.iterator_types.data[k] for k in order)
        for inner in op.body.walk():
            if isinstance(inner, linalg.IndexOp):
                place = order.index(inner.dim.value.data)
                inner.properties["dim"] = IntegerAttr(place, i64)

    def _size(self, op: tensor.EmptyOp) -> None:
        """Set the sizes of a tensor created in the kernel, merged ones like an argument's."""
        groups = self.merging.axes(op.tensor)
        unknown = shape(op.tensor).count(DYNAMIC_INDEX)
        if not groups or (unknown == 0 and not op.dynamic_sizes):
            return
        dynamic = iter(list(op.dynamic_sizes))
        sizes: list[SSAValue] = []
        source, merged = self.merging.sizes[op.tensor], shape(op.tensor)
        for axis, group in enumerate(groups):
            known = [next(dynamic) for k in group if source[k] == DYNAMIC_INDEX]
            if merged[axis] != DYNAMIC_INDEX:
                continue
            if len(group) == 1:
                sizes += known
                continue
            if like := self.merging.argument_like(op.tensor, axis):
                sizes.append(_dim_of(*like, op))
            else:
                sizes.append(_product(op, known, [source[k] for k in group]))
        op.operands = sizes


def _dim_of(value: SSAValue, axis: int, before: Operation) -> SSAValue:
    at_axis = arith.ConstantOp(IntegerAttr(axis, IndexType()))
    dim = tensor.DimOp(value, at_axis.result)
    _put_before(before, at_axis, dim)
    return dim.result


def _product(op: tensor.EmptyOp, unknown: Sequence[SSAValue], sizes: Sequence[int]) -> SSAValue:
    """Return the number of elements of axes, of which ``unknown`` are the dynamic sizes."""
    known = math.prod(size for size in sizes if size != DYNAMIC_INDEX)
    factor = arith.ConstantOp(IntegerAttr(known, IndexType()))
    _put_before(op, factor)
    found: SSAValue = factor.result
    for each in unknown:
        product = arith.MuliOp(found, each)
        _put_before(op, product)
        found = product.result
    return found


def _put_before(op: Operation, *created: Operation) -> None:
    block = op.parent_block()
    assert block is not None
    for each in created:
        each.location = op.location
        block.insert_op_before(each, op)


def _is_one_of(expr: AffineExpr, loops: set[int]) -> bool:
    return isinstance(expr, AffineDimExpr) and expr.position in loops


def _is_idle(argument: SSAValue) -> bool:
    """Whether a size is no longer used."""
    return isinstance(argument.type, IndexType) and argument.first_use is None


def _merged_type(type: Attribute, groups: Axes) -> TensorType:
    assert isinstance(type, TensorType)
    sizes: list[int] = []
    for group in groups:
        size = 1
        for axis in group:
            here = type.get_shape()[axis]
            size = DYNAMIC_INDEX if DYNAMIC_INDEX in (size, here) else size * here
        sizes.append(size)
    return TensorType(type.element_type, sizes)


def _relaunch(
    launch: kernel.LaunchOp, axes: Sequence[Axes], kept: Sequence[int]
) -> list[tensor.ExpandShapeOp]:
    """Launch the kernel on the same tensors in their new shape."""
    count = len(launch.inputs)
    given = [
        collapsed(launch, v, groups, _merged_type(v.type, groups)) if groups else v
        for v, groups in zip(launch.operands, axes, strict=True)
    ]
    inputs = [given[k] for k in kept if k < count]
    new = kernel.LaunchOp(launch.callee.string_value(), inputs, given[count:])
    new.attributes.update(launch.attributes)
    put(launch, new)
    results = zip(launch.results_, new.results_, launch.outputs, axes[count:], strict=True)
    for old, now, like, groups in results:
        now.name_hint = old.name_hint
        assert isinstance(old.type, TensorType)
        shown = expanded(launch, now, groups, old.type, like) if groups else now
        old.replace_all_uses_with(shown)
    launch.detach()
    launch.erase()
    views = (use.operation for result in new.results_ for use in result.uses)
    return [view for view in views if isinstance(view, tensor.ExpandShapeOp)]
