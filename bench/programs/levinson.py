"""The Levinson recursion: linear prediction coefficients from autocorrelations."""

import numpy as np

from programs.libraries import jnp, lax


def levinson(r, order):
    a = np.zeros(order + 1)
    a[0] = 1.0
    error = r[0]
    for i in range(1, order + 1):
        acc = r[i]
        for j in range(1, i):
            acc += a[j] * r[i - j]
        k = -acc / error
        for j in range(1, i // 2 + 1):
            below = a[j] + k * a[i - j]
            a[i - j] += k * a[j]
            a[j] = below
        a[i] = k
        error *= 1.0 - k * k
    return a, error


STATIC = ("order",)


def inputs(tiny):
    n, order = (20, 10) if tiny else (300, 200)
    x = np.random.default_rng(0).normal(size=20 * n)
    return np.array([x[: len(x) - k] @ x[k:] for k in range(n)]), order


def port(r, order):
    at = jnp.arange(order + 1)

    def step(i, state):
        a, error = state
        mirrored = jnp.where(at <= i, jnp.roll(jnp.flip(a), i - order), 0.0)
        acc = jnp.sum(jnp.where(at < i, a * r[jnp.abs(i - at)], 0.0))
        k = -acc / error
        return a + k * mirrored, error * (1.0 - k * k)

    return lax.fori_loop(1, order + 1, step, (jnp.zeros(order + 1).at[0].set(1.0), r[0]))
