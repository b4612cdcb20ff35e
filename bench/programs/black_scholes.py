"""Option prices by the Black-Scholes formula, the normal distribution by a polynomial."""

import numpy as np

from programs.libraries import jnp, prange


def cnd(d):
    k = 1.0 / (1.0 + 0.2316419 * np.abs(d))
    poly = k * (
        0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
    )
    ret = 0.3989422804014327 * np.exp(-0.5 * d * d) * poly
    return np.where(d > 0, 1.0 - ret, ret)


def black_scholes(call, put, price, strike, years, riskfree, volatility):
    root = np.sqrt(years)
    d1 = (np.log(price / strike) + (riskfree + 0.5 * volatility**2) * years) / (volatility * root)
    d2 = d1 - volatility * root
    discounted = strike * np.exp(-riskfree * years)
    call[:] = price * cnd(d1) - discounted * cnd(d2)
    put[:] = discounted * (1.0 - cnd(d2)) - price * (1.0 - cnd(d1))


def inputs(tiny):
    n = 20 if tiny else 200000
    rng = np.random.default_rng(0)
    price, strike = 5 + 25 * rng.random(n), 1 + 99 * rng.random(n)
    return np.zeros(n), np.zeros(n), price, strike, 0.25 + 9.75 * rng.random(n), 0.02, 0.3


def loops(call, put, price, strike, years, riskfree, volatility):
    for i in prange(price.shape[0]):
        root = np.sqrt(years[i])
        drift = (riskfree + 0.5 * volatility**2) * years[i]
        d1 = (np.log(price[i] / strike[i]) + drift) / (volatility * root)
        d2 = d1 - volatility * root
        below = np.zeros(2)
        for m in range(2):
            d = d1 if m == 0 else d2
            k = 1.0 / (1.0 + 0.2316419 * abs(d))
            poly = -0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))
            ret = 0.3989422804014327 * np.exp(-0.5 * d * d) * k * (0.31938153 + k * poly)
            below[m] = 1.0 - ret if d > 0 else ret
        discounted = strike[i] * np.exp(-riskfree * years[i])
        call[i] = price[i] * below[0] - discounted * below[1]
        put[i] = discounted * (1.0 - below[1]) - price[i] * (1.0 - below[0])


def port(call, put, price, strike, years, riskfree, volatility):
    def cnd(d):
        k = 1.0 / (1.0 + 0.2316419 * jnp.abs(d))
        poly = -0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))
        ret = 0.3989422804014327 * jnp.exp(-0.5 * d * d) * k * (0.31938153 + k * poly)
        return jnp.where(d > 0, 1.0 - ret, ret)

    root = jnp.sqrt(years)
    d1 = (jnp.log(price / strike) + (riskfree + 0.5 * volatility**2) * years) / (volatility * root)
    d2 = d1 - volatility * root
    discounted = strike * jnp.exp(-riskfree * years)
    call = price * cnd(d1) - discounted * cnd(d2)
    return call, discounted * (1.0 - cnd(d2)) - price * (1.0 - cnd(d1))
