"""Exact algebraic identities: the elementwise rewrites of `canonicalize`.

Only rewrites that are bitwise exact in IEEE 754 (except for the payload and sign of NaN) are here.
These are not, although they may seem so:

* ``x + 0.0`` is not ``x``: it turns -0.0 into +0.0. ``x + -0.0`` and ``x - 0.0`` are ``x``.
* ``0.0 - x`` is not ``-x``: for x = 0.0 it is +0.0. ``-0.0 - x`` is ``-x``.
* ``x * 0.0`` is not ``0.0`` (infinity, NaN, the sign); ``x - x`` and ``x / x`` likewise.
* ``(x + c) + d`` is not ``x + (c + d)``; ``x / c`` is ``x * (1 / c)`` only for powers of two.
* ``pow(x, 0.5)`` is not ``sqrt(x)``: they differ at -0.0 and -inf.
"""

from __future__ import annotations

from collections.abc import Callable
from math import copysign, frexp, isfinite
from typing import Any, TypeAlias

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import SSAValue

from stepwell.core.dtypes import DType
from stepwell.core.shapes import DYNAMIC
from stepwell.dialects.nd.arithmetic import (
    AbsOp,
    AddOp,
    CeilOp,
    DivOp,
    FloorDivOp,
    FloorOp,
    ModOp,
    MulOp,
    NegOp,
    RemOp,
    RoundOp,
    SquareOp,
    SubOp,
    TruncOp,
)
from stepwell.dialects.nd.base import I1
from stepwell.dialects.nd.bitwise import AndOp, NotOp, OrOp, ShiftLeftOp, ShiftRightOp, XorOp
from stepwell.dialects.nd.compare import (
    Comparison,
    CopysignOp,
    EqOp,
    GeOp,
    GtOp,
    IsnanOp,
    LeOp,
    LtOp,
    MaxOp,
    MinOp,
    NeOp,
    SelectOp,
)
from stepwell.dialects.nd.convert import BitcastOp, CastOp
from stepwell.dialects.nd.creation import ConstantOp, FullOp, number
from stepwell.dialects.nd.sizes import DimOp
from stepwell.dialects.nd.transcendental import PowOp
from stepwell.dialects.readings import simplify
from stepwell.dialects.types import array, dtype, tensor_type

Rule: TypeAlias = Callable[[Builder, Any], SSAValue | None]


def known(value: SSAValue) -> float | None:
    """Return the number that fills a tensor, None if unknown."""
    return number(value.owner.value) if isinstance(value.owner, FullOp) else None


def full_like(builder: Builder, value: float, x: SSAValue, element: Any = None) -> SSAValue:
    """Return a tensor of the shape of ``x`` filled with a number."""
    type = tensor_type(x)
    shape = type.get_shape()
    sizes = [builder.insert(DimOp(x, i)).n for i, n in enumerate(shape) if n == DYNAMIC]
    of = type if element is None else type.__class__(element, shape)
    return builder.insert(FullOp.of(value, of, sizes)).y


def splat(value: DenseIntOrFPElementsAttr) -> bytes | None:
    """Return the bytes of the element that a dense value repeats, None if elements differ."""
    data, width = value.data.data, dtype(value.get_element_type()).bytes
    return data[:width] if data and data == data[:width] * (len(data) // width) else None


@simplify(ConstantOp)
def _constant(builder: Builder, op: ConstantOp) -> SSAValue | None:
    """A constant with one value in all elements -> full."""
    if not isinstance(op.value, DenseIntOrFPElementsAttr) or splat(op.value) is None:
        return None
    return builder.insert(FullOp.of(array(op.value).flat[0], tensor_type(op.y))).y


def _of(x: SSAValue) -> DType:
    return dtype(tensor_type(x).element_type)


def _floats(x: SSAValue) -> bool:
    return _of(x).kind == "float"


def _is(value: float | None, number: float) -> bool:
    """Whether a known number equals ``number``, with zeros distinguished by sign."""
    return value == number and (value != 0 or copysign(1, value) == copysign(1, number))


@simplify(AddOp)
def _add(builder: Builder, op: AddOp) -> SSAValue | None:
    """x + -0.0 -> x; for integers x + 0 -> x; x + -y -> x - y."""
    nothing = -0.0 if _floats(op.a) else 0
    for x, y in ((op.a, op.b), (op.b, op.a)):
        if _is(known(y), nothing):
            return x
        if isinstance(y.owner, NegOp):
            return builder.insert(SubOp(x, y.owner.x)).y
    return None


@simplify(SubOp)
def _sub(builder: Builder, op: SubOp) -> SSAValue | None:
    """x - 0.0 -> x; -0.0 - x -> -x; x - -y -> x + y; for integers x - x -> 0."""
    if _is(known(op.b), 0.0):
        return op.a
    if _is(known(op.a), -0.0 if _floats(op.a) else 0):
        return builder.insert(NegOp(op.b)).y
    if isinstance(op.b.owner, NegOp):
        return builder.insert(AddOp(op.a, op.b.owner.x)).y
    if op.a is op.b and not _floats(op.a):
        return full_like(builder, 0, op.a)
    return None


@simplify(MulOp)
def _mul(builder: Builder, op: MulOp) -> SSAValue | None:
    """x * 1 -> x; x * -1 -> -x; for integers x * 0 -> 0."""
    for x, y in ((op.a, op.b), (op.b, op.a)):
        match known(y):
            case 1:
                return x
            case -1:
                return builder.insert(NegOp(x)).y
            case 0 if not _floats(x):
                return y
            case _:
                pass
    return None


@simplify(DivOp)
def _div(builder: Builder, op: DivOp) -> SSAValue | None:
    """x / 1 -> x; x / 2^k -> x * 2^-k for floats, if that is exact."""
    if (divisor := known(op.b)) is None:
        return None
    if divisor == 1:
        return op.a
    if _floats(op.a) and divisor and isfinite(divisor) and abs(frexp(divisor)[0]) == 0.5:
        inverse = 1 / divisor
        if _of(op.a).round(np.asarray(inverse)) == inverse and abs(frexp(divisor)[1]) < 14:
            return builder.insert(MulOp(op.a, full_like(builder, inverse, op.a))).y
    return None


@simplify(FloorDivOp)
def _floor_div(builder: Builder, op: FloorDivOp) -> SSAValue | None:
    """For integers x // 1 -> x."""
    return op.a if known(op.b) == 1 and not _floats(op.a) else None


@simplify(RemOp, ModOp)
def _rem(builder: Builder, op: RemOp | ModOp) -> SSAValue | None:
    """For integers x % 1 -> 0."""
    return full_like(builder, 0, op.a) if known(op.b) == 1 and not _floats(op.a) else None


@simplify(PowOp)
def _pow(builder: Builder, op: PowOp) -> SSAValue | None:
    """pow(x, 0) -> 1, also for NaN; pow(x, 1) -> x; pow(x, 2) -> square x."""
    match known(op.b):
        case 0:
            return full_like(builder, 1, op.a)
        case 1:
            return op.a
        case 2:
            return builder.insert(SquareOp(op.a)).y
        case _:
            return None


@simplify(NegOp)
def _neg(builder: Builder, op: NegOp) -> SSAValue | None:
    """--x -> x."""
    return op.x.owner.x if isinstance(op.x.owner, NegOp) else None


@simplify(AbsOp, SquareOp)
def _even(builder: Builder, op: AbsOp | SquareOp) -> SSAValue | None:
    """abs abs x, abs -x -> abs x; unsigned abs x -> x; square abs x, square -x -> square x."""
    inner = op.x.owner
    if isinstance(op, AbsOp) and _of(op.x).kind == "unsigned":
        return op.x
    if isinstance(op, AbsOp) and isinstance(inner, AbsOp | SquareOp):
        return op.x if isinstance(inner, AbsOp) or _floats(op.x) else None
    if isinstance(inner, AbsOp | NegOp):
        return builder.insert(type(op)(inner.x)).y
    return None


@simplify(CeilOp, FloorOp, RoundOp, TruncOp)
def _rounded(builder: Builder, op: Any) -> SSAValue | None:
    """Rounding a rounded value -> that value."""
    whole = isinstance(op.x.owner, CeilOp | FloorOp | RoundOp | TruncOp)
    return op.x if whole else None


@simplify(NotOp)
def _not(builder: Builder, op: NotOp) -> SSAValue | None:
    """not not x -> x."""
    return op.x.owner.x if isinstance(op.x.owner, NotOp) else None


def _ones(x: SSAValue) -> int:
    kind = _of(x)
    return 1 if kind.kind == "bool" else -1 if kind.kind == "signed" else 256**kind.bytes - 1


@simplify(AndOp)
def _and(builder: Builder, op: AndOp) -> SSAValue | None:
    """x & x, x & ~0 -> x; x & 0 -> 0."""
    for x, y in ((op.a, op.b), (op.b, op.a)):
        if x is y or known(y) == _ones(x):
            return x
        if known(y) == 0:
            return y
    return None


@simplify(OrOp)
def _or(builder: Builder, op: OrOp) -> SSAValue | None:
    """x | x, x | 0 -> x; x | ~0 -> ~0."""
    for x, y in ((op.a, op.b), (op.b, op.a)):
        if x is y or known(y) == 0:
            return x
        if known(y) == _ones(x):
            return y
    return None


@simplify(XorOp)
def _xor(builder: Builder, op: XorOp) -> SSAValue | None:
    """x ^ x -> 0; x ^ 0 -> x; x ^ ~0 -> not x."""
    if op.a is op.b:
        return full_like(builder, 0, op.a)
    for x, y in ((op.a, op.b), (op.b, op.a)):
        if known(y) == 0:
            return x
        if known(y) == _ones(x):
            return builder.insert(NotOp(x)).y
    return None


@simplify(ShiftLeftOp, ShiftRightOp)
def _shift(builder: Builder, op: ShiftLeftOp | ShiftRightOp) -> SSAValue | None:
    """A shift by 0 -> x."""
    return op.a if known(op.b) == 0 else None


@simplify(EqOp, NeOp, LtOp, LeOp, GtOp, GeOp)
def _compare(builder: Builder, op: Comparison) -> SSAValue | None:
    """x < x, x > x -> false; x != x -> isnan x; without NaN the other comparisons fold too."""
    if op.a is not op.b:
        return None
    if isinstance(op, LtOp | GtOp):
        return full_like(builder, False, op.a, I1)
    if not _floats(op.a):
        return full_like(builder, not isinstance(op, NeOp), op.a, I1)
    return builder.insert(IsnanOp(op.a)).y if isinstance(op, NeOp) else None


@simplify(MaxOp, MinOp, CopysignOp)
def _same(builder: Builder, op: MaxOp | MinOp | CopysignOp) -> SSAValue | None:
    """f(x, x) -> x."""
    return op.a if op.a is op.b else None


@simplify(SelectOp)
def _select(builder: Builder, op: SelectOp) -> SSAValue | None:
    """Fold a known condition or equal operands; exchange the operands of a negated condition."""
    chosen = known(op.condition)
    if op.a is op.b or chosen == 1:
        return op.a
    if chosen == 0:
        return op.b
    if known(op.a) == 1 and known(op.b) == 0 and _of(op.a).kind == "bool":
        return op.condition
    if isinstance(op.condition.owner, NotOp):
        return builder.insert(SelectOp(op.condition.owner.x, op.b, op.a)).y
    return None


_DIGITS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}


def keeps_values(before: DType, after: DType) -> bool:
    """Whether every value of one dtype is a value of the other."""
    if before is after or before.kind == "bool":
        return True
    if after.kind == "bool" or (before.kind == "float" and after.kind != "float"):
        return False
    if before.kind == "float":
        return after.bytes > before.bytes
    bits = 8 * before.bytes - (before.kind == "signed")
    if after.kind == "float":
        return bits <= _DIGITS[after.name]
    if before.kind == "signed" and after.kind == "unsigned":
        return False
    return bits <= 8 * after.bytes - (after.kind == "signed")


def _one_cast(before: DType, between: DType, after: DType) -> bool:
    """Whether two casts equal one; floats become integers by saturating, integers by wrapping."""
    if not keeps_values(before, between):
        return False
    saturates = between.kind == "float" != before.kind and after.kind in ("signed", "unsigned")
    return not saturates or keeps_values(before, after)


@simplify(CastOp)
def _cast(builder: Builder, op: CastOp) -> SSAValue | None:
    """Remove a cast to the same type; merge it with one that keeps all values."""
    if op.x.type == op.y.type:
        return op.x
    inner = op.x.owner
    if isinstance(inner, CastOp) and _one_cast(_of(inner.x), _of(op.x), _of(op.y)):
        if inner.x.type == op.y.type:
            return inner.x
        return builder.insert(CastOp(inner.x, tensor_type(op.y).element_type)).y
    return None


@simplify(BitcastOp)
def _bitcast(builder: Builder, op: BitcastOp) -> SSAValue | None:
    """Remove a bitcast to the same type; merge two."""
    if op.x.type == op.y.type:
        return op.x
    if isinstance(op.x.owner, BitcastOp):
        return builder.insert(BitcastOp(op.x.owner.x, tensor_type(op.y).element_type)).y
    return None
