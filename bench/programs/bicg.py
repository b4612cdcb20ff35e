"""The two matrix-vector products of a step of BiCG: with the matrix and with its transpose."""

import numpy as np


def bicg(A, p, r):
    return r @ A, A @ p


def inputs(tiny):
    n, m = (11, 12) if tiny else (1300, 1500)
    rng = np.random.default_rng(0)
    return rng.random((n, m)), rng.random(m), rng.random(n)


def loops(A, p, r):
    n, m = A.shape
    s = np.zeros(m)
    q = np.zeros(n)
    for i in range(n):
        for j in range(m):
            s[j] += r[i] * A[i, j]
            q[i] += A[i, j] * p[j]
    return s, q


def port(A, p, r):
    return r @ A, A @ p
