"""The shortest paths between all pairs of nodes."""

import numpy as np

from programs.libraries import jnp, lax, prange


def floyd_warshall(path):
    for k in range(path.shape[0]):
        path[:] = np.minimum(path, path[:, k][:, np.newaxis] + path[k])


def inputs(tiny):
    n = 12 if tiny else 240
    return (np.random.default_rng(0).integers(1, 1000, (n, n)),)


def loops(path):
    n = path.shape[0]
    for k in range(n):
        for i in prange(n):
            for j in range(n):
                path[i, j] = min(path[i, j], path[i, k] + path[k, j])


def port(path):
    def through(k, path):
        return jnp.minimum(path, path[:, k, None] + path[k])

    return lax.fori_loop(0, path.shape[0], through, path)
