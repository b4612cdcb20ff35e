"""Find tensors whose elements are all equal, and the value of these elements."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, SSAValue

from stepwell.analysis.structured import element
from stepwell.dialects.types import array

Constant: TypeAlias = "IntegerAttr | FloatAttr"


@dataclass(frozen=True)
class Splat:
    """The value of all elements: a constant, or a scalar of the program."""

    constant: Constant | None = None
    scalar: SSAValue | None = None


def splat_of(value: SSAValue) -> Splat | None:
    """Return the value of all elements of ``value``, None where they are not known to be equal."""
    match value.owner:
        case arith.ConstantOp() as op:
            return _constant(op.value)
        case linalg.FillOp() as op if op.inputs[0].type == element(value):
            scalar = op.inputs[0]
            return splat_of(scalar) or Splat(scalar=scalar)
        case tensor.SplatOp() as op:
            return splat_of(op.input) or Splat(scalar=op.input)
        case tensor.ExpandShapeOp() | tensor.CollapseShapeOp() as op:
            return splat_of(op.src)
        case tensor.ExtractSliceOp() as op:
            return splat_of(op.source)
        case _:
            return None


def _constant(value: Attribute) -> Splat | None:
    if isinstance(value, IntegerAttr | FloatAttr):
        return Splat(constant=value)
    if not isinstance(value, DenseIntOrFPElementsAttr):
        return None
    data = value.data.data
    count = prod(value.get_shape())
    if not data or not count:
        return None
    width = len(data) // count
    if data != data[:width] * count:
        return None
    kind: Any = value.get_element_type()
    first = array(value).reshape(-1)[0]
    if isinstance(kind, IntegerType):
        return Splat(constant=IntegerAttr(int(first), kind))
    return Splat(constant=FloatAttr(float(first), kind))


def scalar_of(op: arith.ConstantOp) -> Constant | None:
    """Return the number that ``op`` defines, None where it defines a tensor."""
    return op.value if isinstance(op.value, IntegerAttr | FloatAttr) else None
