"""Two vectors to which the products with a matrix and with its transpose are added."""

import numpy as np

from programs.libraries import prange


def mvt(x1, x2, y1, y2, A):
    x1 += A @ y1
    x2 += y2 @ A


def inputs(tiny):
    n = 12 if tiny else 1400
    rng = np.random.default_rng(0)
    return *rng.random((4, n)), rng.random((n, n))


def loops(x1, x2, y1, y2, A):
    n = A.shape[0]
    for i in prange(n):
        for j in range(n):
            x1[i] += A[i, j] * y1[j]
    for i in range(n):
        for j in range(n):
            x2[j] += A[i, j] * y2[i]


def port(x1, x2, y1, y2, A):
    return x1 + A @ y1, x2 + y2 @ A
