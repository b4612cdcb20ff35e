"""PageRank by power iteration, until it converges."""

import numpy as np

from programs.libraries import jnp, lax


def pagerank(links, damping, tol):
    n = links.shape[0]
    out = links.sum(axis=0)
    out[out == 0] = 1.0
    M = links / out
    rank = np.ones(n) / n
    err = 1.0
    while err > tol:
        new = damping * (M @ rank) + (1 - damping) / n
        err = np.abs(new - rank).sum()
        rank = new
    return rank


def inputs(tiny):
    n = 12 if tiny else 700
    return (np.random.default_rng(0).random((n, n)) < 0.05).astype(np.float64), 0.85, 1e-10


def port(links, damping, tol):
    n = links.shape[0]
    out = links.sum(axis=0)
    M = links / jnp.where(out == 0, 1.0, out)

    def step(state):
        new = damping * (M @ state[0]) + (1 - damping) / n
        return new, jnp.abs(new - state[0]).sum()

    return lax.while_loop(lambda s: s[1] > tol, step, (jnp.ones(n) / n, 1.0))[0]
