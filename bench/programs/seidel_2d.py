"""The Gauss-Seidel method on a plane: a point is updated from neighbours updated before it."""

import numpy as np

from programs.libraries import jnp, lax


def seidel_2d(steps, A):
    n = A.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                A[i, j] = (
                    A[i - 1, j - 1] + A[i - 1, j] + A[i - 1, j + 1]
                    + A[i, j - 1] + A[i, j] + A[i, j + 1]
                    + A[i + 1, j - 1] + A[i + 1, j] + A[i + 1, j + 1]
                ) / 9.0  # fmt: skip


def inputs(tiny):
    n, steps = (12, 3) if tiny else (120, 5)
    return steps, np.random.default_rng(0).random((n, n))


def port(steps, A):
    def row(i, A):
        known = A[i - 1, :-2] + A[i - 1, 1:-1] + A[i - 1, 2:] + A[i, 1:-1] + A[i, 2:]
        known += A[i + 1, :-2] + A[i + 1, 1:-1] + A[i + 1, 2:]

        def point(left, rest):
            new = (left + rest) / 9.0
            return new, new

        return A.at[i, 1:-1].set(lax.scan(point, A[i, 0], known)[1])

    def step(_, A):
        return lax.fori_loop(1, A.shape[0] - 1, row, A)

    return lax.fori_loop(0, steps, step, jnp.asarray(A))
