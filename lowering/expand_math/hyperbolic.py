"""asinh, acosh and atanh.

Near 0 odd polynomials, else logarithms of 1 plus a number that keeps its digits where it is small.
"""

from __future__ import annotations

from xdsl.dialects import math
from xdsl.dialects.builtin import f32

from stepwell.lowering.expand_math.exponential import LN2
from stepwell.lowering.expand_math.lanes import Lanes, expansion, fma, polynomial
from stepwell.lowering.expand_math.logarithm import log1p

VAST = 1e9
"""Above it the root of ``x**2 + 1`` or of ``x**2 - 1`` is ``x``, and the square is still finite."""

ASINH = (-0.16666666, 0.07499907, -0.044616096, 0.03003357, -0.020049585, 0.00925663)
"""(asinh(x) / x - 1) / x**2, in x**2, up to 0.5"""
ATANH = (0.33333302, 0.20002455, 0.14223745, 0.11816762, 0.05158965, 0.1763992)
"""(atanh(x) / x - 1) / x**2, in x**2, up to 0.5"""
ACOSH = (-0.08333333, 0.018749768, -0.005577012, 0.0018770981, -0.00062654953, 0.00014463485)
"""(acosh(1 + t) / root(2 * t) - 1) / t, up to 0.5"""


def _log_of_sum(x: Lanes, rise: Lanes) -> Lanes:
    """Return ``log(1 + rise)``, where ``x`` is vast ``log(2 * x)``."""
    vast = x > VAST
    zero = x.body.constant(0.0, f32)
    return log1p(vast.choose(x, rise)) + vast.choose(LN2, zero)


@expansion(math.AsinhOp)
def asinh(x: Lanes) -> Lanes:
    """``log1p(x + x**2 / (1 + root(1 + x**2)))`` above 0.5."""
    size = x.magnitude()
    squared = x * x
    small = fma(size * squared, polynomial(squared, ASINH), size)
    rise = size + squared / (fma(x, x, 1.0).root() + 1.0)
    return (size < 0.5).choose(small, _log_of_sum(size, rise)).with_sign_of(x)


@expansion(math.AcoshOp)
def acosh(x: Lanes) -> Lanes:
    """With ``t = x - 1``: ``log1p(t + root(2 * t + t**2))`` from 0.5 on, NaN below 0."""
    t = x - 1.0
    near = t < 0.5
    twice = t + t
    root = near.choose(twice, fma(t, t, twice)).root()
    small = fma(root * t, polynomial(t, ACOSH), root)
    return near.choose(small, _log_of_sum(x, t + root))


@expansion(math.AtanhOp)
def atanh(x: Lanes) -> Lanes:
    """Half of ``log1p(2 * x / (1 - x))`` from 0.5 on; NaN above 1."""
    size = x.magnitude()
    squared = x * x
    small = fma(size * squared, polynomial(squared, ATANH), size)
    large = log1p((size + size) / (1.0 - size)) * 0.5
    return (size < 0.5).choose(small, large).with_sign_of(x)
