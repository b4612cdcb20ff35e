"""Casts and bitcasts as scalar bodies; a change of signedness only is a no-op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from stepwell.core.dtypes import DTYPES, DType
from stepwell.dialects.nd.convert import BitcastOp, CastOp
from stepwell.dialects.types import dtype, element_type, tensor_type
from stepwell.lowering.nd_to_linalg.body import Body, computed_in, signless_element
from stepwell.lowering.nd_to_linalg.generic import mapped
from stepwell.lowering.nd_to_linalg.table import Lowering, lower


@lower(CastOp)
def _cast(lowering: Lowering, op: CastOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    before, after = _dtypes(op)
    if signless_element(before) == signless_element(after):
        return operands
    return mapped(
        lowering,
        operands,
        signless_element(after),
        lambda b, x, _: cast(b, x, before, after),
        before,
    )


@lower(BitcastOp)
def _bitcast(lowering: Lowering, op: BitcastOp, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
    before, after = _dtypes(op)
    to = signless_element(after)
    if signless_element(before) == to:
        return operands
    return mapped(lowering, operands, to, lambda b, x, _: b.emit(arith.BitcastOp(x, to)), before)


def _dtypes(op: CastOp | BitcastOp) -> tuple[DType, DType]:
    return dtype(tensor_type(op.x).element_type), dtype(tensor_type(op.y).element_type)


def cast(b: Body, x: SSAValue, before: DType, after: DType) -> SSAValue:
    """Return ``x`` as `nd.cast` converts it; f16 and bf16 are converted through f32."""
    x, wide = b.widen(x), b.of(computed_in(before))
    to = signless_element(after)
    if after.kind == "bool":
        return wide.compare("ne", x, b.constant(0, x.type))
    if after.kind != "float":
        return _to_integer(wide, x, after)
    return b.narrow(_to_float(wide, x, computed_in(after)), to)


def _to_float(b: Body, x: SSAValue, after: DType) -> SSAValue:
    to, before = signless_element(after), b.dtype
    if before.kind == "signed":
        return b.emit(arith.SIToFPOp(x, to))
    if before.kind != "float":
        return b.emit(arith.UIToFPOp(x, to))
    if before.bytes == after.bytes:
        return x
    return b.emit((arith.ExtFOp if before.bytes < after.bytes else arith.TruncFOp)(x, to))


def _to_integer(b: Body, x: SSAValue, after: DType) -> SSAValue:
    to, before = signless_element(after), b.dtype
    if before.kind == "float":
        return _saturated(b, x, after)
    if before.kind == "bool":
        return b.emit(arith.ExtUIOp(x, to))
    if before.bytes == after.bytes:
        return x
    if before.bytes > after.bytes:
        return b.emit(arith.TruncIOp(x, to))
    return b.emit((arith.ExtSIOp if before.kind == "signed" else arith.ExtUIOp)(x, to))


def _saturated(b: Body, x: SSAValue, after: DType) -> SSAValue:
    """Truncate, saturating to the range of the integer; NaN becomes 0.

    The number is clamped to the range first, as far as floats represent its bounds.
    """
    limits, to = np.iinfo(after.numpy), signless_element(after)
    most = _below(float(limits.max) + 1, b.dtype)
    within = b.emit(arith.MaxnumfOp(x, b.number(float(limits.min))))
    within = b.emit(arith.MinnumfOp(within, b.number(min(most, float(limits.max)))))
    convert: Any = arith.FPToSIOp if after.kind == "signed" else arith.FPToUIOp
    whole = b.emit(convert(within, to))
    if most < limits.max:
        above = b.compare("ge", x, b.number(float(limits.max) + 1))
        whole = b.select(above, b.constant(int(limits.max), to), whole)
    return b.select(b.is_nan(x), b.constant(0, to), whole)


def _below(limit: float, kind: DType) -> float:
    """Return the greatest float of a dtype that is less than ``limit``."""
    numpy = np.float64 if computed_in(kind).bytes == 8 else np.float32
    return float(np.nextafter(numpy(limit), numpy(0)))


def from_index(b: Body, x: SSAValue, after: DType) -> SSAValue:
    """Return an index converted to another dtype: wrapped, or rounded (through f32)."""
    to = signless_element(after)
    if after.kind != "float":
        return b.emit(arith.IndexCastOp(x, to))
    x = b.emit(arith.IndexCastOp(x, element_type("i64")))
    wide = b.of(DTYPES["i64"])
    return b.narrow(_to_float(wide, x, computed_in(after)), to)
