"""erf, erfc, rsqrt and cbrt."""

from __future__ import annotations

from xdsl.dialects import math

from stepwell.dialects.upstream.missing import ErfcOp
from stepwell.transforms.loops.expand_math.exponential import EXP, reduced, usual_exp
from stepwell.transforms.loops.expand_math.lanes import (
    Lanes,
    converted,
    expansion,
    fma,
    minimum,
    nearest,
    polynomial,
    power_of_two,
    scaled,
    square_root,
)
from stepwell.transforms.loops.expand_math.logarithm import SMALLEST_NORMAL, split

ERF = (0.12837917, -0.3761263, 0.11283624, -0.02685556, 0.0051917536, -0.0008039768, 7.94322e-05)
"""erf(x) / x - 1, in x**2, up to 0.9"""
LOG_ERFC = (
    *(-0.00015012972, 1.1293792, 0.63366956, 0.10785003, -0.024767978),
    *(0.0039908504, -0.000377867, 1.11464515e-05, 7.492072e-07),
)
"""-log(1 - erf(x)), from 0.9 to 4"""
ERFC = (
    *(1.2769784, -0.09276381, -0.1660305, 0.1640499, -0.054213203),
    *(-0.008014838, 0.008661533, 0.0011766868, -0.0012630796, -0.00026114215),
)
"""erfc(x) * exp(x**2) * (1 + 2 * x), in (x - 2) / (x + 2), from 0.45 to 10.2"""

THIRD = (
    *(2.098715019826746, -2.9001234304479913, 3.466388320987577, -2.4862228318245294),
    *(1.0243745740022239, -0.22332641007945772, 0.01992927608951257),
)
"""x**(-1/3) to eight bits, from 0.35 to 2.83"""


@expansion(math.ErfOp)
def erf(x: Lanes) -> Lanes:
    """Return a polynomial up to 0.9, ``1 - exp(-polynomial)`` above, 1 from 4 on."""
    size = x.magnitude()
    squared = x * x
    small = fma(size, polynomial(squared, ERF), size)
    large = 1.0 - usual_exp(-polynomial(minimum(size, 4.0), LOG_ERFC))
    return (size < 0.9).choose(small, large).with_sign_of(x)


@expansion(ErfcOp)
def erfc(x: Lanes) -> Lanes:
    """Return ``1 - erf(x)`` up to 0.45, ``exp(-x**2)`` times a quotient above.

    Below -0.45 it is ``2 - erfc(-x)``. Square, polynomial and quotient have two parts each.
    """
    size = x.magnitude()
    small = fma(-x, polynomial(x * x, ERF), 1.0 - x)
    within = minimum(size, 10.2)
    squared = within * within
    n, r = reduced(-squared)
    r = r - fma(within, within, -squared)
    growth = fma(r * r, polynomial(r, EXP), r)
    t = (within - 2.0) / (within + 2.0)
    curved = t * polynomial(t, ERFC[1:])
    p = curved + ERFC[0]
    p_rest = curved - (p - ERFC[0])
    d = fma(within, 2.0, 1.0)
    d_rest = fma(within, 2.0, 1.0 - d)
    inverse = 1.0 / d
    product = fma(p, growth, p)
    q = product * inverse
    lost = fma(-q, d, product) + fma(p, growth, p - product) + fma(p_rest, growth, p_rest)
    large = scaled(fma(fma(-q, d_rest, lost), inverse, q), n)
    large = (x < 0.0).choose(2.0 - large, large)
    return (size < 0.45).choose(small, large)


@expansion(math.RsqrtOp)
def rsqrt(x: Lanes) -> Lanes:
    """Return one over the square root."""
    return 1.0 / square_root(x)


def cbrt_of_parts(x: Lanes, e: Lanes, m: Lanes, steps: int) -> Lanes:
    """Return the cube root of ``x``, whose magnitude is ``2**e * m``, ``e`` a float.

    A polynomial gives one over the root of the mantissa; each step of a series quadruples its
    accurate digits; then the root is corrected by the error of its cube.
    """
    third = nearest(e, 1 / 3)
    v = m * power_of_two(fma(third, -3.0, e))
    z = polynomial(v, THIRD)
    for _ in range(steps):
        error = fma(-(v * z), z * z, 1.0)
        z = fma(z * error, fma(error, fma(error, 14 / 81, 2 / 9), 1 / 3), z)
    y = v * z * z
    squared = y * y
    error = fma(-fma(y, y, -squared), y, fma(-squared, y, v))
    y = fma(error, z * z * (1 / 3), y) * power_of_two(third)
    kept = x.equals(0.0) | x.magnitude().compare("ueq", float("inf"))
    return kept.choose(x, y.with_sign_of(x))


@expansion(math.CbrtOp)
def cbrt(x: Lanes) -> Lanes:
    """Return the cube root, by that of the mantissa times 2 to the exponent's rest modulo 3."""
    size = x.magnitude()
    small = size < SMALLEST_NORMAL
    e, m = split(small.choose(size * 8388608.0, size))
    exponent = converted(e)
    return cbrt_of_parts(x, small.choose(exponent - 23.0, exponent), m, steps=1)
