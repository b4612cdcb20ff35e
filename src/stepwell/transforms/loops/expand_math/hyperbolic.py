"""asinh, acosh and atanh.

Near 0 odd polynomials, elsewhere log1p of a number that is accurate where it is small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import math

from stepwell.transforms.loops.expand_math.double import log1p as log1p_f64
from stepwell.transforms.loops.expand_math.lanes import (
    DOUBLE,
    Lanes,
    expansion,
    expansion_f64,
    fma,
    polynomial,
    square_root,
)
from stepwell.transforms.loops.expand_math.logarithm import log1p as log1p_f32

LN2 = 0.6931471805599453


@dataclass(frozen=True)
class Fit:
    """The constants of the formulas for one float format."""

    log1p: Callable[[Lanes], Lanes]
    vast: float
    """Above it the root of ``x**2 + 1`` or of ``x**2 - 1`` is ``x``; squares are still finite."""
    asinh: tuple[float, ...]
    """(asinh(x) / x - 1) / x**2, in x**2, up to 0.5"""
    atanh: tuple[float, ...]
    """(atanh(x) / x - 1) / x**2, in x**2, up to 0.5"""
    acosh: tuple[float, ...]
    """(acosh(1 + t) / root(2 * t) - 1) / t, up to 0.5"""


_SINGLE = Fit(
    log1p_f32,
    1e9,
    (-0.16666666, 0.07499907, -0.044616096, 0.03003357, -0.020049585, 0.00925663),
    (0.33333302, 0.20002455, 0.14223745, 0.11816762, 0.05158965, 0.1763992),
    (-0.08333333, 0.018749768, -0.005577012, 0.0018770981, -0.00062654953, 0.00014463485),
)
_DOUBLE = Fit(
    log1p_f64,
    1e18,
    (
        *(-0.16666666666666607, 0.07499999999983846, -0.0446428571274035, 0.030381943700015738),
        *(-0.022372137989263935, 0.017352381684079616, -0.013960182648533138),
        *(0.011512672304217245, -0.009532846932931051, 0.007462182021136108),
        *(-0.00474232874586457, 0.0017146419191670242),
    ),
    (
        *(0.3333333333333328, 0.20000000000018361, 0.1428571428342325, 0.11111111255768705),
        *(0.09090903678874312, 0.07692438493570336, 0.06664516979612722),
        *(0.05907110982769239, 0.05060380857952003, 0.05944224077290824),
        *(-0.004900628994668195, 0.17394002541281933, -0.1947700913551687, 0.24031949910401917),
    ),
    (
        *(-0.08333333333333304, 0.018749999999959615, -0.005580357140925437),
        *(0.0018988714812509836, -0.000699129312164498, 0.000271130963813744),
        *(-0.00010906392694166514, 4.497137618834861e-05, -1.861884166588096e-05),
        *(7.2872871300157305e-06, -2.3155902079416847e-06, 4.1861374979663677e-07),
    ),
)


def _fit(x: Lanes) -> Fit:
    return _DOUBLE if x.body.format is DOUBLE else _SINGLE


def _log_of_sum(x: Lanes, rise: Lanes) -> Lanes:
    """Return ``log(1 + rise)``, or ``log(2 * x)`` where ``x`` is very large."""
    fit = _fit(x)
    vast = x > fit.vast
    return fit.log1p(vast.choose(x, rise)) + vast.choose(x.other(LN2), x.other(0.0))


@expansion(math.AsinhOp)
@expansion_f64(math.AsinhOp)
def asinh(x: Lanes) -> Lanes:
    """Return ``log1p(x + x**2 / (1 + root(1 + x**2)))`` above 0.5."""
    size = x.magnitude()
    squared = x * x
    small = fma(size * squared, polynomial(squared, _fit(x).asinh), size)
    rise = size + squared / (square_root(fma(x, x, 1.0)) + 1.0)
    return (size < 0.5).choose(small, _log_of_sum(size, rise)).with_sign_of(x)


@expansion(math.AcoshOp)
@expansion_f64(math.AcoshOp)
def acosh(x: Lanes) -> Lanes:
    """Return ``log1p(t + root(2 * t + t**2))`` with ``t = x - 1``, from 0.5 on."""
    t = x - 1.0
    near = t < 0.5
    twice = t + t
    root = square_root(near.choose(twice, fma(t, t, twice)))
    small = fma(root * t, polynomial(t, _fit(x).acosh), root)
    return near.choose(small, _log_of_sum(x, t + root))


@expansion(math.AtanhOp)
@expansion_f64(math.AtanhOp)
def atanh(x: Lanes) -> Lanes:
    """Return half of ``log1p(2 * x / (1 - x))`` from 0.5 on; NaN above 1."""
    size = x.magnitude()
    squared = x * x
    small = fma(size * squared, polynomial(squared, _fit(x).atanh), size)
    large = _fit(x).log1p((size + size) / (1.0 - size)) * 0.5
    return (size < 0.5).choose(small, large).with_sign_of(x)
