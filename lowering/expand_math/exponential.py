"""exp, exp2, expm1 and what is made of them: tanh, sinh, cosh.

``exp(x) = 2**n * exp(r)`` with ``n`` the integer nearest to ``x / ln 2``, so that ``abs(r)`` is at
most ``ln(2) / 2``, and ``exp(r)`` a polynomial. Coefficients are minimax fits, rounded to f32 one
after the other.
"""

from __future__ import annotations

from xdsl.dialects import math

from stepwell.lowering.expand_math.lanes import (
    Lanes,
    expansion,
    fma,
    maximum,
    minimum,
    nearest,
    polynomial,
    power_of_two,
    rounded,
    scaled,
)

LOG2_E = 1.442695
LN2, LN2_REST = 0.6931472, -1.9046542e-09

EXP = (0.49999994, 0.16666521, 0.041668266, 0.008368673, 0.0013820718)
"""(exp(r) - 1 - r) / r**2"""
EXPM1 = (0.5, 0.16666666, 0.041666493, 0.008333544, 0.0013932324, 0.00019763318)
"""The same, fitted to the relative error of exp(r) - 1."""
EXP2 = (0.6931472, 0.2402265, 0.05550405, 0.009618087, 0.0013337963, 0.00015452117, 1.4324095e-05)
"""(2**r - 1) / r"""
TANH = (-0.3333333, 0.13333221, -0.053948186, 0.021706985, -0.0081903655, 0.0021531167)
"""(tanh(x) / x - 1) / x**2, in x**2, up to 0.625"""
SINH = (0.16666667, 0.0083333105, 0.00019842894, 2.7822302e-06)
"""(sinh(x) / x - 1) / x**2, in x**2, up to 1"""


def clamped(x: Lanes, low: float, high: float) -> Lanes:
    """Return ``x`` moved into a range; NaN stays."""
    return minimum(maximum(x, low), high)


def reduced(x: Lanes) -> tuple[Lanes, Lanes]:
    """Return ``n`` and ``r`` with ``x = n * ln(2) + r``, for ``abs(x)`` up to some hundreds."""
    n = nearest(x, LOG2_E)
    r = fma(n, -LN2, x)
    return n, fma(n, -LN2_REST, r).named("r")


def exp_of_reduced(r: Lanes) -> Lanes:
    """Return exp(r) for ``abs(r) <= ln(2) / 2``."""
    return polynomial(r, (1.0, 1.0, *EXP))


@expansion(math.ExpOp)
def exp(x: Lanes) -> Lanes:
    """0 below -103.97, infinity above 88.72, subnormal results between them rounded once."""
    n, r = reduced(clamped(x, -104.0, 89.0))
    return scaled(exp_of_reduced(r), n)


@expansion(math.Exp2Op)
def exp2(x: Lanes) -> Lanes:
    """Exact where ``x`` is an integer."""
    x = clamped(x, -151.0, 129.0)
    n, _ = rounded(x)
    r = x - n
    return scaled(fma(r, polynomial(r, EXP2), 1.0), n)


@expansion(math.ExpM1Op)
def expm1(x: Lanes) -> Lanes:
    """``2**n * (exp(r) - 1) + (2**n - 1)``, at half the scale so that 2**128 is met."""
    n, r = reduced(clamped(x, -18.0, 89.0))
    small = fma(r * r, polynomial(r, EXPM1), r)
    half = power_of_two(n - 1.0)
    result = fma(half, small, half - 0.5)
    return x.equals(0.0).choose(x, result + result)


def half_exp(x: Lanes) -> Lanes:
    """Return exp(x) / 2 for ``0 <= x``, infinity only where that half is."""
    n, r = reduced(minimum(x, 91.0))
    return scaled(exp_of_reduced(r), n - 1.0)


@expansion(math.TanhOp)
def tanh(x: Lanes) -> Lanes:
    """A polynomial up to 0.625, ``1 - 2 / (exp(2 * x) + 1)`` above."""
    size = x.magnitude()
    squared = x * x
    small = fma(size * squared, polynomial(squared, TANH), size)
    n, r = reduced(minimum(size + size, 40.0))
    large = 1.0 - 2.0 / (exp_of_reduced(r) * power_of_two(n) + 1.0)
    return (size < 0.625).choose(small, large).with_sign_of(x)


@expansion(math.SinhOp)
def sinh(x: Lanes) -> Lanes:
    """A polynomial up to 1, half the difference of exponentials above."""
    size = x.magnitude()
    squared = x * x
    small = fma(size * squared, polynomial(squared, SINH), size)
    half = half_exp(size)
    return (size < 1.0).choose(small, half - 0.25 / half).with_sign_of(x)


@expansion(math.CoshOp)
def cosh(x: Lanes) -> Lanes:
    """Half the sum of exponentials."""
    half = half_exp(x.magnitude())
    return half + 0.25 / half
