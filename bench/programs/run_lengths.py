"""The longest run of equal numbers: where it begins and how long it is."""

import numpy as np

from programs.libraries import jnp, lax


def run_lengths(x):
    best = 1
    where = 0
    start = 0
    for i in range(1, len(x)):
        if x[i] != x[i - 1]:
            start = i
        if i - start + 1 > best:
            best = i - start + 1
            where = start
    return best, where


def inputs(tiny):
    n = 30 if tiny else 60000
    return (np.random.default_rng(0).integers(0, 2, n),)


def port(x):
    n = x.shape[0]
    at = jnp.arange(n)
    new = jnp.concatenate([jnp.ones(1, bool), x[1:] != x[:-1]])
    start = lax.associative_scan(jnp.maximum, jnp.where(new, at, 0))
    length = at - start + 1
    end = jnp.argmax(length)
    return length[end], start[end]
