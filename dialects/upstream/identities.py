"""Exact algebra on scalars, and the origin of a tensor's sizes; see dialects/nd/identities.

Cases that upstream leaves undefined (division by 0, over-wide shifts) are not rewritten.
"""

from __future__ import annotations

from math import copysign
from typing import Any

from xdsl.builder import Builder
from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, IntegerType, TensorType, i1
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.readings import simplify


def known(value: SSAValue) -> float | None:
    """Return the number that a scalar equals, None if unknown; true is 1."""
    if not isinstance(value.owner, arith.ConstantOp):
        return None
    match value.owner.value:
        case IntegerAttr(value=number, type=type):
            return number.data & 1 if type == i1 else number.data
        case FloatAttr(value=number):
            return number.data
        case _:
            return None


def constant(builder: Builder, number: int, type: Attribute) -> SSAValue:
    """Return an integer or index constant."""
    assert isinstance(type, IntegerType | IndexType)
    return builder.insert(arith.ConstantOp(IntegerAttr(number, type))).result


def _is(value: float | None, number: float) -> bool:
    return value == number and (value != 0 or copysign(1, value) == copysign(1, number))


@simplify(arith.AddiOp, arith.OrIOp, arith.XOrIOp)
def _plus(builder: Builder, op: Any) -> SSAValue | None:
    """x + 0, x | 0, x ^ 0 -> x."""
    if known(op.rhs) == 0:
        return op.lhs
    return op.rhs if known(op.lhs) == 0 else None


@simplify(arith.SubiOp)
def _minus(builder: Builder, op: arith.SubiOp) -> SSAValue | None:
    """x - 0 -> x; x - x -> 0."""
    if known(op.rhs) == 0:
        return op.lhs
    scalar = isinstance(op.result.type, IntegerType | IndexType)
    return constant(builder, 0, op.result.type) if op.lhs is op.rhs and scalar else None


@simplify(arith.MuliOp)
def _times(builder: Builder, op: arith.MuliOp) -> SSAValue | None:
    """x * 1 -> x; x * 0 -> 0."""
    for x, y in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        if known(y) == 1 and op.result.type != IntegerType(1):
            return x
        if known(y) == 0:
            return y
    return None


@simplify(arith.DivSIOp, arith.DivUIOp, arith.FloorDivSIOp, arith.CeilDivSIOp, arith.CeilDivUIOp)
def _divided(builder: Builder, op: Any) -> SSAValue | None:
    """x / 1 -> x."""
    return op.lhs if known(op.rhs) == 1 else None


@simplify(arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp)
def _shifted(builder: Builder, op: Any) -> SSAValue | None:
    """A shift by 0 -> x."""
    return op.lhs if known(op.rhs) == 0 else None


@simplify(arith.AndIOp)
def _and(builder: Builder, op: arith.AndIOp) -> SSAValue | None:
    """x & x -> x; x & 0 -> 0; x & true -> x."""
    for x, y in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        if x is y or (known(y) == 1 and y.type == IntegerType(1)):
            return x
        if known(y) == 0:
            return y
    return None


@simplify(
    arith.MaxSIOp, arith.MaxUIOp, arith.MinSIOp, arith.MinUIOp, arith.MaximumfOp, arith.MinimumfOp
)
def _same(builder: Builder, op: Any) -> SSAValue | None:
    """f(x, x) -> x."""
    return op.lhs if op.lhs is op.rhs else None


@simplify(arith.CmpiOp)
def _compared(builder: Builder, op: arith.CmpiOp) -> SSAValue | None:
    """x = x, x <= x, x >= x -> true; x != x, x < x, x > x -> false."""
    if op.lhs is not op.rhs or op.result.type != IntegerType(1):
        return None
    equal = op.predicate.value.data in (0, 3, 5, 7, 9)
    return constant(builder, 1 if equal else 0, op.result.type)


@simplify(arith.SelectOp)
def _selected(builder: Builder, op: arith.SelectOp) -> SSAValue | None:
    """Fold a select with a known condition or equal operands."""
    chosen = known(op.cond)
    if op.lhs is op.rhs or chosen == 1:
        return op.lhs
    return op.rhs if chosen == 0 else None


@simplify(arith.AddfOp)
def _plus_float(builder: Builder, op: arith.AddfOp) -> SSAValue | None:
    """x + -0.0 -> x."""
    if _is(known(op.rhs), -0.0):
        return op.lhs
    return op.rhs if _is(known(op.lhs), -0.0) else None


@simplify(arith.SubfOp)
def _minus_float(builder: Builder, op: arith.SubfOp) -> SSAValue | None:
    """x - 0.0 -> x."""
    return op.lhs if _is(known(op.rhs), 0.0) else None


@simplify(arith.MulfOp, arith.DivfOp)
def _times_float(builder: Builder, op: Any) -> SSAValue | None:
    """x * 1, x / 1 -> x."""
    if known(op.rhs) == 1:
        return op.lhs
    return op.rhs if known(op.lhs) == 1 and isinstance(op, arith.MulfOp) else None


@simplify(arith.NegfOp)
def _negated(builder: Builder, op: arith.NegfOp) -> SSAValue | None:
    """--x -> x."""
    return op.operand.owner.operand if isinstance(op.operand.owner, arith.NegfOp) else None


@simplify(arith.TruncFOp, arith.TruncIOp)
def _truncated(builder: Builder, op: Any) -> SSAValue | None:
    """Truncation of an extended value -> that value."""
    inner = op.input.owner
    extended = isinstance(inner, arith.ExtFOp | arith.ExtSIOp | arith.ExtUIOp)
    return inner.input if extended and inner.input.type == op.result.type else None


@simplify(arith.IndexCastOp)
def _index_cast(builder: Builder, op: arith.IndexCastOp) -> SSAValue | None:
    """index to i64 and back -> x."""
    inner = op.input.owner
    if not isinstance(inner, arith.IndexCastOp) or inner.input.type != op.result.type:
        return None
    return inner.input if op.input.type in (IndexType(), IntegerType(64)) else None


@simplify(tensor.DimOp)
def _dim(builder: Builder, op: tensor.DimOp) -> SSAValue | None:
    """Fold a size to that in the type, or to the one the tensor was created with."""
    axis, type = known(op.index), op.source.type
    if not isinstance(axis, int) or not isinstance(type, TensorType):
        return None
    if not 0 <= axis < type.get_num_dims():
        return None
    if (n := type.get_shape()[axis]) != DYNAMIC:
        return constant(builder, n, IndexType())
    origin = _original(op.source)
    if isinstance(origin.owner, tensor.EmptyOp):
        unknown = [a for a, n in enumerate(type.get_shape()) if n == DYNAMIC]
        return origin.owner.dynamic_sizes[unknown.index(axis)]
    return (
        builder.insert(tensor.DimOp(origin, op.index)).result if origin is not op.source else None
    )


def _original(value: SSAValue) -> SSAValue:
    """Follow destinations to the original tensor of the same shape that ``value`` updates."""
    while isinstance(value, OpResult) and value.type == (into := _destination(value)).type:
        if into is value:
            break
        value = into
    return value


def _destination(value: OpResult) -> SSAValue:
    op: Operation = value.op
    match op:
        case linalg.ops.GenericOp() | linalg.ops.FillOp():
            return op.outputs[value.index]
        case tensor.InsertSliceOp():
            return op.dest
        case tensor.InsertOp():
            return op.dest
        case _:
            return value
