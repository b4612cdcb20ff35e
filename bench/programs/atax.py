"""The product of a matrix's transpose with the product of the matrix and a vector."""

import numpy as np

from programs.libraries import prange


def atax(A, x):
    return (A @ x) @ A


def inputs(tiny):
    n, m = (11, 12) if tiny else (1300, 1500)
    rng = np.random.default_rng(0)
    return rng.random((n, m)), rng.random(m)


def loops(A, x):
    n, m = A.shape
    t = np.empty(n)
    y = np.zeros(m)
    for i in prange(n):
        s = 0.0
        for j in range(m):
            s += A[i, j] * x[j]
        t[i] = s
    for i in range(n):
        for j in range(m):
            y[j] += t[i] * A[i, j]
    return y


def port(A, x):
    return (A @ x) @ A
