"""The conjugate gradient method, until the residual is small."""

import numpy as np

from programs.libraries import jnp, lax


def conjugate_gradient(A, b, tol):
    x = np.zeros_like(b)
    r = b - A @ x
    p = r.copy()
    rs = r @ r
    for _ in range(b.shape[0]):
        Ap = A @ p
        alpha = rs / (p @ Ap)
        x += alpha * p
        r -= alpha * Ap
        new = r @ r
        if np.sqrt(new) < tol:
            break
        p = r + (new / rs) * p
        rs = new
    return x


def inputs(tiny):
    n = 12 if tiny else 600
    rng = np.random.default_rng(0)
    x = rng.random((n, n))
    return x @ x.T / n + np.eye(n), rng.random(n), 1e-12


ERROR = 1e-8


def loops(A, b, tol):
    n = b.shape[0]
    x = np.zeros(n)
    r = b.copy()
    p = r.copy()
    Ap = np.empty(n)
    rs = 0.0
    for i in range(n):
        rs += r[i] * r[i]
    for _ in range(n):
        d = 0.0
        for i in range(n):
            s = 0.0
            for j in range(n):
                s += A[i, j] * p[j]
            Ap[i] = s
            d += p[i] * s
        alpha = rs / d
        new = 0.0
        for i in range(n):
            x[i] += alpha * p[i]
            r[i] -= alpha * Ap[i]
            new += r[i] * r[i]
        if np.sqrt(new) < tol:
            break
        for i in range(n):
            p[i] = r[i] + (new / rs) * p[i]
        rs = new
    return x


def port(A, b, tol):
    def step(state):
        x, r, p, rs, k = state
        Ap = A @ p
        alpha = rs / (p @ Ap)
        r = r - alpha * Ap
        new = r @ r
        return x + alpha * p, r, r + (new / rs) * p, new, k + 1

    def goes_on(state):
        return (state[4] < b.shape[0]) & ((state[4] == 0) | (jnp.sqrt(state[3]) >= tol))

    return lax.while_loop(goes_on, step, (jnp.zeros_like(b), b, b, b @ b, 0))[0]
