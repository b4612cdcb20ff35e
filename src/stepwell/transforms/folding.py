"""Fold an op of constants, by its own `reference` rule."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, prod
from typing import Any

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
)
from xdsl.ir import Attribute, Operation, SSAValue

from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.nd.base import NdOp
from stepwell.dialects.nd.creation import ConstantOp, FullOp
from stepwell.dialects.nd.elementwise import Elementwise
from stepwell.dialects.nd.identities import splat
from stepwell.dialects.readings import Array, reference
from stepwell.dialects.types import dense, dtype
from stepwell.dialects.upstream.identities import known

LIMIT = 1024
"""The most elements of a folded tensor, unless it is a splat."""

_I1 = IntegerType(1)
_FLOATS = (Float64Type, Float32Type, Float16Type, BFloat16Type)
_SCALARS = (IntegerType, IndexType, *_FLOATS)
_EXACT = frozenset(
    {math.AbsFOp, math.AbsIOp, math.CeilOp, math.FloorOp, math.TruncOp, math.RoundEvenOp}
    | {math.CopySignOp, math.FmaOp, math.CountLeadingZerosOp, math.CtPopOp, math.SqrtOp}
)
"""Math functions whose result is the same in every implementation."""
_DIVISIONS = frozenset(
    {arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp}
    | {arith.FloorDivSIOp, arith.CeilDivSIOp, arith.CeilDivUIOp}
)
_SHIFTS = frozenset({arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp})


def foldable(kind: type[Operation]) -> bool:
    """Whether ops of a class may be evaluated at compile time."""
    if kind is arith.ConstantOp or not reference.get(kind):
        return False
    return issubclass(kind, NdOp) or kind in _EXACT or kind.name.startswith("arith.")


def folded(builder: Builder, op: Operation) -> Sequence[SSAValue] | None:
    """Return the constant results of ``op``, None where they are unknown."""
    for operand in op.operands:
        if type(operand.owner) not in (ConstantOp, FullOp, arith.ConstantOp):
            return None
    if not op.operands or not op.results:
        return None
    if isinstance(op, NdOp):
        return _folded_tensor(builder, op)
    return _folded_scalar(builder, op)


def _folded_tensor(builder: Builder, op: NdOp) -> Sequence[SSAValue] | None:
    if isinstance(op, FullOp):
        return None
    filled = [v.owner for v in op.operands if isinstance(v.owner, FullOp)]
    if isinstance(op, Elementwise) and len(filled) == len(op.operands):
        return (_filled(builder, op, filled),)
    if not all(_small(v.type) for v in (*op.operands, *op.results)):
        return None
    arrays = [_array(v) for v in op.operands]
    if any(a is None for a in arrays):
        return None
    with np.errstate(all="ignore"):
        results: Any = reference[type(op)](op, arrays)  # pyright: ignore
    results = (results,) if isinstance(results, np.ndarray | np.generic) else results
    return [_constant(builder, r, v.type) for r, v in zip(results, op.results, strict=True)]


def _filled(builder: Builder, op: Elementwise, operands: Sequence[FullOp]) -> SSAValue:
    """Evaluate one element of splats; the size does not matter."""
    scalars = [np.asarray(_number(o.value)) for o in operands]
    result: Any = reference[type(op)](op, scalars)
    type_: Any = op.y.type
    return builder.insert(FullOp.of(np.asarray(result)[()], type_, operands[0].sizes)).y


def _number(attribute: IntegerAttr[Any] | FloatAttr[Any]) -> Any:
    kind = dtype(attribute.type)
    value = attribute.value.data
    return kind.round(np.asarray(value != 0 if kind.kind == "bool" else value))[()]


def _small(type: Attribute) -> bool:
    if not isinstance(type, TensorType):
        return True
    shape = type.get_shape()
    return DYNAMIC not in shape and prod(shape) <= LIMIT


def _array(value: SSAValue) -> Array | None:
    """Return the value of a constant operand; None for a resource."""
    owner: Any = value.owner
    if isinstance(owner, ConstantOp) and not isinstance(owner.value, DenseIntOrFPElementsAttr):
        return None
    if isinstance(owner, FullOp) and owner.sizes:
        return None
    return np.asarray(reference[type(owner)](owner, ()))


def _constant(builder: Builder, result: Any, type: Attribute) -> SSAValue:
    if not isinstance(type, TensorType):
        return _scalar(builder, result, type)
    value = dense(np.asarray(result).reshape(type.get_shape()), type.element_type)
    if splat(value) is not None:
        return builder.insert(FullOp.of(np.asarray(result).flat[0], type)).y
    return builder.insert(ConstantOp(value)).y


def _folded_scalar(builder: Builder, op: Operation) -> Sequence[SSAValue] | None:
    numbers = [known(v) for v in op.operands]
    if any(n is None for n in numbers) or not _defined(op, numbers):
        return None
    if not all(isinstance(r.type, _SCALARS) for r in op.results):
        return None
    operands: list[Any] = [reference[arith.ConstantOp](v.owner, ()) for v in op.operands]
    with np.errstate(all="ignore"):
        results: Any = reference[type(op)](op, operands)
    results = (results,) if isinstance(results, np.ndarray | np.generic) else results
    return [_scalar(builder, r, v.type) for r, v in zip(results, op.results, strict=True)]


def _defined(op: Operation, numbers: Sequence[Any]) -> bool:
    """Whether the op is defined for these operands by upstream's semantics."""
    if type(op) in _DIVISIONS:
        return numbers[1] not in (0, -1)
    if type(op) in _SHIFTS:
        bound = op.operands[0].type
        return 0 <= numbers[1] < (bound.width.data if isinstance(bound, IntegerType) else 64)
    if isinstance(op, arith.FPToSIOp | arith.FPToUIOp):
        return isfinite(numbers[0]) and 0 <= numbers[0] < 127
    return True


def _scalar(builder: Builder, value: Any, type: Attribute) -> SSAValue:
    if isinstance(type, _FLOATS):
        number = float(np.asarray(dtype(type).round(np.asarray(value)))[()])
        return builder.insert(arith.ConstantOp(FloatAttr(number, type))).result
    assert isinstance(type, IntegerType | IndexType)
    attribute = IntegerAttr.from_bool(bool(value)) if type == _I1 else IntegerAttr(int(value), type)
    return builder.insert(arith.ConstantOp(attribute)).result
