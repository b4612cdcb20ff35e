"""A symmetric rank-k update: the lower triangle of a product with its own transpose."""

import numpy as np

from programs.libraries import jnp, prange


def syrk(alpha, beta, C, A):
    for i in range(A.shape[0]):
        C[i, : i + 1] *= beta
        for k in range(A.shape[1]):
            C[i, : i + 1] += alpha * A[i, k] * A[: i + 1, k]


def inputs(tiny):
    n, m = (12, 10) if tiny else (120, 80)
    rng = np.random.default_rng(0)
    return 1.5, 1.2, rng.random((n, n)), rng.random((n, m))


def loops(alpha, beta, C, A):
    n, m = A.shape
    for i in prange(n):
        for j in range(i + 1):
            s = 0.0
            for k in range(m):
                s += A[i, k] * A[j, k]
            C[i, j] = C[i, j] * beta + alpha * s


def port(alpha, beta, C, A):
    return jnp.where(jnp.tri(C.shape[0], dtype=bool), beta * C + alpha * (A @ A.T), C)
