"""The tensors of a program on tensors: views of others, made by insertion, or without elements."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from stepwell.analysis.sizes import Shape, Size, Sizes
from stepwell.dialects import kernel
from stepwell.dialects.types import tensor_type
from stepwell.lowering.bufferize.assignment import VIEWS, rows_of, slice_of, step_of
from stepwell.lowering.bufferize.views import Cast, Slice, Steps, join

Key: TypeAlias = Hashable
"""A tensor of the program on tensors: a value, a constant's elements, or one inserted element."""


@dataclass
class Tensors:
    """The tensors of one function."""

    sizes: Sizes

    def root(self, value: Key) -> tuple[Key, Steps]:
        """Return the tensor that ``value`` is a view of, and the view."""
        view: Steps = ()
        while isinstance(value, SSAValue):
            if (handed := _handed(value)) is not None:
                value = handed
                continue
            op = value.owner
            if isinstance(op, Block) or not isinstance(op, VIEWS):
                break
            value, view = op.operands[0], join(view_of(self.sizes, op), view)
        if isinstance(value, SSAValue) and isinstance(value.owner, arith.ConstantOp):
            return value.owner.value, view
        return value, view

    def shape(self, value: Key) -> Shape:
        """Return the shape of a tensor."""
        if isinstance(value, DenseIntOrFPElementsAttr):
            return tuple(map(Size.of, value.get_shape()))
        return self.sizes.shape(value) if isinstance(value, SSAValue) else ()

    def is_blank(self, value: Key) -> bool:
        """Whether all elements of a tensor are undefined."""
        return isinstance(value, SSAValue) and isinstance(value.owner, tensor.EmptyOp)

    def pieces(self, value: Key) -> tuple[list[tuple[Steps, Key]], SSAValue | None]:
        """Return the pieces (view, tensor) inserted to make ``value``, and their destination."""
        op = value.owner if isinstance(value, SSAValue) else None
        match op:
            case tensor.InsertSliceOp():
                box = box_view(slice_of(self.sizes, op), self.sizes.shape(op.dest))
                return [(box, op.source)], op.dest
            case kernel.StackOp():
                rows = zip(rows_of(self.sizes, op.parts), op.parts, strict=True)
                return [((row, *seen), part) for (row, seen), part in rows], None
            case tensor.InsertOp():
                at = tuple(self.sizes.of(v) for v in op.indices)
                return [(element(at), (op.result, 0))], op.dest
            case tensor.FromElementsOp() | tensor.SplatOp():
                places = product(*map(range, tensor_type(op.results[0]).get_shape()))
                rows = enumerate(tuple(map(Size.of, place)) for place in places)
                return [(element(at), (op.results[0], n)) for n, at in rows], None
            case _:
                return [], None


def _handed(value: SSAValue) -> SSAValue | None:
    """Return what the test of a while loop passes to its body as ``value``; else None."""
    loop = value.block.parent_op() if isinstance(value, BlockArgument) else None
    if not isinstance(loop, scf.WhileOp) or value.owner is not loop.after_region.block:
        return None
    test = loop.before_region.block.last_op
    assert isinstance(test, scf.ConditionOp) and isinstance(value, BlockArgument)
    return test.args[value.index]


def view_of(sizes: Sizes, op: Operation) -> Steps:
    """Return the view that a view op on tensors or buffers takes of its operand, but for casts."""
    match step := step_of(sizes, op):
        case Slice():
            return box_view(step, sizes.shape(op.operands[0]))
        case Cast():
            return ()
        case _:
            return (step,)


def box_view(box: Slice, whole: Shape) -> Steps:
    """Return the view of a box: no step if the box is the whole tensor."""
    zeros = (Size.of(0),) * len(whole)
    full = box.offsets == zeros and box.sizes == whole and box.is_dense
    return () if full and len(box.kept) == len(whole) else (box,)


def element(at: Shape) -> Steps:
    """Return the view of one element."""
    ones = (Size.of(1),) * len(at)
    return (Slice(at, ones, ones, ()),) if at else ()
