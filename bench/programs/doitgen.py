"""Multiply each row of a three-dimensional array by a matrix, in place."""

import numpy as np

from programs.libraries import prange


def doitgen(A, C4):
    for r in range(A.shape[0]):
        for q in range(A.shape[1]):
            A[r, q, :] = A[r, q, :] @ C4


def inputs(tiny):
    r, q, p = (10, 11, 5) if tiny else (40, 50, 60)
    rng = np.random.default_rng(0)
    return rng.random((r, q, p)), rng.random((p, p))


def loops(A, C4):
    nr, nq, np_ = A.shape
    for r in prange(nr):
        s = np.empty(np_)
        for q in range(nq):
            for p in range(np_):
                s[p] = 0.0
            for t in range(np_):
                for p in range(np_):
                    s[p] += A[r, q, t] * C4[t, p]
            for p in range(np_):
                A[r, q, p] = s[p]


def port(A, C4):
    return A @ C4
