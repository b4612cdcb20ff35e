"""pow, cbrt, sinh and cosh on f64."""

from __future__ import annotations

from xdsl.dialects import math

from stepwell.transforms.loops.expand_math.double import normal
from stepwell.transforms.loops.expand_math.exponential import (
    clamped,
    exp2_of_fraction,
    exp_of_reduced,
    reduced,
)
from stepwell.transforms.loops.expand_math.lanes import (
    Lanes,
    expansion_f64,
    fma,
    minimum,
    nearest,
    polynomial,
    scaled,
)
from stepwell.transforms.loops.expand_math.other import cbrt_of_parts

INFINITY, NAN = float("inf"), float("nan")
SINH = (
    *(0.16666666666666669, 0.00833333333333297, 0.00019841269841531202, 2.755731913037927e-06),
    *(2.5052126856094766e-08, 1.605700052085293e-10, 7.765897596002476e-13),
)
"""(sinh(x) / x - 1) / x**2, in x**2, up to 1"""
FIRST = (2.8853900817779268, 4.0710547481862066e-17)
"""2 / ln(2), and its rounding error"""
SECOND = (0.9617966939259756, 5.0577616648125907e-17)
"""A third of it, and its rounding error."""
CURVED = (
    *(0.577078016355585, 0.4121985831114031, 0.32059889790107676, 0.2623081998994786),
    *(0.22195219553388443, 0.1924039079456163, 0.1684037476519329, 0.17318316867794392),
)
"""((log2((1 + s) / (1 - s)) / s - FIRST) / s**2 - SECOND) / s**2, in s**2"""


def _half_exp(x: Lanes) -> Lanes:
    """Return exp(x) / 2 of ``0 <= x``, infinite only where the half is."""
    n, r = reduced(minimum(x, 712.0))
    return scaled(exp_of_reduced(r), n - 1.0)


@expansion_f64(math.SinhOp)
def sinh(x: Lanes) -> Lanes:
    """Return a polynomial up to 1, half the difference of exponentials above."""
    size = x.magnitude()
    squared = x * x
    small = fma(size * squared, polynomial(squared, SINH), size)
    half = _half_exp(size)
    return (size < 1.0).choose(small, half - 0.25 / half).with_sign_of(x)


@expansion_f64(math.CoshOp)
def cosh(x: Lanes) -> Lanes:
    """Return half the sum of exponentials."""
    half = _half_exp(x.magnitude())
    return half + 0.25 / half


@expansion_f64(math.CbrtOp)
def cbrt(x: Lanes) -> Lanes:
    """Return the cube root, by that of the mantissa times 2 to the exponent's rest modulo 3."""
    e, m = normal(x.magnitude())
    return cbrt_of_parts(x, e, m, steps=2)


def _sum(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """Return a sum and its rounding error, where ``abs(a) >= abs(b)``."""
    total = a + b
    return total, b - (total - a)


def _product(a: tuple[Lanes, Lanes], b: tuple[Lanes, Lanes]) -> tuple[Lanes, Lanes]:
    """Return the product of two double-double numbers as a double-double number."""
    high = a[0] * b[0]
    return high, fma(a[0], b[1], fma(a[1], b[0], fma(a[0], b[0], -high)))


def _log2(x: Lanes) -> tuple[Lanes, Lanes]:
    """Return log2(x) for positive ``x`` as a sum of two, good to about 65 bits."""
    e, m = normal(x)
    a, b = m - 1.0, m + 1.0
    b_rest = m - (b - 1.0)
    inverse = 1.0 / b
    high = a * inverse
    left = fma(-high, b_rest, fma(-high, b, a))
    first = fma(left, inverse, high)
    s = first, fma(left, inverse, high - first)
    squared = _product(s, s)
    tail, tail_rest = _sum(
        s[0].other(SECOND[0]), fma(squared[0], polynomial(squared[0], CURVED), SECOND[1])
    )
    curved = _product(squared, (tail, tail_rest))
    slope, slope_rest = _sum(s[0].other(FIRST[0]), curved[0])
    log, rest = _product(s, (slope, slope_rest + curved[1] + FIRST[1]))
    total, lost = _sum(e, log)
    return _sum(total, lost + rest)


@expansion_f64(math.PowFOp)
def pow(x: Lanes, y: Lanes) -> Lanes:
    """Return ``2**(y * log2(x))`` with a double-double logarithm; special cases as C's pow."""
    size = x.magnitude()
    high, low = _log2(size)
    p = y * high
    rest = fma(y, low, fma(y, high, -p))
    rest = (p.magnitude() < 1200.0).choose(rest, 0.0)
    p = clamped(p, -1200.0, 1200.0)
    n = nearest(p, 1.0)
    result = scaled(exp2_of_fraction((p - n) + rest), n)
    return _limits(x, y, size, result)


def _parity(y: Lanes) -> tuple[Lanes, Lanes]:
    """Return where ``y`` is an integer, and where it is odd."""
    size = y.magnitude()
    shifted = size + 2.0**52
    far = size.compare("oge", 2.0**52)
    whole = far | (shifted - 2.0**52).equals(size)
    bits = far.choose(size.bits(), shifted.bits())
    return whole, whole & (size < 2.0**53) & (bits & 1).equals(1)


def _limits(x: Lanes, y: Lanes, size: Lanes, result: Lanes) -> Lanes:
    """Correct the cases outside the formula: 0, 1, infinity, NaN, negative ``x``."""
    whole, odd = _parity(y)
    falling, endless = y < 0.0, y.magnitude().equals(INFINITY)
    zero, infinity = x.other(0.0), x.other(INFINITY)
    result = size.equals(0.0).choose(falling.choose(infinity, zero), result)
    result = size.equals(INFINITY).choose(falling.choose(zero, infinity), result)
    grows = (size > 1.0).choose((y > 0.0).choose(y, 0.0), (y < 0.0).choose(-y, 0.0))
    result = endless.choose(grows, result)
    negative = x.bits() < 0
    flipped = (odd & negative).choose((result.bits() ^ x.body.format.sign).number(), result)
    outside = (x < 0.0) & (whole ^ 1) & (size < INFINITY) & (endless ^ 1)
    result = outside.choose(NAN, flipped)
    result = x.compare("uno", y).choose(NAN, result)
    one = size.equals(1.0) & endless
    return (x.equals(1.0) | y.equals(0.0) | one).choose(1.0, result)
