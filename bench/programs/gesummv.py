"""The sum of the products of two matrices with a vector."""

import numpy as np

from programs.libraries import prange


def gesummv(alpha, beta, A, B, x):
    return alpha * A @ x + beta * B @ x


def inputs(tiny):
    n = 12 if tiny else 1200
    rng = np.random.default_rng(0)
    return 1.5, 1.2, rng.random((n, n)), rng.random((n, n)), rng.random(n)


def loops(alpha, beta, A, B, x):
    n = x.shape[0]
    y = np.empty(n)
    for i in prange(n):
        s = 0.0
        t = 0.0
        for j in range(n):
            s += A[i, j] * x[j]
            t += B[i, j] * x[j]
        y[i] = alpha * s + beta * t
    return y


def port(alpha, beta, A, B, x):
    return alpha * A @ x + beta * B @ x
