"""Logarithms, erf, sin and cos on f64; exp and related functions are in `exponential`.

The formulas are those of f32 with longer polynomials, except the logarithms: there ``log(1 + f)``
is ``2 * atanh(s)`` with ``s = f / (2 + f)``, because the series in ``s`` is half as long.
"""

from __future__ import annotations

from xdsl.dialects import math

from stepwell.transforms.loops.expand_math.exponential import exp_of_reduced, reduced
from stepwell.transforms.loops.expand_math.lanes import (
    DOUBLE,
    Lanes,
    expansion_f64,
    fma,
    minimum,
    polynomial,
    power_of_two,
    rounded,
)
from stepwell.transforms.loops.expand_math.logarithm import at_the_ends
from stepwell.transforms.loops.expand_math.trigonometric import where_reducible

ERF = (
    *(0.1283791670955126, -0.3761263890318373, 0.11283791670953794, -0.02686617064482373),
    *(0.0052239776217703725, -0.0008548326764466543, 0.00012055321382481122),
    *(-1.492530753550859e-05, 1.6455328747938096e-06, -1.6276526722586205e-07),
    *(1.4051482766989913e-08, -8.493998797080943e-10),
)
"""erf(x) / x - 1, in x**2, up to 0.9"""
ERFC = (
    *(1.2769783815525286, -0.09276382658574618, -0.16603039761528707, 0.16405128003349068),
    *(-0.05422000099226513, -0.008034015086406205, 0.00872265388442816, 0.0012713391117987658),
    *(-0.0014568141210316238, -0.00045434369005279454, 0.0002063693965449684),
    *(0.00015107162865988187, -1.5292844469448735e-06, -3.664045633856451e-05),
    *(-1.3371230193866796e-05, 4.530383268326588e-06, 4.767332012326425e-06),
)
"""erfc(x) * exp(x**2) * (1 + 2 * x), in (x - 2) / (x + 2), from 0.9 to 6"""

SMALLEST_NORMAL = 2.2250738585072014e-308
ROOT_OF_HALF = 0x3FE6A09E667F3BCD
"""The bits of the square root of 1/2."""
HIGH = -(1 << 32)
"""The mask of a float's upper half: products of two such halves are exact."""
ATANH = (
    *(0.6666666666666735, 0.3999999999940942, 0.2857142874366239, 0.22222198432149784),
    *(0.1818357216161805, 0.15313837699209373, 0.14798198605116586),
)
"""(log((1 + s) / (1 - s)) - 2 * s) / s**3, in s**2"""
LN2_HIGH, LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
"""The last bits of the first are zero, so that its products with exponents are exact."""
BASE_TWO = (1.4426950407214463, 1.6751713164886512e-10), (1.0, 0.0)
BASE_TEN = (
    (0.4342944818781689, 2.5082946711645275e-11),
    (0.30102999566361177, 3.694239077158931e-13),
)
"""1 / log(base) and log(2) / log(base), each as a double-double number."""

LIMIT = 0x41D0000000000000
"""The bits of 2**30, the largest magnitude that is reduced."""
TWO_BY_PI = 0.6366197723675814
HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
SIN = (
    *(-0.16666666666666632, 0.00833333333332249, -0.0001984126982985795),
    *(2.7557313707070068e-06, -2.5050760253406863e-08, 1.58969099521155e-10),
)
"""(sin(r) / r - 1) / r**2, in r**2, up to pi / 4"""
COS = (
    *(0.0416666666666666, -0.001388888888887411, 2.480158728947673e-05),
    *(-2.7557314351390663e-07, 2.087572321298175e-09, -1.1359647557788195e-11),
)
"""(cos(r) - 1 + r**2 / 2) / r**4, in r**2, up to pi / 4"""


@expansion_f64(math.ErfOp)
def erf(x: Lanes) -> Lanes:
    """Return a polynomial up to 0.9, ``1 - quotient * exp(-x**2)`` above, 1 from 6 on."""
    size = x.magnitude()
    squared = x * x
    small = fma(size, polynomial(squared, ERF), size)
    within = minimum(size, 6.0)
    n, r = reduced(-(within * within))
    curve = polynomial((within - 2.0) / (within + 2.0), ERFC)
    large = 1.0 - curve * (exp_of_reduced(r) * power_of_two(n)) / fma(within, 2.0, 1.0)
    return (size < 0.9).choose(small, large).with_sign_of(x)


def _split(x: Lanes) -> tuple[Lanes, Lanes]:
    """Return ``e`` and ``m`` with ``x = 2**e * m``, for positive normal ``x``; ``e`` as a float."""
    bits = x.bits()
    e = (bits - ROOT_OF_HALF) >> DOUBLE.mantissa
    m = (bits - (e << DOUBLE.mantissa)).number()
    return (e + DOUBLE.rounded).number() - DOUBLE.magic, m


def normal(x: Lanes) -> tuple[Lanes, Lanes]:
    """Return ``e`` and ``m`` of any positive ``x``."""
    small = x < SMALLEST_NORMAL
    e, m = _split(small.choose(x * 2.0**54, x))
    return small.choose(e - 54.0, e), m


def _curved(f: Lanes) -> tuple[Lanes, Lanes]:
    """Return ``f**2 / 2``, and the difference of ``log(1 + f)`` to ``f - f**2 / 2``."""
    s = f / (f + 2.0)
    half = f * f * 0.5
    squared = s * s
    return half, s * fma(squared, polynomial(squared, ATANH), half)


def _log_from(e: Lanes, f: Lanes) -> Lanes:
    """Return the logarithm of ``2**e * (1 + f)``."""
    half, rest = _curved(f)
    return fma(e, LN2_HIGH, f - (half - fma(e, LN2_LOW, rest)))


@expansion_f64(math.LogOp)
def log(x: Lanes) -> Lanes:
    """Return the natural logarithm."""
    e, m = normal(x)
    return at_the_ends(x, _log_from(e, m - 1.0))


@expansion_f64(math.Log1pOp)
def log1p(x: Lanes) -> Lanes:
    """Return the logarithm of ``1 + x``; the rounding error of the sum is added to ``f``."""
    whole = x + 1.0
    lost = x - (whole - 1.0)
    e, m = _split(whole)
    within = (e > 1022.0).choose(1022.0, e)
    f = fma(lost, power_of_two(-within), m - 1.0)
    result = at_the_ends(whole, _log_from(e, f))
    return x.equals(0.0).choose(x, result)


def _log_to(x: Lanes, base: tuple[tuple[float, float], tuple[float, float]]) -> Lanes:
    """Return the logarithm to a base, with log(1 + f) as a double-double number."""
    (factor, factor_rest), (two, two_rest) = base
    e, m = normal(x)
    f = m - 1.0
    half, rest = _curved(f)
    high = ((f - half).bits() & HIGH).number()
    low = (f - high) - half + rest
    first = high * factor
    last = fma(low + high, factor_rest, low * factor)
    last = fma(e, two_rest, last) if two_rest else last
    whole = e * two if two_rest else e
    total = whole + first
    return at_the_ends(x, last + ((whole - total) + first) + total)


@expansion_f64(math.Log2Op)
def log2(x: Lanes) -> Lanes:
    """Return log2(x); exact at powers of two."""
    return _log_to(x, BASE_TWO)


@expansion_f64(math.Log10Op)
def log10(x: Lanes) -> Lanes:
    """Return the logarithm to base ten."""
    return _log_to(x, BASE_TEN)


def turned(x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """Return the quadrant, the remainder of ``x`` in it, and the rounding error of that.

    The first difference is exact; the second product and difference are double-double numbers.
    """
    whole, n = rounded(x * TWO_BY_PI)
    first = fma(whole, -HALF_PI[0], x)
    second = whole * HALF_PI[1]
    r = first - second
    lost = (first - r) - second - fma(whole, HALF_PI[1], -second)
    return n, r.named("r"), fma(whole, -HALF_PI[2], lost)


def _quadrant(n: Lanes, r: Lanes, lost: Lanes) -> Lanes:
    """Return sin(n * pi/2 + r + lost)."""
    squared = r * r
    sine = r + fma(r * squared, polynomial(squared, SIN), lost)
    half = squared * 0.5
    near = 1.0 - half
    rest = (1.0 - near) - half - r * lost
    cosine = near + fma(squared * squared, polynomial(squared, COS), rest)
    value = (n & 1).equals(0).choose(sine, cosine)
    return (value.bits() ^ ((n & 2) << 62)).number()


@expansion_f64(math.SinOp)
def sin(x: Lanes) -> Lanes:
    """Return sin(x); odd, and -0 at -0."""

    def fast() -> Lanes:
        return x.equals(0.0).choose(x, _quadrant(*turned(x)))

    return where_reducible(x, LIMIT, math.SinOp, fast)


@expansion_f64(math.CosOp)
def cos(x: Lanes) -> Lanes:
    """Return cos(x): the sine a quarter turn later."""

    def fast() -> Lanes:
        n, r, lost = turned(x)
        return _quadrant(n + 1, r, lost)

    return where_reducible(x, LIMIT, math.CosOp, fast)
