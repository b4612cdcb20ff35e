"""sin, cos, tan, asin, acos, atan, atan2.

``x = n * pi/2 + r`` by three constants and fused multiply-add is accurate up to `LIMIT`; where any
lane is beyond it, infinite or NaN, the C library's function computes all lanes.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import math
from xdsl.ir import Operation

from stepwell.transforms.loops.expand_math.lanes import (
    SIGN,
    Lanes,
    expansion,
    fma,
    polynomial,
    rounded,
    square_root,
    unless_any_above,
)

LIMIT = 0x47C35000
"""The bits of 100000.0, the largest magnitude that is reduced."""
TWO_BY_PI = 0.63661975
HALF_PI = (1.5707964, -4.371139e-08, -1.7151245e-15)
PI, PI_REST = 3.1415927, -8.742278e-08

SIN = (-0.16666667, 0.008333379, -0.0001985309, 2.8330423e-06)
"""(sin(r) / r - 1) / r**2, in r**2"""
COS = (0.041666646, -0.0013887311, 2.4432562e-05)
"""(cos(r) - 1 + r**2 / 2) / r**4, in r**2"""
TAN = (0.3333335, 0.13332675, 0.054058906, 0.02128629, 0.010827126, 9.8767596e-05, 0.0043723877)
"""(tan(r) / r - 1) / r**2, in r**2"""
ATAN = (
    *(-0.3333333, 0.19999887, -0.14283459, 0.11088349, -0.08954836, 0.07165663),
    *(-0.05268504, 0.032192677, -0.014539391, 0.0041623595, -0.0005551715),
)
"""(atan(t) / t - 1) / t**2, in t**2, up to 1"""

ASIN = (0.1666666, 0.07500522, 0.044513375, 0.0318391, 0.014314811, 0.037696842)
"""(asin(s) / s - 1) / s**2, in s**2, up to 0.5"""


def reduced(x: Lanes) -> tuple[Lanes, Lanes]:
    """Return the quadrant and the remainder of ``x`` in it."""
    whole, n = rounded(x * TWO_BY_PI)
    r = x
    for part in HALF_PI:
        r = fma(whole, -part, r)
    return n, r.named("r")


def reduced_with_rest(x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """Return the quadrant, the remainder of ``x`` in it, and the rounding error of that."""
    whole, n = rounded(x * TWO_BY_PI)
    first = fma(whole, -HALF_PI[0], x)
    second = whole * -HALF_PI[1]
    r = first + second
    taken = r - first
    lost = (first - (r - taken)) + (second - taken)
    lost = lost + fma(whole, -HALF_PI[1], -second)
    return n, r.named("r"), fma(whole, -HALF_PI[2], lost)


def sin_of_reduced(r: Lanes) -> Lanes:
    """Return sin(r) for ``abs(r) <= pi / 4``."""
    squared = r * r
    return fma(r * squared, polynomial(squared, SIN), r)


def cos_of_reduced(r: Lanes) -> Lanes:
    """Return cos(r) for ``abs(r) <= pi / 4``."""
    squared = r * r
    return fma(squared * squared, polynomial(squared, COS), fma(squared, -0.5, 1.0))


def where_reducible(x: Lanes, limit: int, op: type[Operation], fast: Callable[[], Lanes]) -> Lanes:
    """Return ``fast()``, or ``op`` of all lanes where the bits of a magnitude exceed ``limit``."""
    return unless_any_above(x.bits() & ~x.body.format.sign, limit, [x], op, fast)


def _quadrant(n: Lanes, r: Lanes) -> Lanes:
    """Return sin(n * pi/2 + r)."""
    value = (n & 1).equals(0).choose(sin_of_reduced(r), cos_of_reduced(r))
    return (value.bits() ^ ((n & 2) << 30)).number()


@expansion(math.SinOp)
def sin(x: Lanes) -> Lanes:
    """Return sin(x); odd, and -0 at -0."""

    def fast() -> Lanes:
        n, r = reduced(x)
        return x.equals(0.0).choose(x, _quadrant(n, r))

    return where_reducible(x, LIMIT, math.SinOp, fast)


@expansion(math.CosOp)
def cos(x: Lanes) -> Lanes:
    """Return cos(x): the sine a quarter turn later."""

    def fast() -> Lanes:
        n, r = reduced(x)
        return _quadrant(n + 1, r)

    return where_reducible(x, LIMIT, math.CosOp, fast)


@expansion(math.TanOp)
def tan(x: Lanes) -> Lanes:
    """Return ``tan(r)``, in odd quadrants ``-1 / tan(r)``."""

    def fast() -> Lanes:
        n, r, lost = reduced_with_rest(x)
        squared = r * r
        curved = r * squared * polynomial(squared, TAN)
        value = r + curved
        rest = (r - value) + curved + lost
        inverse = -1.0 / value
        inverse = fma(inverse, fma(inverse, rest, fma(inverse, value, 1.0)), inverse)
        value = (n & 1).equals(0).choose(value + rest, inverse)
        return x.equals(0.0).choose(x, value)

    return where_reducible(x, LIMIT, math.TanOp, fast)


def _asin_parts(size: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """Return where ``size`` is above 1/2, and ``s + curved``, which is asin(size) or asin(s).

    Above 1/2 ``asin(size) = pi/2 - 2 * asin(s)`` with ``s`` the root of ``(1 - size) / 2``.
    """
    steep = size > 0.5
    squared = steep.choose(fma(size, -0.5, 0.5), size * size)
    s = steep.choose(square_root(squared), size)
    return steep, s, s * squared * polynomial(squared, ASIN)


@expansion(math.AsinOp)
def asin(x: Lanes) -> Lanes:
    """Return asin(x); above 1 a NaN, from the root of a negative number."""
    steep, s, curved = _asin_parts(x.magnitude())
    whole = fma(s, -2.0, HALF_PI[0])
    rest = fma(s, -2.0, HALF_PI[0] - whole) + HALF_PI[1]
    return steep.choose(whole + fma(curved, -2.0, rest), s + curved).with_sign_of(x)


@expansion(math.AcosOp)
def acos(x: Lanes) -> Lanes:
    """Return ``pi/2 - asin(x)``, above 1/2 ``2 * asin(s)``; below 0 ``pi - acos(-x)``."""
    steep, s, curved = _asin_parts(x.magnitude())
    flat = (HALF_PI[0] - s) - (curved - HALF_PI[1])
    t = steep.choose((s + curved) * 2.0, flat)
    return (x < 0.0).choose(PI - (t - PI_REST), t)


def atan_of_ratio(t: Lanes) -> Lanes:
    """Return atan(t) for ``0 <= t <= 1``."""
    squared = t * t
    return fma(t * squared, polynomial(squared, ATAN), t)


@expansion(math.AtanOp)
def atan(x: Lanes) -> Lanes:
    """Return atan(x); above 1 as ``pi/2 - atan(1 / x)``."""
    size = x.magnitude()
    steep = size > 1.0
    t = atan_of_ratio(steep.choose(1.0 / size, size))
    return steep.choose(HALF_PI[0] - (t - HALF_PI[1]), t).with_sign_of(x)


@expansion(math.Atan2Op)
def atan2(y: Lanes, x: Lanes) -> Lanes:
    """Return the angle of the point (x, y); signed zeros and infinities as in C."""
    height, width = y.magnitude(), x.magnitude()
    steep = height > width
    small, large = steep.choose(width, height), steep.choose(height, width)
    ratio = small / large
    ratio = small.equals(large).choose(1.0, ratio)
    ratio = large.equals(0.0).choose(0.0, ratio)
    t = atan_of_ratio(ratio)
    t = steep.choose(HALF_PI[0] - (t - HALF_PI[1]), t)
    behind = (x.bits() & SIGN).equals(SIGN)
    t = behind.choose(PI - (t - PI_REST), t)
    t = x.compare("uno", y).choose(float("nan"), t)
    return t.with_sign_of(y)
