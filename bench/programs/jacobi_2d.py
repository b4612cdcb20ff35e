"""The Jacobi method on a plane, which alternates between two arrays."""

import numpy as np

from programs.libraries import lax, prange


def jacobi_2d(steps, A, B):
    for _ in range(steps):
        B[1:-1, 1:-1] = 0.2 * (
            A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1]
        )
        A[1:-1, 1:-1] = 0.2 * (
            B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1]
        )


def inputs(tiny):
    n, steps = (12, 10) if tiny else (300, 50)
    rng = np.random.default_rng(0)
    return steps, rng.random((n, n)), rng.random((n, n))


def loops(steps, A, B):
    n, m = A.shape
    for _ in range(steps):
        for i in prange(1, n - 1):
            for j in range(1, m - 1):
                B[i, j] = 0.2 * (A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j])
        for i in prange(1, n - 1):
            for j in range(1, m - 1):
                A[i, j] = 0.2 * (B[i, j] + B[i, j - 1] + B[i, j + 1] + B[i + 1, j] + B[i - 1, j])


def port(steps, A, B):
    def around(X):
        return 0.2 * (X[1:-1, 1:-1] + X[1:-1, :-2] + X[1:-1, 2:] + X[2:, 1:-1] + X[:-2, 1:-1])

    def step(_, AB):
        A, B = AB
        B = B.at[1:-1, 1:-1].set(around(A))
        A = A.at[1:-1, 1:-1].set(around(B))
        return A, B

    return lax.fori_loop(0, steps, step, (A, B))
