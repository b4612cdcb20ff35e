"""Find the `?` of a function's arguments that must be equal, so that kernels stay in bounds.

An analysis of the structured floor, and of kernels on tensors: axes indexed by the same loop of a
structured op have the same size, and so has everything created with that size. The conditions are
checked in every call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from xdsl.dialects import arith, func, scf, tensor
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from stepwell.analysis.structured import constant_of
from stepwell.core.shapes import DYNAMIC
from stepwell.dialects import kernel
from stepwell.dialects.kernel.ops import kernel_of

Size: TypeAlias = "tuple[SSAValue, int] | SSAValue | int"
"""The size of an axis of a tensor, an `index` value, or a number."""


@dataclass(frozen=True)
class EqualSizes:
    """The conditions on the `?` of the arguments, numbered in order."""

    groups: tuple[tuple[int, ...], ...] = ()
    """Groups of `?` that must be equal."""
    fixed: tuple[tuple[int, int], ...] = ()
    """`?` that must have a fixed size: (number, size)."""
    loops: bool = False
    """Whether the function has loops of its own."""


@dataclass
class SizeClasses:
    """Sizes known to be equal (union-find); a number is always the root of its class."""

    parent: dict[Size, Size] = field(default_factory=dict[Size, Size])

    def find(self, size: Size) -> Size:
        """Return the size that stands for all that are equal to ``size``."""
        while (above := self.parent.get(size, size)) != size:
            self.parent[size] = self.parent.get(above, above)
            size = above
        return size

    def unite(self, a: Size, b: Size) -> None:
        """Record that two sizes are equal."""
        a, b = self.find(a), self.find(b)
        if isinstance(a, int):
            a, b = b, a
        if a != b and not isinstance(a, int):
            self.parent[a] = b

    def axis(self, value: SSAValue, axis: int) -> Size:
        """Return the size of an axis of ``value``."""
        assert isinstance(value.type, TensorType)
        size = value.type.get_shape()[axis]
        return (value, axis) if size == DYNAMIC else size

    def same_shape(self, a: SSAValue, b: SSAValue) -> None:
        """Record that the axes of two tensors have equal sizes."""
        if isinstance(a.type, TensorType) and isinstance(b.type, TensorType):
            for axis in range(min(a.type.get_num_dims(), b.type.get_num_dims())):
                self.unite(self.axis(a, axis), self.axis(b, axis))


def note_sizes(classes: SizeClasses, ops: Iterable[Operation]) -> None:
    """Unite the sizes that ops require to be equal."""
    for op in ops:
        if (note := _NOTES.get(type(op))) is not None:
            note(classes, op)


def equal_sizes(module: ModuleOp, entry: str) -> EqualSizes:
    """Return the conditions on the sizes of the arguments of function ``entry``."""
    function = next(
        op for op in module.ops if isinstance(op, func.FuncOp) and op.sym_name.data == entry
    )
    classes = SizeClasses()
    note_sizes(classes, function.walk())
    members: dict[Size, list[int]] = {}
    number = 0
    for argument in function.body.block.args:
        if isinstance(argument.type, TensorType):
            for axis, size in enumerate(argument.type.get_shape()):
                if size == DYNAMIC:
                    members.setdefault(classes.find((argument, axis)), []).append(number)
                    number += 1
    return EqualSizes(
        tuple(tuple(m) for size, m in members.items() if len(m) > 1 and not isinstance(size, int)),
        tuple((n, size) for size, m in members.items() if isinstance(size, int) for n in m),
        any(isinstance(op, scf.ForOp | scf.WhileOp) for op in function.walk()),
    )


def _note_results(classes: SizeClasses, op: linalg.GenericOp | linalg.FillOp) -> None:
    for result, into in zip(op.results, op.outputs, strict=False):
        classes.same_shape(result, into)


def _note_dim(classes: SizeClasses, op: tensor.DimOp) -> None:
    if (axis := constant_of(op.index)) is not None:
        classes.unite(op.result, classes.axis(op.source, axis))


def _note_empty(classes: SizeClasses, op: tensor.EmptyOp) -> None:
    sizes = iter(op.dynamic_sizes)
    for axis, size in enumerate(op.tensor.type.get_shape()):
        if size == DYNAMIC:
            classes.unite((op.tensor, axis), next(sizes))


def _note_constant(classes: SizeClasses, op: arith.ConstantOp) -> None:
    if isinstance(op.value, IntegerAttr) and isinstance(op.result.type, IndexType):
        classes.unite(op.result, op.value.value.data)


def _note_cast(classes: SizeClasses, op: tensor.CastOp) -> None:
    classes.same_shape(op.dest, op.source)


def _note_loops(classes: SizeClasses, op: linalg.GenericOp) -> None:
    """Unite the axes that each loop of a structured op indexes."""
    _note_results(classes, op)
    loops: dict[int, Size] = {}
    for operand, indexing in zip(op.operands, op.indexing_maps, strict=True):
        if not isinstance(operand.type, TensorType):
            continue
        for axis, expression in enumerate(indexing.data.results):
            if isinstance(expression, AffineDimExpr):
                size = classes.axis(operand, axis)
                classes.unite(loops.setdefault(expression.position, size), size)


def _note_launch(classes: SizeClasses, op: kernel.LaunchOp) -> None:
    """Unite the sizes that the kernel requires to be equal."""
    inside = SizeClasses()
    function = kernel_of(op)
    note_sizes(inside, function.walk())
    shown: dict[Size, Size] = {}
    for argument, operand in zip(function.body.block.args, op.operands, strict=True):
        pairs: list[tuple[Size, Size]] = [(argument, operand)]
        if isinstance(argument.type, TensorType):
            axes = range(argument.type.get_num_dims())
            pairs = [(inside.axis(argument, k), classes.axis(operand, k)) for k in axes]
        for within, size in pairs:
            root = inside.find(within)
            classes.unite(root if isinstance(root, int) else shown.setdefault(root, size), size)
    for result, into in zip(op.results, op.outputs, strict=False):
        classes.same_shape(result, into)


_NOTES: dict[type[Operation], Callable[[SizeClasses, Any], None]] = {
    linalg.GenericOp: _note_loops,
    linalg.FillOp: _note_results,
    tensor.DimOp: _note_dim,
    tensor.EmptyOp: _note_empty,
    tensor.CastOp: _note_cast,
    kernel.LaunchOp: _note_launch,
    arith.ConstantOp: _note_constant,
}
