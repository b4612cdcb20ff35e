"""The length of the longest common subsequence of two strings, with two rows of the table."""

import numpy as np

from programs.libraries import jnp, lax


def lcs(a, b):
    above = np.zeros(len(b) + 1, dtype=np.int64)
    row = np.zeros(len(b) + 1, dtype=np.int64)
    for i in range(len(a)):
        for j in range(len(b)):
            if a[i] == b[j]:
                row[j + 1] = above[j] + 1
            elif above[j + 1] >= row[j]:
                row[j + 1] = above[j + 1]
            else:
                row[j + 1] = row[j]
        above[:] = row
    return above[-1]


def inputs(tiny):
    n, m = (12, 11) if tiny else (350, 320)
    rng = np.random.default_rng(0)
    return rng.integers(0, 4, n), rng.integers(0, 4, m)


def port(a, b):
    def row(above, letter):
        known = jnp.where(letter == b, above[:-1] + 1, above[1:])

        def cell(left, x):
            new = jnp.maximum(left, x)
            return new, new

        return jnp.concatenate([jnp.zeros(1, int), lax.scan(cell, 0, known)[1]]), None

    return lax.scan(row, jnp.zeros(b.shape[0] + 1, int), a)[0][-1]
