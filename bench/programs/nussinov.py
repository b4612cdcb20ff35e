"""The Nussinov algorithm: the most base pairs of an RNA strand, by dynamic programming."""

import numpy as np

from programs.libraries import jnp, lax


def nussinov(seq, table):
    n = seq.shape[0]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            if j - 1 >= 0:
                table[i, j] = max(table[i, j], table[i, j - 1])
            if i + 1 < n:
                table[i, j] = max(table[i, j], table[i + 1, j])
            if j - 1 >= 0 and i + 1 < n:
                if i < j - 1:
                    pair = 1 if seq[i] + seq[j] == 3 else 0
                    table[i, j] = max(table[i, j], table[i + 1, j - 1] + pair)
                else:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])


def inputs(tiny):
    n = 12 if tiny else 70
    return np.random.default_rng(0).integers(0, 4, n), np.zeros((n, n), np.int64)


def port(seq, table):
    n = seq.shape[0]
    at = jnp.arange(n)

    def cell(t, ij):
        i, j = ij
        best = jnp.maximum(t[i, j], jnp.maximum(t[i, j - 1], t[i + 1, j]))
        pair = jnp.where((i < j - 1) & (seq[i] + seq[j] == 3), 1, 0)
        best = jnp.maximum(best, t[i + 1, j - 1] + pair)
        halves = t[i] + jnp.roll(t[:, j], -1)
        halves = jnp.where((at > i) & (at < j), halves, 0)
        return t.at[i, j].set(jnp.maximum(best, halves.max())), None

    ii, jj = np.triu_indices(n, 1)
    order = np.lexsort((jj, -ii))
    return lax.scan(cell, table, (ii[order], jj[order]))[0]
