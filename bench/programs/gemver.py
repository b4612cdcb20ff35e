"""Two rank-one updates of a matrix, and products of the result with vectors."""

import numpy as np

from programs.libraries import prange


def gemver(alpha, beta, A, u1, v1, u2, v2, w, x, y, z):
    A += np.outer(u1, v1) + np.outer(u2, v2)
    x += beta * y @ A + z
    w += alpha * A @ x


def inputs(tiny):
    n = 12 if tiny else 800
    rng = np.random.default_rng(0)
    return 1.5, 1.2, rng.random((n, n)), *(rng.random((8, n)))


def loops(alpha, beta, A, u1, v1, u2, v2, w, x, y, z):
    n = A.shape[0]
    for i in prange(n):
        for j in range(n):
            A[i, j] += u1[i] * v1[j] + u2[i] * v2[j]
    for i in range(n):
        for j in range(n):
            x[j] += beta * y[i] * A[i, j]
    for i in range(n):
        x[i] += z[i]
    for i in prange(n):
        s = 0.0
        for j in range(n):
            s += A[i, j] * x[j]
        w[i] += alpha * s


def port(alpha, beta, A, u1, v1, u2, v2, w, x, y, z):
    A = A + u1[:, None] * v1 + u2[:, None] * v2
    x = x + beta * y @ A + z
    return A, w + alpha * A @ x, x
