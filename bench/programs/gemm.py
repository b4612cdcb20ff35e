"""A product of matrices that is added to a third."""

import numpy as np

from programs.libraries import prange


def gemm(alpha, beta, C, A, B):
    C[:] = alpha * A @ B + beta * C


def inputs(tiny):
    n, m, k = (5, 6, 7) if tiny else (300, 350, 400)
    rng = np.random.default_rng(0)
    return 1.5, 1.2, rng.random((n, m)), rng.random((n, k)), rng.random((k, m))


def loops(alpha, beta, C, A, B):
    n, m = C.shape
    for i in prange(n):
        for j in range(m):
            C[i, j] *= beta
        for k in range(A.shape[1]):
            a = alpha * A[i, k]
            for j in range(m):
                C[i, j] += a * B[k, j]


def port(alpha, beta, C, A, B):
    return alpha * A @ B + beta * C
