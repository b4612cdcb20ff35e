"""Elementwise bit operations; on i1 the logical connectives."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from xdsl.irdl import irdl_op_definition, traits_def
from xdsl.traits import Commutative

from stepwell.dialects.nd.base import BITS, INTEGER
from stepwell.dialects.nd.elementwise import Binary, Unary, in_numpy, same_type
from stepwell.dialects.readings import Array


@irdl_op_definition
class NotOp(Unary):
    """``y`` = x with every bit inverted; on i1 the negation."""

    name = "nd.not"
    ELEMENTS: ClassVar = BITS


@irdl_op_definition
class PopcountOp(Unary):
    """``y`` = the number of set bits of x."""

    name = "nd.popcount"
    ELEMENTS: ClassVar = INTEGER


@irdl_op_definition
class ClzOp(Unary):
    """``y`` = the number of bits above the highest set one; the width for 0."""

    name = "nd.clz"
    ELEMENTS: ClassVar = INTEGER


@irdl_op_definition
class AndOp(Binary):
    """``y = a & b``, bit by bit."""

    name = "nd.and"
    ELEMENTS: ClassVar = BITS
    traits = traits_def(Commutative())


@irdl_op_definition
class OrOp(Binary):
    """``y = a | b``, bit by bit."""

    name = "nd.or"
    ELEMENTS: ClassVar = BITS
    traits = traits_def(Commutative())


@irdl_op_definition
class XorOp(Binary):
    """``y = a ^ b``, bit by bit."""

    name = "nd.xor"
    ELEMENTS: ClassVar = BITS
    traits = traits_def(Commutative())


@irdl_op_definition
class ShiftLeftOp(Binary):
    """``y = a * 2^b``, wrapping. A shift by the width or more, b taken as unsigned, gives 0."""

    name = "nd.shift_left"
    ELEMENTS: ClassVar = INTEGER


@irdl_op_definition
class ShiftRightOp(Binary):
    """``y = floor(a / 2^b)``: fills with the sign for signed types, with zeros for unsigned ones.

    * A shift by the width or more, b taken as unsigned, gives -1 for a negative a, else 0.
    """

    name = "nd.shift_right"
    ELEMENTS: ClassVar = INTEGER


OPS = (NotOp, PopcountOp, ClzOp, AndOp, OrOp, XorOp, ShiftLeftOp, ShiftRightOp)
same_type(*OPS)


def _unsigned(x: Array) -> Array:
    return x.view(f"u{x.dtype.itemsize}")


def _popcount(x: Array) -> Array:
    return sum(((_unsigned(x) >> bit) & 1 for bit in range(8 * x.dtype.itemsize)), np.zeros_like(x))


def _clz(x: Array) -> Array:
    width = 8 * x.dtype.itemsize
    used = sum(((_unsigned(x) >> bit) != 0 for bit in range(width)), np.zeros_like(x))
    return width - used


def _shift_left(a: Array, b: Array) -> Array:
    over = _unsigned(b) >= 8 * a.dtype.itemsize
    return np.where(over, a.dtype.type(0), a << np.where(over, b.dtype.type(0), b))


def _shift_right(a: Array, b: Array) -> Array:
    most = 8 * a.dtype.itemsize - 1
    over = _unsigned(b) > most
    shifted = a >> np.where(over, b.dtype.type(most), b)
    return shifted if a.dtype.kind == "i" else np.where(over, a.dtype.type(0), shifted)


in_numpy(
    {
        NotOp: np.invert,
        PopcountOp: _popcount,
        ClzOp: _clz,
        AndOp: np.bitwise_and,
        OrOp: np.bitwise_or,
        XorOp: np.bitwise_xor,
        ShiftLeftOp: _shift_left,
        ShiftRightOp: _shift_right,
    }
)
