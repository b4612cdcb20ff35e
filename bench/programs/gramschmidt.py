"""Gram-Schmidt orthogonalisation of the columns of a matrix."""

import numpy as np

from programs.libraries import jnp, lax


def gramschmidt(A):
    n = A.shape[1]
    Q = np.zeros_like(A)
    R = np.zeros((n, n))
    for k in range(n):
        nrm = np.dot(A[:, k], A[:, k])
        R[k, k] = np.sqrt(nrm)
        Q[:, k] = A[:, k] / R[k, k]
        for j in range(k + 1, n):
            R[k, j] = np.dot(Q[:, k], A[:, j])
            A[:, j] -= Q[:, k] * R[k, j]
    return Q, R


def inputs(tiny):
    m, n = (13, 11) if tiny else (150, 120)
    return (np.random.default_rng(0).random((m, n)) + np.eye(m, n),)


def loops(A):
    m, n = A.shape
    Q = np.zeros_like(A)
    R = np.zeros((n, n))
    for k in range(n):
        nrm = 0.0
        for i in range(m):
            nrm += A[i, k] * A[i, k]
        R[k, k] = np.sqrt(nrm)
        for i in range(m):
            Q[i, k] = A[i, k] / R[k, k]
        for i in range(m):
            for j in range(k + 1, n):
                R[k, j] += Q[i, k] * A[i, j]
        for i in range(m):
            for j in range(k + 1, n):
                A[i, j] -= Q[i, k] * R[k, j]
    return Q, R


def port(A):
    n = A.shape[1]
    at = jnp.arange(n)

    def column(k, state):
        A, Q, R = state
        length = jnp.sqrt(A[:, k] @ A[:, k])
        q = A[:, k] / length
        r = jnp.where(at > k, q @ A, 0.0)
        return A - q[:, None] * r, Q.at[:, k].set(q), R.at[k].set(r.at[k].set(length))

    return lax.fori_loop(0, n, column, (A, jnp.zeros_like(A), jnp.zeros((n, n))))
