"""Sizes during the lowering: nd.dim, nd.from_index, and arithmetic on static and dynamic sizes.

A `Size` is an int if it is static and an `index` value if it is dynamic; arithmetic on static
sizes creates no op.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import TensorType, i64
from xdsl.ir import Attribute, SSAValue

from stepwell.core.shapes import DYNAMIC, Shape
from stepwell.dialects.nd.sizes import DimOp, FromIndexOp
from stepwell.dialects.types import tensor_type
from stepwell.lowering.nd_to_linalg.generic import dim, filled, index
from stepwell.lowering.nd_to_linalg.table import Lowering, lower

Size: TypeAlias = int | SSAValue


@lower(DimOp)
def _dim(lowering: Lowering, op: DimOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    return (dim(lowering, operands[0], op.axis.value.data),)


@lower(FromIndexOp)
def _from_index(
    lowering: Lowering, op: FromIndexOp, operands: Sequence[SSAValue]
) -> Sequence[SSAValue]:
    number = lowering.insert(arith.IndexCastOp(operands[0], i64)).result
    into = lowering.insert(tensor.EmptyOp((), TensorType(i64, []))).tensor
    return (filled(lowering, number, into),)


@dataclass(frozen=True)
class Sizes:
    """Computes sizes, inserting ops with ``lowering``."""

    lowering: Lowering

    def of(self, x: SSAValue, axis: int) -> Size:
        """Return the size of an axis of ``x``."""
        n = tensor_type(x).get_shape()[axis]
        return dim(self.lowering, x, axis) if n == DYNAMIC else n

    def all_of(self, x: SSAValue) -> list[Size]:
        """Return the size of each axis of ``x``."""
        return [self.of(x, axis) for axis in range(tensor_type(x).get_num_dims())]

    def value(self, size: Size) -> SSAValue:
        """Return ``size`` as a value."""
        return index(self.lowering, size) if isinstance(size, int) else size

    def add(self, a: Size, b: Size) -> Size:
        """Return a + b."""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0 or b == 0:
            return b if a == 0 else a
        return self._write(arith.AddiOp(self.value(a), self.value(b)))

    def sub(self, a: Size, b: Size) -> Size:
        """Return a - b."""
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return a if b == 0 else self._write(arith.SubiOp(self.value(a), self.value(b)))

    def mul(self, a: Size, b: Size) -> Size:
        """Return a * b."""
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 1 or b == 1:
            return b if a == 1 else a
        return self._write(arith.MuliOp(self.value(a), self.value(b)))

    def max(self, a: Size, b: Size) -> Size:
        """Return the maximum."""
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        return self._write(arith.MaxSIOp(self.value(a), self.value(b)))

    def min(self, a: Size, b: Size) -> Size:
        """Return the minimum."""
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        return self._write(arith.MinSIOp(self.value(a), self.value(b)))

    def div(self, a: Size, b: int) -> Size:
        """Return the quotient of ``a``, which is not negative, by ``b``, rounded down."""
        if isinstance(a, int):
            return a // b
        return a if b == 1 else self._write(arith.DivSIOp(a, self.value(b)))

    def _write(self, op: arith.SignlessIntegerBinaryOperation) -> SSAValue:
        return self.lowering.insert(op).result

    def empty(self, sizes: Sequence[Size], element: Attribute) -> SSAValue:
        """Return a new uninitialized tensor of these sizes."""
        dynamic = [n for n in sizes if not isinstance(n, int)]
        type = TensorType(element, shape_of_sizes(sizes))
        return self.lowering.insert(tensor.EmptyOp(dynamic, type)).tensor

    def empty_as(self, sizes: Sequence[Size], type: TensorType[Attribute]) -> SSAValue:
        """Return a new tensor of ``type``, whose `?` are given by ``sizes``, one for each axis."""
        unknown = [
            self.value(n)
            for n, static in zip(sizes, type.get_shape(), strict=True)
            if static == DYNAMIC
        ]
        return self.lowering.insert(tensor.EmptyOp(unknown, type)).tensor


def shape_of_sizes(sizes: Sequence[Size]) -> Shape:
    """Return the shape of a tensor of these sizes."""
    return tuple(n if isinstance(n, int) else DYNAMIC for n in sizes)
