"""The Levinson-Durbin recursion for a Toeplitz system."""

import numpy as np

from programs.libraries import jnp, lax


def durbin(r):
    y = np.empty_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


def inputs(tiny):
    n = 13 if tiny else 1000
    return (0.3 / n * np.random.default_rng(0).random(n),)


def loops(r):
    n = r.shape[0]
    y = np.empty_like(r)
    z = np.empty_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, n):
        beta *= 1.0 - alpha * alpha
        s = r[k]
        for i in range(k):
            s += r[k - i - 1] * y[i]
        alpha = -s / beta
        for i in range(k):
            z[i] = y[i] + alpha * y[k - i - 1]
        for i in range(k):
            y[i] = z[i]
        y[k] = alpha
    return y


def port(r):
    n = r.shape[0]
    at = jnp.arange(n)

    def step(k, state):
        y, alpha, beta = state
        beta = beta * (1.0 - alpha * alpha)
        flipped = jnp.where(at < k, y[jnp.maximum(k - 1 - at, 0)], 0.0)
        alpha = -(r[k] + jnp.dot(r, flipped)) / beta
        return (y + alpha * flipped).at[k].set(alpha), alpha, beta

    y = jnp.zeros_like(r).at[0].set(-r[0])
    return lax.fori_loop(1, n, step, (y, -r[0], 1.0))[0]
