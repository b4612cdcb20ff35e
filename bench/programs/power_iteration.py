"""The largest eigenvalue and its eigenvector, by power iteration."""

import numpy as np

from programs.libraries import jnp, lax


def power_iteration(A, steps):
    v = np.ones(A.shape[0])
    for _ in range(steps):
        w = A @ v
        v = w / np.sqrt(w @ w)
    return v @ A @ v, v


def inputs(tiny):
    n, steps = (12, 10) if tiny else (500, 50)
    x = np.random.default_rng(0).random((n, n))
    return x + x.T, steps


def loops(A, steps):
    n = A.shape[0]
    v = np.ones(n)
    w = np.empty(n)
    for _ in range(steps + 1):
        value = 0.0
        s = 0.0
        for i in range(n):
            t = 0.0
            for j in range(n):
                t += A[i, j] * v[j]
            w[i] = t
            s += t * t
            value += t * v[i]
        if _ < steps:
            for i in range(n):
                v[i] = w[i] / np.sqrt(s)
    return value, v


def port(A, steps):
    def step(_, v):
        w = A @ v
        return w / jnp.linalg.norm(w)

    v = lax.fori_loop(0, steps, step, jnp.ones(A.shape[0]))
    return v @ A @ v, v
