"""Reference rules of arith and math, on NumPy scalars and elementwise on arrays.

If upstream leaves a result undefined (division by zero, over-wide shifts, float to integer out of
range) these rules return some value silently: no pass may rely on it.
"""

from __future__ import annotations

import math as python_math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute

from stepwell.core.fma import fma
from stepwell.core.rules import OpClass
from stepwell.dialects.readings import Array, reference
from stepwell.dialects.types import array, dtype
from stepwell.dialects.upstream.missing import ErfcOp, RemFOp


def numpy_type(element: Attribute) -> np.dtype[Any]:
    """Return the NumPy type of values of an element type; index is int64."""
    return np.dtype(np.int64) if isinstance(element, IndexType) else dtype(element).numpy


def element_of(type: Attribute) -> Attribute:
    """Return the element type of a tensor, vector or memref, or the scalar type itself."""
    return type.element_type if isinstance(type, TensorType | VectorType | MemRefType) else type


def _row(function: Callable[..., Any], *ops: OpClass) -> None:
    """Register ``function`` of the operands for ``ops``, in the result's NumPy type."""

    @reference(*ops)
    def rule(op: Any, operands: Sequence[Array]) -> Array:
        result: Any = function(*operands)
        given: Any = operands[0]
        if type(result) is type(given) and isinstance(given, np.generic):
            one, other = op.results[0].type, op.operands[0].type
            if one is other or one == other:  # true for nearly all scalars
                return result
        return np.asarray(result).astype(numpy_type(element_of(op.results[0].type)))[()]


def _unsigned(x: Array) -> Array:
    x = np.asarray(x)
    return x.astype(np.bool_) if x.dtype == np.bool_ else x.view(f"u{x.dtype.itemsize}")


def _as_unsigned(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *operands: np.asarray(function(*map(_unsigned, operands)))


def _divide_truncating(x: Array, y: Array) -> Array:
    quotient = np.floor_divide(x, y)
    return np.where((np.remainder(x, y) != 0) & ((x < 0) != (y < 0)), quotient + 1, quotient)


def _bitwise_not_bool(integer: Callable[..., Any], boolean: Callable[..., Any]) -> Any:
    """Choose a function by dtype: i1 arithmetic wraps modulo 2, unlike NumPy's bool."""

    def chosen(x: Array, y: Array) -> Array:
        return boolean(x, y) if np.asarray(x).dtype == np.bool_ else integer(x, y)

    return chosen


_row(np.add, arith.AddfOp)
_row(np.subtract, arith.SubfOp)
_row(np.multiply, arith.MulfOp)
_row(np.divide, arith.DivfOp)
_row(np.negative, arith.NegfOp)
_row(np.maximum, arith.MaximumfOp)
_row(np.minimum, arith.MinimumfOp)
_row(np.fmax, arith.MaxnumfOp)
_row(np.fmin, arith.MinnumfOp)
_row(_bitwise_not_bool(np.add, np.logical_xor), arith.AddiOp)
_row(_bitwise_not_bool(np.subtract, np.logical_xor), arith.SubiOp)
_row(_bitwise_not_bool(np.multiply, np.logical_and), arith.MuliOp)
_row(_divide_truncating, arith.DivSIOp)
_row(_as_unsigned(np.floor_divide), arith.DivUIOp)
_row(np.floor_divide, arith.FloorDivSIOp)
_row(lambda x, y: -np.floor_divide(-x, y), arith.CeilDivSIOp)
_row(
    lambda x, y: _unsigned(x) // _unsigned(y) + (_unsigned(x) % _unsigned(y) != 0),
    arith.CeilDivUIOp,
)
_row(np.fmod, arith.RemSIOp, RemFOp)
_row(_as_unsigned(np.fmod), arith.RemUIOp)
_row(np.maximum, arith.MaxSIOp)
_row(np.minimum, arith.MinSIOp)
_row(_as_unsigned(np.maximum), arith.MaxUIOp)
_row(_as_unsigned(np.minimum), arith.MinUIOp)
_row(np.bitwise_and, arith.AndIOp)
_row(np.bitwise_or, arith.OrIOp)
_row(np.bitwise_xor, arith.XOrIOp)
_row(np.left_shift, arith.ShLIOp)
_row(np.right_shift, arith.ShRSIOp)
_row(_as_unsigned(np.right_shift), arith.ShRUIOp)
_row(np.where, arith.SelectOp)
_row(lambda x: x, arith.ExtFOp, arith.TruncFOp, arith.IndexCastOp)
_row(lambda x: x, arith.FPToSIOp)
_row(_unsigned, arith.UIToFPOp, arith.ExtUIOp)
_row(
    lambda x: -np.asarray(x, np.int8) if np.asarray(x).dtype == bool else x,
    arith.ExtSIOp,
    arith.SIToFPOp,
)


@reference(arith.TruncIOp)
def _trunci(op: arith.TruncIOp, operands: Sequence[Array]) -> Array:
    """Keep the low bits, for an i1 the lowest."""
    type = numpy_type(element_of(op.result.type))
    x = np.asarray(operands[0])
    return (x & 1 if type == np.bool_ else x).astype(type)[()]


@reference(arith.FPToUIOp)
def _fptoui(op: arith.FPToUIOp, operands: Sequence[Array]) -> Array:
    type = numpy_type(element_of(op.results[0].type))
    return np.asarray(operands[0]).astype(f"u{type.itemsize}").view(type)[()]


@reference(arith.BitcastOp)
def _bitcast(op: arith.BitcastOp, operands: Sequence[Array]) -> Array:
    return reinterpret(operands[0], element_of(op.input.type), element_of(op.result.type))[()]


def reinterpret(x: Array, before: Attribute, after: Attribute) -> Array:
    """Return the bits of elements as another type; bf16 is stored as the upper half of float32."""
    x = np.ascontiguousarray(x) if np.ndim(x) else np.asarray(x)
    if isinstance(before, BFloat16Type):
        x = (x.view(np.uint32) >> 16).astype(np.uint16)
    if isinstance(after, BFloat16Type):
        return (x.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return x.view(numpy_type(after))


@reference(arith.ConstantOp)
def _constant(op: arith.ConstantOp, operands: Sequence[Array]) -> Array:
    match op.value:
        case DenseIntOrFPElementsAttr():
            return array(op.value)
        case IntegerAttr(value=value, type=IntegerType(width=width)) if width.data == 1:
            return np.asarray(value.data != 0)[()]
        case IntegerAttr(value=value, type=type):
            kind = numpy_type(type)
            return np.array(value.data & ((1 << 8 * kind.itemsize) - 1), np.uint64).astype(
                kind, casting="unsafe"
            )[()]
        case FloatAttr(value=value, type=type):
            return numpy_type(type).type(value.data)
        case other:
            raise ValueError(f"arith.constant of {other} has no value here")


_INTEGER_PREDICATES = (
    np.equal,
    np.not_equal,
    np.less,
    np.less_equal,
    np.greater,
    np.greater_equal,
)


@reference(arith.CmpiOp)
def _cmpi(op: arith.CmpiOp, operands: Sequence[Array]) -> Array:
    x, y = operands
    number = op.predicate.value.data
    if number >= 6:
        return _INTEGER_PREDICATES[number - 4](_unsigned(x), _unsigned(y))
    if np.asarray(x).dtype == np.bool_:  # a true i1 is -1 as a signed number
        x, y = -np.asarray(x, np.int8), -np.asarray(y, np.int8)
    return _INTEGER_PREDICATES[number](x, y)


_ORDERED = {
    1: np.equal,
    2: np.greater,
    3: np.greater_equal,
    4: np.less,
    5: np.less_equal,
    6: lambda x, y: (x < y) | (x > y),
    7: lambda x, y: ~(np.isnan(x) | np.isnan(y)),
}


@reference(arith.CmpfOp)
def _cmpf(op: arith.CmpfOp, operands: Sequence[Array]) -> Array:
    """Predicates 1 to 7 are false on NaN; 8 to 14 are the same ones, true on NaN."""
    x, y = (np.asarray(v) for v in operands)
    number = op.predicate.value.data
    nan = np.isnan(x) | np.isnan(y)
    if number in (0, 15):
        return np.full(nan.shape, number == 15)[()]
    if number < 8:
        return np.asarray(_ORDERED[number](x, y))[()]
    if number == 14:
        return nan[()]
    return (nan | _ORDERED[{8: 1, 9: 2, 10: 3, 11: 4, 12: 5, 13: 6}[number]](x, y))[()]


def _in_f64(function: Callable[..., Any], *ops: OpClass) -> None:
    """Register ``function``, computed in f64, for ``ops``, as in `nd`."""
    _row(lambda *operands: function(*(np.asarray(x, np.float64) for x in operands)), *ops)


def _power(a: Array, b: Array) -> Array:
    return np.where(b == 2, a * a, np.power(a, b))  # NumPy's power is not exact for squares


def _wide(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """Apply a function of Python floats elementwise; errors become NaN."""

    def safe(x: float) -> float:
        try:
            return function(x)
        except (ValueError, OverflowError):
            return float("nan")

    vectorised = np.vectorize(safe, otypes=[np.float64])
    return lambda x: vectorised(np.asarray(x, np.float64)) if np.size(x) else np.asarray(x)


def _round_half_away(x: Array) -> Array:
    return np.where(np.abs(x) >= 2**52, x, np.copysign(np.floor(np.abs(x) + 0.5), x))


def _count_leading(x: Array) -> Array:
    bits = 8 * np.asarray(x).dtype.itemsize
    widths = np.vectorize(lambda v: bits - int(v).bit_length(), otypes=[np.int64])
    return widths(_unsigned(x))


def _count_trailing(x: Array) -> Array:
    bits = 8 * np.asarray(x).dtype.itemsize
    widths = np.vectorize(
        lambda v: bits if v == 0 else (int(v) & -int(v)).bit_length() - 1, otypes=[np.int64]
    )
    return widths(_unsigned(x))


_row(np.abs, math.AbsFOp, math.AbsIOp)
_in_f64(np.arccos, math.AcosOp)
_in_f64(np.arccosh, math.AcoshOp)
_in_f64(np.arcsin, math.AsinOp)
_in_f64(np.arcsinh, math.AsinhOp)
_in_f64(np.arctanh, math.AtanhOp)
_in_f64(np.arctan2, math.Atan2Op)
_in_f64(np.arctan, math.AtanOp)
_in_f64(np.cbrt, math.CbrtOp)
_row(np.ceil, math.CeilOp)
_row(np.copysign, math.CopySignOp)
_in_f64(np.cos, math.CosOp)
_in_f64(np.cosh, math.CoshOp)
_row(_count_leading, math.CountLeadingZerosOp)
_row(_count_trailing, math.CountTrailingZerosOp)
_row(_as_unsigned(np.bitwise_count), math.CtPopOp)
_row(_wide(python_math.erf), math.ErfOp)
_row(_wide(python_math.erfc), ErfcOp)
_in_f64(np.exp2, math.Exp2Op)
_in_f64(np.expm1, math.ExpM1Op)
_in_f64(np.exp, math.ExpOp)
_row(np.power, math.FPowIOp, math.IPowIOp)
_in_f64(_power, math.PowFOp)
_row(np.floor, math.FloorOp)
_row(fma, math.FmaOp)
_in_f64(np.log10, math.Log10Op)
_in_f64(np.log1p, math.Log1pOp)
_in_f64(np.log2, math.Log2Op)
_in_f64(np.log, math.LogOp)
_row(np.rint, math.RoundEvenOp)
_row(_round_half_away, math.RoundOp)
_in_f64(lambda x: 1 / np.sqrt(x), math.RsqrtOp)
_in_f64(np.sin, math.SinOp)
_in_f64(np.sinh, math.SinhOp)
_row(np.sqrt, math.SqrtOp)
_in_f64(np.tan, math.TanOp)
_in_f64(np.tanh, math.TanhOp)
_row(np.trunc, math.TruncOp)
