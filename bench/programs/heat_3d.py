"""The heat equation in three dimensions, by finite differences."""

import numpy as np

from programs.libraries import lax, prange


def heat_3d(steps, A, B):
    for _ in range(steps):
        B[1:-1, 1:-1, 1:-1] = (
            0.125 * (A[2:, 1:-1, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[:-2, 1:-1, 1:-1])
            + 0.125 * (A[1:-1, 2:, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[1:-1, :-2, 1:-1])
            + 0.125 * (A[1:-1, 1:-1, 2:] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[1:-1, 1:-1, :-2])
            + A[1:-1, 1:-1, 1:-1]
        )
        A[1:-1, 1:-1, 1:-1] = (
            0.125 * (B[2:, 1:-1, 1:-1] - 2.0 * B[1:-1, 1:-1, 1:-1] + B[:-2, 1:-1, 1:-1])
            + 0.125 * (B[1:-1, 2:, 1:-1] - 2.0 * B[1:-1, 1:-1, 1:-1] + B[1:-1, :-2, 1:-1])
            + 0.125 * (B[1:-1, 1:-1, 2:] - 2.0 * B[1:-1, 1:-1, 1:-1] + B[1:-1, 1:-1, :-2])
            + B[1:-1, 1:-1, 1:-1]
        )


def inputs(tiny):
    n, steps = (7, 10) if tiny else (50, 20)
    rng = np.random.default_rng(0)
    return steps, rng.random((n, n, n)), rng.random((n, n, n))


def loops(steps, A, B):
    n = A.shape[0]
    for _ in range(steps):
        for i in prange(1, n - 1):
            for j in range(1, n - 1):
                for k in range(1, n - 1):
                    c = A[i, j, k]
                    B[i, j, k] = (
                        0.125 * (A[i + 1, j, k] - 2.0 * c + A[i - 1, j, k])
                        + 0.125 * (A[i, j + 1, k] - 2.0 * c + A[i, j - 1, k])
                        + 0.125 * (A[i, j, k + 1] - 2.0 * c + A[i, j, k - 1])
                        + c
                    )
        for i in prange(1, n - 1):
            for j in range(1, n - 1):
                for k in range(1, n - 1):
                    c = B[i, j, k]
                    A[i, j, k] = (
                        0.125 * (B[i + 1, j, k] - 2.0 * c + B[i - 1, j, k])
                        + 0.125 * (B[i, j + 1, k] - 2.0 * c + B[i, j - 1, k])
                        + 0.125 * (B[i, j, k + 1] - 2.0 * c + B[i, j, k - 1])
                        + c
                    )


def port(steps, A, B):
    def sweep(X):
        c = X[1:-1, 1:-1, 1:-1]
        return (
            0.125 * (X[2:, 1:-1, 1:-1] - 2.0 * c + X[:-2, 1:-1, 1:-1])
            + 0.125 * (X[1:-1, 2:, 1:-1] - 2.0 * c + X[1:-1, :-2, 1:-1])
            + 0.125 * (X[1:-1, 1:-1, 2:] - 2.0 * c + X[1:-1, 1:-1, :-2])
            + c
        )

    def step(_, AB):
        A, B = AB
        B = B.at[1:-1, 1:-1, 1:-1].set(sweep(A))
        A = A.at[1:-1, 1:-1, 1:-1].set(sweep(B))
        return A, B

    return lax.fori_loop(0, steps, step, (A, B))
