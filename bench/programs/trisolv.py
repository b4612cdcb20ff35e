"""Forward substitution: solve a lower triangular system."""

import numpy as np

from programs.libraries import jax


def trisolv(L, x, b):
    for i in range(L.shape[0]):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]


def inputs(tiny):
    n = 12 if tiny else 1500
    rng = np.random.default_rng(0)
    return np.tril(rng.random((n, n))) / n + np.eye(n), np.zeros(n), rng.random(n)


def loops(L, x, b):
    for i in range(L.shape[0]):
        s = b[i]
        for j in range(i):
            s -= L[i, j] * x[j]
        x[i] = s / L[i, i]


def port(L, x, b):
    return jax.scipy.linalg.solve_triangular(L, b, lower=True)
