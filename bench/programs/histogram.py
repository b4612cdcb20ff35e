"""A weighted histogram, element by element."""

import numpy as np

from programs.libraries import jnp


def histogram(x, weights, low, high, counts):
    bins = counts.shape[0]
    width = (high - low) / bins
    for i in range(x.shape[0]):
        b = int((x[i] - low) / width)
        if 0 <= b < bins:
            counts[b] += weights[i]


def inputs(tiny):
    n, bins = (30, 5) if tiny else (100000, 64)
    rng = np.random.default_rng(0)
    return rng.normal(size=n), rng.random(n), -2.0, 2.0, np.zeros(bins)


def port(x, weights, low, high, counts):
    bins = counts.shape[0]
    b = jnp.trunc((x - low) / ((high - low) / bins)).astype(jnp.int64)
    good = (b >= 0) & (b < bins)
    return counts.at[jnp.where(good, b, bins)].add(weights, mode="drop")
