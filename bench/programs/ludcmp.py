"""Solve a linear system by LU factorisation, forward and backward substitution."""

import numpy as np

from programs.libraries import jax, jnp, lax


def ludcmp(A, b):
    n = A.shape[0]
    x = np.zeros_like(b)
    y = np.zeros_like(b)
    for i in range(n):
        for j in range(i):
            w = A[i, j] - A[i, :j] @ A[:j, j]
            A[i, j] = w / A[j, j]
        for j in range(i, n):
            A[i, j] = A[i, j] - A[i, :i] @ A[:i, j]
    for i in range(n):
        y[i] = b[i] - A[i, :i] @ y[:i]
    for i in range(n - 1, -1, -1):
        x[i] = (y[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x, y


def inputs(tiny):
    n = 12 if tiny else 120
    rng = np.random.default_rng(0)
    return rng.random((n, n)) + n * np.eye(n), rng.random(n)


def loops(A, b):
    n = A.shape[0]
    x = np.zeros_like(b)
    y = np.zeros_like(b)
    for k in range(n):
        for i in range(k + 1, n):
            A[i, k] /= A[k, k]
            for j in range(k + 1, n):
                A[i, j] -= A[i, k] * A[k, j]
    for i in range(n):
        s = b[i]
        for j in range(i):
            s -= A[i, j] * y[j]
        y[i] = s
    for i in range(n - 1, -1, -1):
        s = y[i]
        for j in range(i + 1, n):
            s -= A[i, j] * x[j]
        x[i] = s / A[i, i]
    return x, y


def port(A, b):
    at = jnp.arange(A.shape[0])

    def step(k, A):
        below = jnp.where(at > k, A[:, k] / A[k, k], 0.0)
        A = A.at[:, k].set(jnp.where(at > k, below, A[:, k]))
        return A - below[:, None] * jnp.where(at > k, A[k], 0.0)

    A = lax.fori_loop(0, A.shape[0], step, A)
    solve = jax.scipy.linalg.solve_triangular
    y = solve(A, b, lower=True, unit_diagonal=True)
    return A, solve(A, y), y
