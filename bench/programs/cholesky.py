"""The Cholesky factorisation in place, row by row."""

import numpy as np

from programs.libraries import jnp, lax, prange


def cholesky(A):
    n = A.shape[0]
    A[0, 0] = np.sqrt(A[0, 0])
    for i in range(1, n):
        for j in range(i):
            A[i, j] -= np.dot(A[i, :j], A[j, :j])
            A[i, j] /= A[j, j]
        A[i, i] -= np.dot(A[i, :i], A[i, :i])
        A[i, i] = np.sqrt(A[i, i])


def inputs(tiny):
    n = 12 if tiny else 200
    x = np.random.default_rng(0).random((n, n))
    return (x @ x.T + n * np.eye(n),)


def loops(A):
    n = A.shape[0]
    for j in range(n):
        s = A[j, j]
        for k in range(j):
            s -= A[j, k] * A[j, k]
        A[j, j] = np.sqrt(s)
        for i in prange(j + 1, n):
            s = A[i, j]
            for k in range(j):
                s -= A[i, k] * A[j, k]
            A[i, j] = s / A[j, j]


def port(A):
    at = jnp.arange(A.shape[0])

    def column(j, A):
        row = jnp.where(at < j, A[j], 0.0)
        new = A[:, j] - A @ row
        pivot = jnp.sqrt(new[j])
        new = jnp.where(at == j, pivot, new / pivot)
        return A.at[:, j].set(jnp.where(at >= j, new, A[:, j]))

    return lax.fori_loop(0, A.shape[0], column, A)
