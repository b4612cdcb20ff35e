"""The electric and magnetic field of a plane, by finite differences in time (FDTD)."""

import numpy as np

from programs.libraries import lax, prange


def fdtd_2d(steps, ex, ey, hz, fict):
    for t in range(steps):
        ey[0, :] = fict[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


def inputs(tiny):
    n, m, steps = (11, 12, 10) if tiny else (250, 300, 40)
    rng = np.random.default_rng(0)
    return steps, rng.random((n, m)), rng.random((n, m)), rng.random((n, m)), rng.random(steps)


def loops(steps, ex, ey, hz, fict):
    n, m = hz.shape
    for t in range(steps):
        for j in range(m):
            ey[0, j] = fict[t]
        for i in prange(1, n):
            for j in range(m):
                ey[i, j] -= 0.5 * (hz[i, j] - hz[i - 1, j])
        for i in prange(n):
            for j in range(1, m):
                ex[i, j] -= 0.5 * (hz[i, j] - hz[i, j - 1])
        for i in prange(n - 1):
            for j in range(m - 1):
                hz[i, j] -= 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])


def port(steps, ex, ey, hz, fict):
    def step(t, fields):
        ex, ey, hz = fields
        ey = ey.at[0, :].set(fict[t])
        ey = ey.at[1:, :].add(-0.5 * (hz[1:, :] - hz[:-1, :]))
        ex = ex.at[:, 1:].add(-0.5 * (hz[:, 1:] - hz[:, :-1]))
        curl = ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]
        return ex, ey, hz.at[:-1, :-1].add(-0.7 * curl)

    return lax.fori_loop(0, steps, step, (ex, ey, hz))
