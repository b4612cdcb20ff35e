"""A formula of integer arrays: one is clipped and scaled, another added."""

import numpy as np

from programs.libraries import jnp, prange


def compute(array_1, array_2, a, b, c):
    return np.clip(array_1, 2, 10) * a + array_2 * b + c


def inputs(tiny):
    n, m = (12, 11) if tiny else (1000, 800)
    rng = np.random.default_rng(0)
    return rng.integers(0, 1000, (n, m)), rng.integers(0, 1000, (n, m)), 4, 3, 9


def loops(array_1, array_2, a, b, c):
    n, m = array_1.shape
    out = np.empty_like(array_1)
    for i in prange(n):
        for j in range(m):
            out[i, j] = min(max(array_1[i, j], 2), 10) * a + array_2[i, j] * b + c
    return out


def port(array_1, array_2, a, b, c):
    return jnp.clip(array_1, 2, 10) * a + array_2 * b + c
