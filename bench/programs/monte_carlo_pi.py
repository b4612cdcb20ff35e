"""Pi from random points in a square: running estimates."""

import numpy as np

from programs.libraries import jnp


def monte_carlo_pi(x, y):
    inside = x * x + y * y <= 1.0
    estimates = 4.0 * np.cumsum(inside) / np.arange(1, len(x) + 1)
    return estimates[-1], np.mean((estimates - np.pi) ** 2)


def inputs(tiny):
    return tuple(np.random.default_rng(0).random((2, 30 if tiny else 500000)))


def loops(x, y):
    inside = 0
    error = 0.0
    estimate = 0.0
    for i in range(x.shape[0]):
        if x[i] * x[i] + y[i] * y[i] <= 1.0:
            inside += 1
        estimate = 4.0 * inside / (i + 1)
        error += (estimate - np.pi) ** 2
    return estimate, error / x.shape[0]


def port(x, y):
    inside = x * x + y * y <= 1.0
    estimates = 4.0 * jnp.cumsum(inside) / jnp.arange(1, x.shape[0] + 1)
    return estimates[-1], jnp.mean((estimates - jnp.pi) ** 2)
