"""The LU factorisation in place, without pivoting."""

import numpy as np

from programs.libraries import jnp, lax, prange


def lu(A):
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, n):
            A[i, j] -= A[i, :i] @ A[:i, j]


def inputs(tiny):
    n = 12 if tiny else 150
    return (np.random.default_rng(0).random((n, n)) + n * np.eye(n),)


def loops(A):
    n = A.shape[0]
    for k in range(n):
        for i in prange(k + 1, n):
            A[i, k] /= A[k, k]
            for j in range(k + 1, n):
                A[i, j] -= A[i, k] * A[k, j]


def port(A):
    at = jnp.arange(A.shape[0])

    def step(k, A):
        below = jnp.where(at > k, A[:, k] / A[k, k], 0.0)
        right = jnp.where(at > k, A[k], 0.0)
        A = A.at[:, k].set(jnp.where(at > k, below, A[:, k]))
        return A - below[:, None] * right

    return lax.fori_loop(0, A.shape[0], step, A)
