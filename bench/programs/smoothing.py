"""Double exponential smoothing (Holt's method) of several series."""

import numpy as np

from programs.libraries import jnp, lax


def smoothing(x, alpha, beta):
    n = x.shape[0]
    fitted = np.zeros_like(x)
    level = x[0]
    trend = x[1] - x[0]
    fitted[0] = level
    for t in range(1, n):
        before = level
        level = alpha * x[t] + (1 - alpha) * (level + trend)
        trend = beta * (level - before) + (1 - beta) * trend
        fitted[t] = level + trend
    return fitted


def inputs(tiny):
    n = 15 if tiny else 4000
    return np.random.default_rng(0).random((n, 8)), 0.3, 0.1


def loops(x, alpha, beta):
    n, m = x.shape
    fitted = np.zeros_like(x)
    for k in range(m):
        level = x[0, k]
        trend = x[1, k] - x[0, k]
        fitted[0, k] = level
        for t in range(1, n):
            before = level
            level = alpha * x[t, k] + (1 - alpha) * (level + trend)
            trend = beta * (level - before) + (1 - beta) * trend
            fitted[t, k] = level + trend
    return fitted


def port(x, alpha, beta):
    def step(state, row):
        level, trend = state
        new = alpha * row + (1 - alpha) * (level + trend)
        trend = beta * (new - level) + (1 - beta) * trend
        return (new, trend), new + trend

    rest = lax.scan(step, (x[0], x[1] - x[0]), x[1:])[1]
    return jnp.concatenate([x[:1], rest])
