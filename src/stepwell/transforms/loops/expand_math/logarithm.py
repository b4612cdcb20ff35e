"""log, log2, log10, log1p and powf.

``x = 2**e * (1 + f)`` with ``1 + f`` between the roots of 1/2 and of 2; the logarithm of ``1 + f``
is ``f`` times a constant plus ``f**2`` times a polynomial.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import math
from xdsl.dialects.builtin import f32

from stepwell.transforms.loops.expand_math.exponential import EXP2, clamped
from stepwell.transforms.loops.expand_math.lanes import (
    SIGN,
    Lanes,
    converted,
    expansion,
    fma,
    polynomial,
    power_of_two,
    rounded,
    scaled,
    truncated,
)

INFINITY = float("inf")
NAN = float("nan")
SMALLEST_NORMAL = 1.1754944e-38
ROOT_OF_HALF = 0x3F3504F3
"""The bits of the square root of 1/2."""


@dataclass(frozen=True)
class Base:
    """``log(1 + f) = f * (slope + slope_rest) + f**2 * polynomial(f)``; log(2) the others."""

    slope: float
    slope_rest: float
    two: float
    two_rest: float
    coefficients: tuple[float, ...]


E = Base(
    1.0,
    0.0,
    0.69140625,
    0.0017409305599453094,
    (
        *(-0.5, 0.33333313, -0.2500001, 0.20002075, -0.16668),
        *(0.1422028, -0.124059126, 0.118838936, -0.116725266, 0.06751539),
    ),
)
TWO = Base(
    1.442695,
    1.925963e-08,
    1.0,
    0.0,
    (
        *(-0.7213475, 0.48089808, -0.36067456, 0.28856814, -0.24045154),
        *(0.20515855, -0.17916438, 0.17156655, -0.16764839, 0.096437775),
    ),
)
TEN = Base(
    0.4342945,
    -1.010305e-08,
    0.30078125,
    0.0002487456639811952,
    (
        *(-0.21714725, 0.14476477, -0.108573236, 0.08686616, -0.07239825),
        *(0.06179568, -0.053793818, 0.051301505, -0.050887477, 0.03007659),
    ),
)


def split(x: Lanes) -> tuple[Lanes, Lanes]:
    """Return ``e`` (i32) and ``m`` with ``x = 2**e * m``, for positive normal ``x``."""
    bits = x.bits()
    e = (bits - ROOT_OF_HALF) >> 23
    return e, (bits - (e << 23)).number()


def log_from(base: Base, e: Lanes, f: Lanes) -> Lanes:
    """Return the logarithm of ``2**e * (1 + f)``, ``e`` as f32."""
    curved = f * f * polynomial(f, base.coefficients)
    if base.slope_rest:
        curved = fma(f, base.slope_rest, curved)
    if base.two_rest:
        curved = fma(e, base.two_rest, curved)
    near = f + curved if base.slope == 1.0 else fma(f, base.slope, curved)
    return e + near if base.two == 1.0 else fma(e, base.two, near)


def at_the_ends(x: Lanes, result: Lanes) -> Lanes:
    """Return ``result`` corrected at 0, below 0, at infinity and at NaN."""
    result = (x < INFINITY).choose(result, x)
    result = (x < 0.0).choose(NAN, result)
    return x.equals(0.0).choose(-INFINITY, result)


def normal(x: Lanes) -> tuple[Lanes, Lanes]:
    """Return ``e`` (f32) and ``m`` of any positive ``x``."""
    small = x < SMALLEST_NORMAL
    e, m = split(small.choose(x * 8388608.0, x))
    exponent = converted(e)
    return small.choose(exponent - 23.0, exponent), m


def _log(base: Base, x: Lanes) -> Lanes:
    e, m = normal(x)
    return at_the_ends(x, log_from(base, e, m - 1.0))


@expansion(math.LogOp)
def log(x: Lanes) -> Lanes:
    """Return the natural logarithm."""
    return _log(E, x)


@expansion(math.Log2Op)
def log2(x: Lanes) -> Lanes:
    """Return log2(x); exact at powers of two."""
    return _log(TWO, x)


@expansion(math.Log10Op)
def log10(x: Lanes) -> Lanes:
    """Return the logarithm to base ten."""
    return _log(TEN, x)


@expansion(math.Log1pOp)
def log1p(x: Lanes) -> Lanes:
    """Return the logarithm of ``1 + x``; the rounding error of the sum is added to ``f``."""
    whole = x + 1.0
    lost = x - (whole - 1.0)
    e, m = split(whole)
    f = fma(lost, power_of_two(clamped_exponent(e)), m - 1.0)
    result = at_the_ends(whole, log_from(E, converted(e), f))
    return x.equals(0.0).choose(x, result)


def clamped_exponent(e: Lanes) -> Lanes:
    """Return ``-e``, clamped to exponents of which a power of two exists."""
    e = (e > 126).choose(126, e)
    return e * -1


ATANH = 2.88539
ATANH_REST = 3.851926e-08
"""The rounding error of 2 / ln(2)"""
ATANH_CURVED = (0.9617967, 0.5770789, 0.41192186, 0.33660838)
"""(log2((1 + s) / (1 - s)) / s - 2 / ln(2)) / s**2, in s**2"""


def log2_in_two(x: Lanes) -> tuple[Lanes, Lanes]:
    """Return log2(x) for positive ``x`` as a sum of two, good to about 32 bits."""
    exponent, m = normal(x)
    a, b = m - 1.0, m + 1.0
    b_rest = m - (b - 1.0)
    s = a / b
    s_rest = (fma(-s, b, a) - s * b_rest) / b
    high = s * ATANH
    low = fma(s, ATANH, -high) + fma(s, ATANH_REST, s_rest * ATANH)
    squared = s * s
    low = fma(s * squared, polynomial(squared, ATANH_CURVED), low)
    total = exponent + high
    rest = (high - (total - exponent)) + low
    first = total + rest
    return first, rest - (first - total)


@expansion(math.PowFOp)
def powf(x: Lanes, y: Lanes) -> Lanes:
    """Return ``2**(y * log2(x))`` with a logarithm in two parts; special cases as C's pow."""
    size = x.magnitude()
    high, low = log2_in_two(size)
    p = y * high
    p_rest = fma(y, low, fma(y, high, -p))
    within = p.magnitude() < 200.0
    p_rest = within.choose(p_rest, 0.0)
    p = clamped(p, -200.0, 200.0)
    n, _ = rounded(p)
    r = (p - n) + p_rest
    result = scaled(fma(r, polynomial(r, EXP2), 1.0), n)
    return _pow_limits(x, y, size, result)


def _pow_limits(x: Lanes, y: Lanes, size: Lanes, result: Lanes) -> Lanes:
    """Correct the cases outside the formula: 0, 1, infinity, NaN, negative ``x``."""
    vast = clamped(y, -16777216.0, 16777216.0)
    vast = y.equals(y).choose(vast, 0.0)
    integer = truncated(vast)
    whole = converted(integer).equals(vast)
    odd = whole & (integer & 1).equals(1)
    falling = y < 0.0
    zero, infinity = (x.body.constant(v, f32) for v in (0.0, INFINITY))
    result = size.equals(0.0).choose(falling.choose(infinity, zero), result)
    result = size.equals(INFINITY).choose(falling.choose(zero, infinity), result)
    grows = (size > 1.0).choose((y > 0.0).choose(y, 0.0), (y < 0.0).choose(-y, 0.0))
    result = y.magnitude().equals(INFINITY).choose(grows, result)
    negative = x.bits() < 0
    flipped = (odd & negative).choose((result.bits() ^ SIGN).number(), result)
    outside = (x < 0.0) & (whole ^ 1) & (size < INFINITY) & (y.magnitude() < INFINITY)
    result = outside.choose(NAN, flipped)
    result = (x.compare("uno", y)).choose(NAN, result)
    one = size.equals(1.0) & y.magnitude().equals(INFINITY)
    return (x.equals(1.0) | y.equals(0.0) | one).choose(1.0, result)
