"""The product of a symmetric matrix, stored as its lower triangle, and another matrix."""

import numpy as np

from programs.libraries import jnp, prange


def symm(alpha, beta, C, A, B):
    C *= beta
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            C[:i, j] += alpha * B[i, j] * A[i, :i]
            temp2 = B[:i, j] @ A[i, :i]
            C[i, j] += alpha * B[i, j] * A[i, i] + alpha * temp2


def inputs(tiny):
    n, m = (12, 10) if tiny else (100, 80)
    rng = np.random.default_rng(0)
    return 1.5, 1.2, rng.random((n, m)), rng.random((n, n)), rng.random((n, m))


def loops(alpha, beta, C, A, B):
    n, m = C.shape
    for j in prange(m):
        for i in range(n):
            s = 0.0
            for k in range(i):
                C[k, j] += alpha * B[i, j] * A[i, k]
                s += B[k, j] * A[i, k]
            C[i, j] = beta * C[i, j] + alpha * B[i, j] * A[i, i] + alpha * s


def port(alpha, beta, C, A, B):
    lower = jnp.tril(A, -1)
    return beta * C + alpha * ((lower + lower.T) @ B + jnp.diag(A)[:, None] * B)
