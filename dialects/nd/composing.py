"""Helpers to write the decomposition of a composite op.

Values are named after the ops that compute them, so that the generated C can be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.builder import Builder
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    IndexType,
    IntegerAttr,
    TensorType,
)
from xdsl.ir import Attribute, Operation, SSAValue

from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.nd.arithmetic import AddOp, DivOp, MulOp, SubOp
from stepwell.dialects.nd.base import tensor_of
from stepwell.dialects.nd.compare import MaxOp
from stepwell.dialects.nd.convert import CastOp
from stepwell.dialects.nd.creation import FullOp
from stepwell.dialects.nd.elementwise import Elementwise
from stepwell.dialects.nd.reduction import ReduceMaxOp, ReduceOp, ReduceSumOp
from stepwell.dialects.nd.shape import BroadcastOp
from stepwell.dialects.nd.sizes import DimOp, FromIndexOp
from stepwell.dialects.nd.syntax import axes, element, shape_of
from stepwell.dialects.types import element_type

F32 = element_type("f32")


@dataclass(frozen=True)
class Composer:
    """Inserts ops at the position of ``builder`` and returns their results."""

    builder: Builder
    created: set[Operation] = field(default_factory=set[Operation])
    sizes_made: dict[tuple[SSAValue, int], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, int], SSAValue]
    )

    def of(self, op: Operation) -> SSAValue:
        """Insert ``op`` and return its one result, named after it."""
        (result,) = self.builder.insert(op).results
        self.created.add(op)
        result.name_hint = op.name.rpartition(".")[2]
        return result

    def add(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Return ``a + b``."""
        return self.of(AddOp(a, b))

    def sub(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Return ``a - b``."""
        return self.of(SubOp(a, b))

    def mul(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Return ``a * b``."""
        return self.of(MulOp(a, b))

    def div(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Return ``a / b``."""
        return self.of(DivOp(a, b))

    def max(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Return the elementwise maximum."""
        return self.of(MaxOp(a, b))

    def sum_over(self, x: SSAValue, axes: Sequence[int]) -> SSAValue:
        """Return the sum of ``x`` over ``axes``, which are removed."""
        return self.of(ReduceSumOp(x, axes))

    def max_over(self, x: SSAValue, axes: Sequence[int]) -> SSAValue:
        """Return the maximum of ``x`` over ``axes``, which are removed."""
        return self.of(ReduceMaxOp(x, axes))

    def cast(self, x: SSAValue, to: Attribute) -> SSAValue:
        """Return ``x`` with elements of type ``to``."""
        return x if element(x) == to else self.of(CastOp(x, to))

    def wide(self, x: SSAValue) -> SSAValue:
        """Return ``x`` in the type for arithmetic: f32 for f16 and bf16, else its own."""
        narrow = isinstance(element(x), Float16Type | BFloat16Type)
        return self.cast(x, F32) if narrow else x

    def full(self, x: SSAValue, number: float) -> SSAValue:
        """Return a tensor of the type of ``x`` filled with ``number``."""
        return self.of(FullOp.of(number, tensor_of(x), self.sizes(x)))

    def sizes(self, x: SSAValue) -> list[SSAValue]:
        """Return the size of each `?` of ``x``."""
        return [self.size(x, a) for a, n in enumerate(shape_of(x)) if n == DYNAMIC]

    def size(self, x: SSAValue, axis: int) -> SSAValue:
        """Return the size of an axis of ``x`` as an index, traced back to operands of the op."""
        while (op := x.owner) in self.created:
            if isinstance(op, ReduceOp):
                axis, x = others(op.x, axes(op.axes))[axis], op.x
            elif isinstance(op, Elementwise):
                x = op.operands[0]
            else:
                break
        if (n := self.sizes_made.get((x, axis))) is None:
            n = self.sizes_made[x, axis] = self.builder.insert(DimOp(x, axis)).n
            n.name_hint = "n"
        return n

    def index(self, number: int) -> SSAValue:
        """Return a known size or position as an index."""
        return self.builder.insert(ConstantOp(IntegerAttr(number, IndexType()))).result

    def along(self, part: SSAValue, x: SSAValue, axes: Sequence[int]) -> SSAValue:
        """Return ``part`` broadcast to the shape of ``x``; its axes are ``axes`` of x."""
        shape = shape_of(x)
        if not axes and not shape:
            return part
        dynamic = [a for axis, a in enumerate(axes) if shape_of(part)[axis] == DYNAMIC]
        unknown = [a for a, n in enumerate(shape) if n == DYNAMIC and a not in dynamic]
        sizes = [self.size(x, a) for a in unknown]
        return self.of(BroadcastOp(part, axes, shape, sizes))

    def count(self, x: SSAValue, axes: Sequence[int]) -> SSAValue:
        """Return the number of elements along ``axes`` of ``x`` as a scalar of its type."""
        known = prod(shape_of(x)[a] for a in axes if shape_of(x)[a] != DYNAMIC)
        total = self.of(FullOp.of(known, TensorType(element(x), [])))
        for axis in axes:
            if shape_of(x)[axis] == DYNAMIC:
                n = self.of(FromIndexOp(self.size(x, axis)))
                total = self.mul(total, self.cast(n, element(x)))
        return total

    def mean(self, x: SSAValue, axes: Sequence[int]) -> SSAValue:
        """Return the mean of ``x`` over ``axes``, which are removed."""
        total = self.sum_over(x, axes)
        sizes = [shape_of(x)[a] for a in axes]
        if DYNAMIC not in sizes:
            return self.div(total, self.full(total, prod(sizes)))
        return self.div(total, self.along(self.count(x, axes), total, ()))


def others(x: SSAValue, axes: Sequence[int]) -> tuple[int, ...]:
    """Return the axes of ``x`` that are not among ``axes``."""
    return tuple(a for a in range(len(shape_of(x))) if a not in axes)
