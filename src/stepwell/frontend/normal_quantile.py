"""The inverse of the normal distribution function, by rational functions (Wichura 1988, AS 241)."""

from __future__ import annotations

from stepwell.frontend import elementwise as e
from stepwell.frontend.tensor import Tensor

CENTRE = (
    (
        *(3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3),
        *(1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4),
        *(3.3430575583588128105e4, 2.5090809287301226727e3),
    ),
    (
        *(1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3),
        *(2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4),
        5.2264952788528545610e3,
    ),
)
"""Numerator and denominator, in 0.180625 - q^2, for |q| = |p - 0.5| <= 0.425."""
SHOULDER = (
    (
        *(1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0),
        *(3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1),
        *(2.27238449892691845833e-2, 7.74545014278341407640e-4),
    ),
    (
        *(1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1),
        *(1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4),
        1.05075007164441684324e-9,
    ),
)
"""The same in r - 1.6, for r = sqrt(-log(min(p, 1 - p))) <= 5."""
TAIL = (
    (
        *(6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0),
        *(2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3),
        *(2.71155556874348757815e-5, 2.01033439929228813265e-7),
    ),
    (
        *(1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2),
        *(7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7),
        2.04426310338993978564e-15,
    ),
)
"""The same in r - 5, for larger r."""


def normal_quantile(p: Tensor) -> Tensor:
    """Return the quantile of the normal distribution at ``p``, with 0 < p < 1: f32 or f64.

    The error is within 1 part in 10^16 in f64, that of the rational functions; in f32 of rounding.
    """
    q = e.subtract(p, 0.5)
    inside = e.less_equal(e.abs(q), 0.425)
    centre = e.multiply(q, _ratio(CENTRE, e.subtract(0.180625, e.multiply(q, q))))
    nearer = e.minimum(p, e.subtract(1.0, p))
    r = e.sqrt(e.negative(e.log(nearer)))
    outer = _ratio(SHOULDER, e.subtract(r, 1.6))
    if p.kind.bytes == 8:  # in f32 only subnormal p are that small
        outer = e.where(e.less_equal(r, 5.0), outer, _ratio(TAIL, e.subtract(r, 5.0)))
    outer = e.where(e.less(q, 0.0), e.negative(outer), outer)
    return e.where(inside, centre, outer)


def _ratio(factors: tuple[tuple[float, ...], tuple[float, ...]], x: Tensor) -> Tensor:
    return e.divide(_polynomial(factors[0], x), _polynomial(factors[1], x))


def _polynomial(factors: tuple[float, ...], x: Tensor) -> Tensor:
    found = e.add(e.multiply(x, factors[-1]), factors[-2])
    for factor in reversed(factors[:-2]):
        found = e.add(e.multiply(found, x), factor)
    return found
