"""The knapsack problem: the best value for every capacity, by dynamic programming."""

import numpy as np

from programs.libraries import jnp, lax


def knapsack(weights, values, capacity):
    best = np.zeros(capacity + 1)
    for i in range(len(weights)):
        w = weights[i]
        for c in range(capacity, w - 1, -1):
            if best[c - w] + values[i] > best[c]:
                best[c] = best[c - w] + values[i]
    return best[capacity]


STATIC = ("capacity",)


def inputs(tiny):
    n, capacity = (10, 30) if tiny else (80, 1000)
    rng = np.random.default_rng(0)
    return rng.integers(1, capacity // 3, n), rng.random(n), capacity


def port(weights, values, capacity):
    at = jnp.arange(capacity + 1)

    def item(best, x):
        w, value = x
        taken = jnp.where(at >= w, best[jnp.maximum(at - w, 0)] + value, 0.0)
        return jnp.maximum(best, taken), None

    return lax.scan(item, jnp.zeros(capacity + 1), (weights, values))[0][capacity]
