"""tan, asin, acos, atan and atan2 on f64.

The formulas are those of f32 with longer polynomials, except that of the arc tangent: its range
reduction goes half as far, so that a single polynomial of thirteen terms suffices.
"""

from __future__ import annotations

from xdsl.dialects import math

from stepwell.transforms.loops.expand_math.double import HALF_PI, LIMIT, turned
from stepwell.transforms.loops.expand_math.lanes import (
    Lanes,
    expansion_f64,
    fma,
    polynomial,
    square_root,
)
from stepwell.transforms.loops.expand_math.trigonometric import where_reducible

PI, PI_REST = 3.141592653589793, 1.2246467991473532e-16

TAN = (
    *(0.3333333333333338, 0.13333333333325403, 0.05396825397284779, 0.021869488401295687),
    *(0.008863237884214501, 0.003592101334588113, 0.0014560419875394122),
    *(0.0005888837888277062, 0.00024367825546642326, 8.375497971220662e-05),
    *(6.684877523179644e-05, -2.5143110230545682e-05, 4.8211826353238444e-05),
    *(-2.4057177143291762e-05, 9.749418437571026e-06),
)
"""(tan(r) / r - 1) / r**2, in r**2, up to pi / 4"""
ASIN = (
    *(0.1666666666666676, 0.07499999999971095, 0.044642857174224136, 0.03038194272950777),
    *(0.022372214318213676, 0.017351624732641444, 0.013980662389073067),
    *(0.011400238094136402, 0.01077270078341017, 0.0037352343200085705),
    *(0.021636856974466507, -0.020898809490814328, 0.03256583927490458),
)
"""(asin(s) / s - 1) / s**2, in s**2, up to 0.5"""
ATAN = (
    *(-0.3333333333333331, 0.19999999999992635, -0.14285714284910192, 0.11111111066428682),
    *(-0.09090907615596884, 0.07692276188497078, -0.06666209084514126),
    *(0.05877695309127961, -0.05229417389451318, 0.04587304380953037),
    *(-0.037068883058935596, 0.02358740602442868, -0.008325065145661724),
)
"""(atan(t) / t - 1) / t**2, in t**2, up to 0.5"""


@expansion_f64(math.TanOp)
def tan(x: Lanes) -> Lanes:
    """Return ``tan(r)``, in odd quadrants ``-1 / tan(r)``."""

    def fast() -> Lanes:
        n, r, lost = turned(x)
        squared = r * r
        curved, cubed = polynomial(squared, TAN), r * squared
        value = fma(cubed, curved, r)
        rest = fma(lost, fma(value, value, 1.0), fma(cubed, curved, r - value))
        inverse = -1.0 / value
        inverse = fma(inverse, fma(inverse, rest, fma(inverse, value, 1.0)), inverse)
        value = (n & 1).equals(0).choose(value + rest, inverse)
        return x.equals(0.0).choose(x, value)

    return where_reducible(x, LIMIT, math.TanOp, fast)


def _asin_parts(size: Lanes) -> tuple[Lanes, Lanes, Lanes, Lanes]:
    """Return where ``size`` is above 1/2, and s, c and p with asin(s) = s + c * p.

    That is asin(size); above 1/2 it is half of ``pi / 2 - asin(size)``.
    """
    steep = size > 0.5
    squared = steep.choose(fma(size, -0.5, 0.5), size * size)
    s = steep.choose(square_root(squared), size)
    return steep, s, s * squared, polynomial(squared, ASIN)


@expansion_f64(math.AsinOp)
def asin(x: Lanes) -> Lanes:
    """Return asin(x); above 1 a NaN, from the root of a negative number."""
    steep, s, c, p = _asin_parts(x.magnitude())
    whole = fma(s, -2.0, HALF_PI[0])
    rest = fma(s, -2.0, HALF_PI[0] - whole) + HALF_PI[1]
    return steep.choose(whole + fma(c * -2.0, p, rest), fma(c, p, s)).with_sign_of(x)


@expansion_f64(math.AcosOp)
def acos(x: Lanes) -> Lanes:
    """Return ``pi/2 - asin(x)``, above 1/2 ``2 * asin(s)``; below 0 ``pi - acos(-x)``."""
    steep, s, c, p = _asin_parts(x.magnitude())
    flat = (HALF_PI[0] - s) + fma(-c, p, HALF_PI[1])
    t = steep.choose(fma(c, p, s) * 2.0, flat)
    return (x < 0.0).choose(PI - (t - PI_REST), t)


def _angle(height: Lanes, width: Lanes) -> Lanes:
    """Return atan(height / width) of non-negative numbers, except where both are 0.

    ``pi/4 + atan((height - width) / (height + width))`` where they are about as large,
    ``pi/2 - atan(width / height)`` where the first is much larger.
    """
    low, high = height < width * 0.5, height * 0.5 > width
    over = low.choose(height, high.choose(-width, height - width))
    under = low.choose(width, high.choose(height, height + width))
    over = height.equals(width).choose(0.0, over)
    t = over / under
    squared = t * t
    first = low.choose(0.0, high.choose(HALF_PI[0], t.other(HALF_PI[0] / 2)))
    rest = low.choose(0.0, high.choose(HALF_PI[1], t.other(HALF_PI[1] / 2)))
    return first + (t + fma(t * squared, polynomial(squared, ATAN), rest))


@expansion_f64(math.AtanOp)
def atan(x: Lanes) -> Lanes:
    """Return atan(x), an odd function."""
    size = x.magnitude()
    return _angle(size, size.other(1.0)).with_sign_of(x)


@expansion_f64(math.Atan2Op)
def atan2(y: Lanes, x: Lanes) -> Lanes:
    """Return the angle of the point (x, y); signed zeros and infinities as in C."""
    height, width = y.magnitude(), x.magnitude()
    vast = (height > 1e300) | (width > 1e300)
    tiny = (height < 1e-290) & (width < 1e-290)
    scale = vast.choose(2.0**-60, tiny.choose(2.0**60, y.other(1.0)))
    nothing = height.equals(0.0) & width.equals(0.0)
    t = _angle(height * scale, nothing.choose(1.0, width * scale))
    behind = x.bits() < 0
    t = behind.choose(PI - (t - PI_REST), t)
    t = x.compare("uno", y).choose(float("nan"), t)
    return t.with_sign_of(y)
