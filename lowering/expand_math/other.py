"""erf, erfc, rsqrt and cbrt."""

from __future__ import annotations

from xdsl.dialects import math

from stepwell.dialects.upstream.missing import ErfcOp
from stepwell.lowering.expand_math.exponential import EXP, reduced, usual_exp
from stepwell.lowering.expand_math.lanes import (
    Lanes,
    expansion,
    fma,
    minimum,
    polynomial,
    scaled,
)

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


@expansion(math.ErfOp)
def erf(x: Lanes) -> Lanes:
    """A polynomial up to 0.9, ``1 - exp(-polynomial)`` above, 1 from 4 on."""
    size = x.magnitude()
    squared = x * x
    small = fma(size, polynomial(squared, ERF), size)
    large = 1.0 - usual_exp(-polynomial(minimum(size, 4.0), LOG_ERFC))
    return (size < 0.9).choose(small, large).with_sign_of(x)


@expansion(ErfcOp)
def erfc(x: Lanes) -> Lanes:
    """``1 - erf(x)`` up to 0.45, ``exp(-x**2)`` times a quotient above; 2 less that below -0.45.

    The square, the polynomial and the quotient have second parts, which hold what the first lost.
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
    """One over the root."""
    return 1.0 / x.root()


@expansion(math.CbrtOp)
def cbrt(x: Lanes) -> Lanes:
    """A third of the exponent as a first guess, two steps of Halley's rule, one of Newton's."""
    size = x.magnitude()
    tiny, vast = size < 1.1754944e-38, size > 1e30
    value = vast.choose(size * 5.9604645e-08, tiny.choose(size * 16777216.0, size))
    third = (value.bits().converted() * 0.33333334).truncated()
    y = (third + 709958130).number()
    for _ in range(2):
        cubed = y * y * y
        y = y * ((cubed + value + value) / (cubed + cubed + value))
    error = fma(y * y, y, -value)
    y = y - error / (y * y * 3.0)
    y = vast.choose(y * 256.0, tiny.choose(y * 0.00390625, y))
    kept = x.equals(0.0) | size.compare("ueq", float("inf"))
    return kept.choose(x, y.with_sign_of(x))
