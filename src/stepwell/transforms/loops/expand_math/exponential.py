"""exp, exp2, expm1 and the functions built on them: tanh, sinh, cosh.

``exp(x) = 2**n * exp(r)`` with ``n`` the integer nearest to ``x / ln 2``, so that ``abs(r)`` is at
most ``ln(2) / 2``, and ``exp(r)`` a polynomial. Where a vector of 16 f32 is a register ``n`` counts
sixteenths, whose powers of two are looked up, and the polynomial is half as long. Coefficients are
minimax fits, rounded to f32 one after the other; those of f64 are longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import math

from stepwell.transforms.loops.expand_math.lanes import (
    DOUBLE,
    Lanes,
    expansion,
    expansion_f64,
    fma,
    looked_up,
    maximum,
    minimum,
    nearest,
    polynomial,
    power_of_two,
    rounded,
    scaled,
)

LN2 = 0.6931472
EXP = (0.49999994, 0.16666521, 0.041668266, 0.008368673, 0.0013820718)
EXP2 = (0.6931472, 0.2402265, 0.05550405, 0.009618087, 0.0013337963, 0.00015452117, 1.4324095e-05)
SIXTEENTHS = tuple(2.0 ** (k / 16) for k in range(16))
EXP_OF_LITTLE = (0.5000163, 0.16667008)
"""(exp(r) - 1 - r) / r**2, up to ln(2) / 32"""
EXP2_OF_LITTLE = (0.6931472, 0.24023433, 0.055505738)
"""(2**r - 1) / r, up to 1/32"""
SINH = (0.16666667, 0.0083333105, 0.00019842894, 2.7822302e-06)
"""(sinh(x) / x - 1) / x**2, in x**2, up to 1"""


@dataclass(frozen=True)
class Fit:
    """The constants of the formulas for one float format."""

    log2_e: float
    ln2: tuple[float, float]
    """The logarithm of 2, and its rounding error."""
    exp: tuple[float, ...]
    """(exp(r) - 1 - r) / r**2, up to ln(2) / 2"""
    expm1: tuple[float, ...]
    """The same, fitted to the relative error of exp(r) - 1."""
    exp2: tuple[float, ...]
    """(2**r - 1) / r, up to 1/2"""
    tanh: tuple[float, ...]
    """(tanh(x) / x - 1) / x**2, in x**2, up to 0.625"""
    least: float
    """The x below which exp underflows to 0, ..."""
    least_power: float
    """... the same of 2**x, ..."""
    least_less_one: float
    """... and the x below which exp(x) - 1 rounds to -1."""
    most: float
    most_power: float
    """The bounds above, beyond which the results are infinite."""
    one: float
    """Above half of this, tanh is 1."""


_SINGLE = Fit(
    log2_e=1.442695,
    ln2=(LN2, -1.9046542e-09),
    exp=EXP,
    expm1=(0.5, 0.16666666, 0.041666493, 0.008333544, 0.0013932324, 0.00019763318),
    exp2=EXP2,
    tanh=(-0.3333333, 0.13333221, -0.053948186, 0.021706985, -0.0081903655, 0.0021531167),
    least=-104.0,
    least_power=-151.0,
    least_less_one=-18.0,
    most=89.0,
    most_power=129.0,
    one=40.0,
)
_EXP_F64 = (
    *(0.5, 0.1666666666666667, 0.04166666666666667, 0.008333333333326136, 0.0013888888888883748),
    *(0.00019841269874820627, 2.4801587325547743e-05, 2.7557255400206422e-06),
    *(2.75572736431103e-07, 2.5105217004720745e-08, 2.0914686968086876e-09),
)
_DOUBLE = Fit(
    log2_e=1.4426950408889634,
    ln2=(0.6931471805599453, 2.3190468138462996e-17),
    exp=_EXP_F64,
    expm1=_EXP_F64,
    exp2=(
        *(0.6931471805599453, 0.24022650695910072, 0.055504108664821625, 0.00961812910762848),
        *(0.001333355814640647, 0.00015403530393370734, 1.5252733841556773e-05),
        *(1.3215486808705563e-06, 1.0178057087733941e-07, 7.0548973041554995e-09),
        *(4.4558179083360645e-10, 2.5729324177362305e-11),
    ),
    tanh=(
        *(-0.3333333333333333, 0.13333333333333042, -0.05396825396789699, 0.021869488519008305),
        *(-0.008863235103240878, 0.0035921217511549622, -0.0014557754120478055),
        *(0.0005896606577757043, -0.0002375906496055562, 9.257116129556769e-05),
        *(-3.12011014257974e-05, 6.485163482793113e-06),
    ),
    least=-746.0,
    least_power=-1076.0,
    least_less_one=-38.0,
    most=710.0,
    most_power=1025.0,
    one=80.0,
)


def _fit(x: Lanes) -> Fit:
    return _DOUBLE if x.body.format is DOUBLE else _SINGLE


def clamped(x: Lanes, low: float, high: float) -> Lanes:
    """Return ``x`` clamped to a range; NaN stays."""
    return minimum(maximum(x, low), high)


def reduced(x: Lanes) -> tuple[Lanes, Lanes]:
    """Return ``n`` and ``r`` with ``x = n * ln(2) + r``, for ``abs(x)`` up to a few hundreds."""
    fit = _fit(x)
    n = nearest(x, fit.log2_e)
    r = fma(n, -fit.ln2[0], x)
    return n, fma(n, -fit.ln2[1], r).named("r")


def exp_of_reduced(r: Lanes) -> Lanes:
    """Return exp(r) for ``abs(r) <= ln(2) / 2``."""
    return polynomial(r, (1.0, 1.0, *_fit(r).exp))


def is_looked_up(x: Lanes) -> bool:
    """Whether powers of two are looked up."""
    return x.body.tables and x.body.format is not DOUBLE


def reduced_to_little(x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """Return ``n`` in whole sixteenths and ``r``, and an integer whose lowest bits count them.

    ``x = n * ln(2) + r``.
    """
    fit, magic = _fit(x), x.body.format.magic / 16
    shifted = fma(x, fit.log2_e, magic)
    n = shifted - magic
    r = fma(n, -fit.ln2[0], x)
    return n, fma(n, -fit.ln2[1], r).named("r"), shifted.bits()


def of_little(r: Lanes, power: Lanes, coefficients: Sequence[float]) -> Lanes:
    """Return ``power`` times a polynomial in ``r`` with constant term 1."""
    return fma(power * r, polynomial(r, coefficients), power)


def usual_exp(x: Lanes) -> Lanes:
    """Return exp(x) where the result is a normal number."""
    if not is_looked_up(x):
        n, r = reduced(x)
        return exp_of_reduced(r) * power_of_two(n)
    _, r, bits = reduced_to_little(x)
    power = looked_up(x.body.table(SIXTEENTHS), bits)
    power = (power.bits() + ((bits & -16) << 19)).number()
    return of_little(r, power, (1.0, *EXP_OF_LITTLE))


@expansion(math.ExpOp)
@expansion_f64(math.ExpOp)
def exp(x: Lanes) -> Lanes:
    """Return exp(x): 0 below -103.97, infinity above 88.72, subnormal results rounded once.

    In f64 the bounds are -745.14 and 709.79. Where one instruction scales by any power, to 0 or
    infinity, ``x`` is not clamped, and ``r`` is kept from affecting the result there.
    """
    fit, call = _fit(x), x.body.call
    if not is_looked_up(x):
        n, r = reduced(clamped(x, fit.least, fit.most))
        return scaled(exp_of_reduced(r), n)
    assert call is not None
    x = call("bounded", lambda x: clamped(x, fit.least, fit.most), (x,))
    n, r, bits = reduced_to_little(x)
    r = call("tamed", lambda r: r, (r,))
    power = looked_up(x.body.table(SIXTEENTHS), bits)
    return scaled(of_little(r, power, (1.0, *EXP_OF_LITTLE)), n)


@expansion(math.Exp2Op)
@expansion_f64(math.Exp2Op)
def exp2(x: Lanes) -> Lanes:
    """Return 2**x; exact where ``x`` is an integer."""
    fit = _fit(x)
    x = clamped(x, fit.least_power, fit.most_power)
    if is_looked_up(x):
        magic = x.body.format.magic / 16
        shifted = x + magic
        n, power = shifted - magic, looked_up(x.body.table(SIXTEENTHS), shifted.bits())
        return scaled(of_little(x - n, power, EXP2_OF_LITTLE), n)
    n, _ = rounded(x)
    return scaled(exp2_of_fraction(x - n), n)


def exp2_of_fraction(r: Lanes) -> Lanes:
    """Return 2**r for ``abs(r) <= 1/2``."""
    return fma(r, polynomial(r, _fit(r).exp2), 1.0)


@expansion(math.ExpM1Op)
@expansion_f64(math.ExpM1Op)
def expm1(x: Lanes) -> Lanes:
    """Return ``2**n * (exp(r) - 1) + (2**n - 1)``, at half the scale to avoid overflow."""
    fit = _fit(x)
    n, r = reduced(clamped(x, fit.least_less_one, fit.most))
    small = fma(r * r, polynomial(r, fit.expm1), r)
    half = power_of_two(n - 1.0)
    result = fma(half, small, half - 0.5)
    return x.equals(0.0).choose(x, result + result)


def half_exp(x: Lanes) -> Lanes:
    """Return exp(x) / 2 of an f32 ``0 <= x``, infinite only where the half is."""
    n, r = reduced(minimum(x, 91.0))
    return scaled(exp_of_reduced(r), n - 1.0)


@expansion(math.TanhOp)
@expansion_f64(math.TanhOp)
def tanh(x: Lanes) -> Lanes:
    """Return a polynomial up to 0.625, ``1 - 2 / (exp(2 * x) + 1)`` above."""
    fit = _fit(x)
    size = x.magnitude()
    squared = x * x
    small = fma(size * squared, polynomial(squared, fit.tanh), size)
    large = 1.0 - 2.0 / (usual_exp(minimum(size + size, fit.one)) + 1.0)
    return (size < 0.625).choose(small, large).with_sign_of(x)


@expansion(math.SinhOp)
def sinh(x: Lanes) -> Lanes:
    """Return a polynomial up to 1, half the difference of exponentials above."""
    size = x.magnitude()
    squared = x * x
    small = fma(size * squared, polynomial(squared, SINH), size)
    half = half_exp(size)
    return (size < 1.0).choose(small, half - 0.25 / half).with_sign_of(x)


@expansion(math.CoshOp)
def cosh(x: Lanes) -> Lanes:
    """Return half the sum of exponentials."""
    half = half_exp(x.magnitude())
    return half + 0.25 / half
