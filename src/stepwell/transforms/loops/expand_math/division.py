"""Integer divisions of vectors by constants, as products: no machine divides vectors of integers.

``x / d`` is the upper half of ``x * m``, shifted; ``m`` is a power of two over ``d``, rounded up.
This is exact for all ``x`` if the error of ``m`` is small enough. Floor division takes ``~x`` for
a negative ``x`` and inverts the quotient; truncating division takes ``abs(x)``. The scalar
tail of a loop is left to the C compiler, which does the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import IntegerType, VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from stepwell.dialects.readings import Array, reference
from stepwell.transforms.loops.expand_math.lanes import Lanes

_CHOOSING = (arith.ConstantOp, vector.BroadcastOp, arith.CmpiOp, arith.OrIOp, arith.SelectOp)


class Quotient(NamedTuple):
    """``x / d`` is ``x * factor`` shifted right by the width and ``shift``, where ``x`` is shifted
    right by ``before`` first; if ``carried``, the factor has another bit above its width."""

    factor: int
    shift: int
    before: int = 0
    carried: bool = False


def quotient(divisor: int, most: int, width: int) -> Quotient:
    """Return how to compute ``x / divisor`` in ``width`` bits for ``0 <= x <= most``.

    >>> quotient(7, 2**31, 32), quotient(7, 2**32 - 1, 32)
    (Quotient(factor=2454267027, shift=2, before=0, carried=False), \
Quotient(factor=613566757, shift=2, before=0, carried=True))
    """
    for shift in range(width):
        scale = 1 << width + shift
        factor = -(-scale // divisor)
        if factor < 1 << width and (factor * divisor - scale) * most < scale:
            return Quotient(factor, shift)
    if even := (divisor & -divisor).bit_length() - 1:
        found = quotient(divisor >> even, most >> even, width)
        return found._replace(before=even)
    shift = divisor.bit_length()
    factor = -(-(1 << width + shift) // divisor) - (1 << width)
    return Quotient(factor, shift - 1, carried=True)


def formula(op: Operation) -> tuple[str, Callable[[Lanes], Lanes]] | None:
    """Return the name and the formula of a division by a constant, None for other ops."""
    rule = _RULES.get(type(op))
    if rule is None or not isinstance(type_ := op.results[0].type, VectorType):
        return None
    divisor, kind = _constant(op.operands[1]), type_.element_type
    if divisor is None or not isinstance(kind, IntegerType) or kind.width.data < 8:
        return None
    width, signed = kind.width.data, op.name[-2:] == "si"
    divisor = divisor if signed else divisor % (1 << width)
    if divisor < 2 or len(type_.get_shape()) != 1 or type_.get_shape()[0] % _least_lanes(width):
        return None
    name = f"{op.name.removeprefix('arith.')}_{divisor}"
    return name, lambda x: rule(x, divisor, width)


def _least_lanes(width: int) -> int:
    """Return the fewest lanes of a vector that is divided by products.

    Of narrow lanes two become one that is wider, and OpenCL has no vectors of one.
    """
    return 2 if width == 64 else 4


def _constant(value: SSAValue) -> int | None:
    """Return the integer that all lanes of ``value`` equal."""
    lanes = evaluated(value)
    if lanes is None or np.any(lanes != np.ravel(lanes)[0]):
        return None
    return int(np.ravel(lanes)[0])


def evaluated(value: SSAValue) -> Array | None:
    """Return the constant that ``value`` equals, also by selecting on compared constants.

    Divisors have that form, because divisions by 0 and -1 are handled separately before.
    """
    op = value.owner
    if not isinstance(op, _CHOOSING):
        return None
    known = [found for each in op.operands if (found := evaluated(each)) is not None]
    if len(known) < len(op.operands):
        return None
    return np.asarray(reference[type(op)](op, known))


def _floor_signed(x: Lanes, divisor: int, width: int) -> Lanes:
    if divisor & (divisor - 1) == 0:
        return x >> (divisor.bit_length() - 1)
    sign = x >> (width - 1)
    return _by_product(x ^ sign, quotient(divisor, (1 << width - 1) - 1, width), width) ^ sign


def _signed(x: Lanes, divisor: int, width: int) -> Lanes:
    sign = x >> (width - 1)
    power = divisor.bit_length() - 1
    if divisor == 1 << power:
        return (x + _shifted(sign, width - power)) >> power
    size = (x ^ sign) - sign
    return (_by_product(size, quotient(divisor, 1 << width - 1, width), width) ^ sign) - sign


def _unsigned(x: Lanes, divisor: int, width: int) -> Lanes:
    if divisor & (divisor - 1) == 0:
        return _shifted(x, divisor.bit_length() - 1)
    return _by_product(x, quotient(divisor, (1 << width) - 1, width), width)


def _rest(division: Callable[[Lanes, int, int], Lanes]) -> Callable[[Lanes, int, int], Lanes]:
    def rest(x: Lanes, divisor: int, width: int) -> Lanes:
        return x - division(x, divisor, width) * divisor

    return rest


_RULES: dict[type[Operation], Callable[[Lanes, int, int], Lanes]] = {
    arith.FloorDivSIOp: _floor_signed,
    arith.DivSIOp: _signed,
    arith.DivUIOp: _unsigned,
    arith.RemSIOp: _rest(_signed),
    arith.RemUIOp: _rest(_unsigned),
}


def _by_product(x: Lanes, how: Quotient, width: int) -> Lanes:
    """Return the quotient of ``x`` as an unsigned integer."""
    if how.before:
        x = _shifted(x, how.before)
    high = _upper_half(x, how.factor, width)
    if how.carried:  # (x + high) / 2 without overflow: the sum may need another bit
        high = _shifted(x - high, 1) + high
    return _shifted(high, how.shift) if how.shift else high


def _upper_half(x: Lanes, factor: int, width: int) -> Lanes:
    """Return the upper half of an unsigned product.

    Even and odd lanes are multiplied separately, in lanes of twice the width.
    """
    if width == 64:
        return _upper_half_of_64(x, factor)
    pairs = _seen_as(x, IntegerType(2 * width), x.body.width // 2)
    half = (1 << width) - 1
    even = _shifted((pairs & half) * factor, width)
    odd = _shifted(pairs, width) * factor & ~half
    return _seen_as(even | odd, x.element, x.body.width)


def _upper_half_of_64(x: Lanes, factor: int) -> Lanes:
    """Return the same of 64 bits, by four products of halves."""
    half = (1 << 32) - 1
    low, high = x & half, _shifted(x, 32)
    factor_low, factor_high = factor & half, factor >> 32
    first = high * factor_low + _shifted(low * factor_low, 32)
    second = low * factor_high + (first & half)
    return high * factor_high + _shifted(first, 32) + _shifted(second, 32)


def _shifted(x: Lanes, by: int) -> Lanes:
    """Return ``x >> by`` of unsigned integers."""
    amount = x.other(by)
    return Lanes(x.body.insert(arith.ShRUIOp(x.value, amount.value)), x.body)


def _seen_as(x: Lanes, element: Attribute, lanes: int) -> Lanes:
    """Return the same bits as lanes of another width."""
    type: Any = VectorType(element, [lanes])
    return Lanes(x.body.insert(vector.BitcastOp(x.value, type)), x.body.with_lanes(lanes))
