"""A symmetric rank-2k update: the lower triangle of a sum of two products."""

import numpy as np

from programs.libraries import jnp, prange


def syr2k(alpha, beta, C, A, B):
    for i in range(A.shape[0]):
        C[i, : i + 1] *= beta
        for k in range(A.shape[1]):
            C[i, : i + 1] += A[: i + 1, k] * alpha * B[i, k] + B[: i + 1, k] * alpha * A[i, k]


def inputs(tiny):
    n, m = (12, 10) if tiny else (100, 70)
    rng = np.random.default_rng(0)
    return 1.5, 1.2, rng.random((n, n)), rng.random((n, m)), rng.random((n, m))


def loops(alpha, beta, C, A, B):
    n, m = A.shape
    for i in prange(n):
        for j in range(i + 1):
            s = 0.0
            for k in range(m):
                s += A[j, k] * B[i, k] + B[j, k] * A[i, k]
            C[i, j] = C[i, j] * beta + alpha * s


def port(alpha, beta, C, A, B):
    both = A @ B.T
    return jnp.where(jnp.tri(C.shape[0], dtype=bool), beta * C + alpha * (both + both.T), C)
