"""The Jacobi method on a line, which alternates between two arrays."""

import numpy as np

from programs.libraries import lax, prange


def jacobi_1d(steps, A, B):
    for _ in range(steps):
        B[1:-1] = 0.33333 * (A[:-2] + A[1:-1] + A[2:])
        A[1:-1] = 0.33333 * (B[:-2] + B[1:-1] + B[2:])


def inputs(tiny):
    n, steps = (14, 10) if tiny else (20000, 200)
    rng = np.random.default_rng(0)
    return steps, rng.random(n), rng.random(n)


def loops(steps, A, B):
    n = A.shape[0]
    for _ in range(steps):
        for i in prange(1, n - 1):
            B[i] = 0.33333 * (A[i - 1] + A[i] + A[i + 1])
        for i in prange(1, n - 1):
            A[i] = 0.33333 * (B[i - 1] + B[i] + B[i + 1])


def port(steps, A, B):
    def step(_, AB):
        A, B = AB
        B = B.at[1:-1].set(0.33333 * (A[:-2] + A[1:-1] + A[2:]))
        A = A.at[1:-1].set(0.33333 * (B[:-2] + B[1:-1] + B[2:]))
        return A, B

    return lax.fori_loop(0, steps, step, (A, B))
