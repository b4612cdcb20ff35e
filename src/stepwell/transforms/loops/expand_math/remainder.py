"""The remainder of a division of floats.

The quotient is rounded to the nearest integer. The remainder of ``x`` by one fused multiply-add is
exact if that integer is: it is a multiple of the operands' last place, and less than ``y``.
"""

from __future__ import annotations

from stepwell.dialects.upstream.missing import RemFOp
from stepwell.transforms.loops.expand_math.lanes import (
    Lanes,
    expansion,
    expansion_f64,
    fma,
    nearest,
    unless_any_above,
)


@expansion(RemFOp)
@expansion_f64(RemFOp)
def remf(x: Lanes, y: Lanes) -> Lanes:
    """Return C's ``fmod``, by the C library where a quotient is too large or NaN."""
    how = x.body.format
    limit = (how.bias + how.mantissa - 1) << how.mantissa
    quotient = x / y
    size = y.magnitude()

    def fast() -> Lanes:
        rest = fma(-nearest(quotient, 1.0), y, x)
        rest = ((x.bits() & how.sign) ^ rest.bits()).number()  # as if x were positive
        rest = (rest < 0.0).choose(rest + size, rest).magnitude().with_sign_of(x)
        return size.equals(float("inf")).choose(x, rest)

    return unless_any_above(quotient.bits() & ~how.sign, limit, [x, y], RemFOp, fast)
