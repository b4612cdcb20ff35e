"""Vertical advection: tridiagonal systems along columns of a grid, by the Thomas algorithm."""

import numpy as np

from programs.libraries import lax, prange


def vadv(a, b, c, d):
    depth = a.shape[2]
    cp = np.zeros_like(c)
    dp = np.zeros_like(d)
    x = np.zeros_like(d)
    cp[:, :, 0] = c[:, :, 0] / b[:, :, 0]
    dp[:, :, 0] = d[:, :, 0] / b[:, :, 0]
    for k in range(1, depth):
        below = 1.0 / (b[:, :, k] - a[:, :, k] * cp[:, :, k - 1])
        cp[:, :, k] = c[:, :, k] * below
        dp[:, :, k] = (d[:, :, k] - a[:, :, k] * dp[:, :, k - 1]) * below
    x[:, :, depth - 1] = dp[:, :, depth - 1]
    for k in range(depth - 2, -1, -1):
        x[:, :, k] = dp[:, :, k] - cp[:, :, k] * x[:, :, k + 1]
    return x


def inputs(tiny):
    n, m, depth = (4, 5, 12) if tiny else (64, 64, 48)
    rng = np.random.default_rng(0)
    a, b, c, d = rng.random((4, n, m, depth))
    return a, b + 3.0, c, d


def loops(a, b, c, d):
    n, m, depth = a.shape
    x = np.zeros_like(d)
    for i in prange(n):
        cp = np.empty(depth)
        for j in range(m):
            cp[0] = c[i, j, 0] / b[i, j, 0]
            x[i, j, 0] = d[i, j, 0] / b[i, j, 0]
            for k in range(1, depth):
                below = 1.0 / (b[i, j, k] - a[i, j, k] * cp[k - 1])
                cp[k] = c[i, j, k] * below
                x[i, j, k] = (d[i, j, k] - a[i, j, k] * x[i, j, k - 1]) * below
            for k in range(depth - 2, -1, -1):
                x[i, j, k] -= cp[k] * x[i, j, k + 1]
    return x


def port(a, b, c, d):
    def down(state, x):
        cp, dp = state
        a, b, c, d = x
        below = 1.0 / (b - a * cp)
        now = c * below, (d - a * dp) * below
        return now, now

    def up(after, x):
        now = x[1] - x[0] * after
        return now, now

    a, b, c, d = (x.transpose(2, 0, 1) for x in (a, b, c, d))
    zero = 0 * a[0]
    both = lax.scan(down, (zero, zero), (a, b, c, d))[1]
    return lax.scan(up, zero, both, reverse=True)[1].transpose(1, 2, 0)
