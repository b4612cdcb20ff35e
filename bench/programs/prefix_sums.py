"""A summed-area table: running sums along both axes, in place."""

import numpy as np

from programs.libraries import jnp


def prefix_sums(table):
    n, m = table.shape
    for i in range(1, n):
        table[i] += table[i - 1]
    for j in range(1, m):
        table[:, j] += table[:, j - 1]


def inputs(tiny):
    n, m = (12, 11) if tiny else (600, 500)
    return (np.random.default_rng(0).integers(-9, 10, (n, m)),)


def loops(table):
    n, m = table.shape
    for i in range(1, n):
        for j in range(m):
            table[i, j] += table[i - 1, j]
    for i in range(n):
        for j in range(1, m):
            table[i, j] += table[i, j - 1]


def port(table):
    return jnp.cumsum(jnp.cumsum(table, axis=0), axis=1)
