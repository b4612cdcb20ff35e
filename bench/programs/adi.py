"""The alternating direction implicit method: steps implicit along columns, then along rows."""

import numpy as np

from programs.libraries import jnp, lax, prange


def adi(steps, u):
    n = u.shape[0]
    v = np.zeros_like(u)
    p = np.zeros_like(u)
    q = np.zeros_like(u)
    d = 1.0 / n
    b1, b2 = 2.0 * (1.0 / steps) / (d * d), (1.0 / steps) / (d * d)
    a, b = -b1 / 2.0, 1.0 + b1
    c, dd, e, f = -b1 / 2.0, -b2 / 2.0, 1.0 + b2, -b2 / 2.0
    for _ in range(steps):
        v[0, 1:-1] = 1.0
        p[1:-1, 0] = 0.0
        q[1:-1, 0] = v[0, 1:-1]
        for j in range(1, n - 1):
            p[1:-1, j] = -c / (a * p[1:-1, j - 1] + b)
            q[1:-1, j] = (
                -dd * u[j, :-2] + (1.0 + 2.0 * dd) * u[j, 1:-1] - f * u[j, 2:] - a * q[1:-1, j - 1]
            ) / (a * p[1:-1, j - 1] + b)
        v[-1, 1:-1] = 1.0
        for j in range(n - 2, 0, -1):
            v[j, 1:-1] = p[1:-1, j] * v[j + 1, 1:-1] + q[1:-1, j]
        u[1:-1, 0] = 1.0
        p[1:-1, 0] = 0.0
        q[1:-1, 0] = u[1:-1, 0]
        for j in range(1, n - 1):
            p[1:-1, j] = -f / (dd * p[1:-1, j - 1] + e)
            q[1:-1, j] = (
                -a * v[:-2, j] + (1.0 + 2.0 * a) * v[1:-1, j] - c * v[2:, j] - dd * q[1:-1, j - 1]
            ) / (dd * p[1:-1, j - 1] + e)
        u[1:-1, -1] = 1.0
        for j in range(n - 2, 0, -1):
            u[1:-1, j] = p[1:-1, j] * u[1:-1, j + 1] + q[1:-1, j]


def inputs(tiny):
    n, steps = (12, 3) if tiny else (200, 20)
    return steps, np.random.default_rng(0).random((n, n))


def loops(steps, u):
    n = u.shape[0]
    v = np.zeros_like(u)
    p = np.zeros_like(u)
    q = np.zeros_like(u)
    d = 1.0 / n
    b1, b2 = 2.0 * (1.0 / steps) / (d * d), (1.0 / steps) / (d * d)
    a, b = -b1 / 2.0, 1.0 + b1
    c, dd, e, f = -b1 / 2.0, -b2 / 2.0, 1.0 + b2, -b2 / 2.0
    for _ in range(steps):
        for i in prange(1, n - 1):
            v[0, i] = 1.0
            p[i, 0] = 0.0
            q[i, 0] = 1.0
            for j in range(1, n - 1):
                below = a * p[i, j - 1] + b
                known = -dd * u[j, i - 1] + (1.0 + 2.0 * dd) * u[j, i] - f * u[j, i + 1]
                p[i, j] = -c / below
                q[i, j] = (known - a * q[i, j - 1]) / below
            v[n - 1, i] = 1.0
            for j in range(n - 2, 0, -1):
                v[j, i] = p[i, j] * v[j + 1, i] + q[i, j]
        for i in prange(1, n - 1):
            u[i, 0] = 1.0
            p[i, 0] = 0.0
            q[i, 0] = 1.0
            for j in range(1, n - 1):
                below = dd * p[i, j - 1] + e
                known = -a * v[i - 1, j] + (1.0 + 2.0 * a) * v[i, j] - c * v[i + 1, j]
                p[i, j] = -f / below
                q[i, j] = (known - dd * q[i, j - 1]) / below
            u[i, n - 1] = 1.0
            for j in range(n - 2, 0, -1):
                u[i, j] = p[i, j] * u[i, j + 1] + q[i, j]


def port(steps, u):
    n = u.shape[0]
    d = 1.0 / n
    b1, b2 = 2.0 * (1.0 / steps) / (d * d), (1.0 / steps) / (d * d)
    a, b = -b1 / 2.0, 1.0 + b1
    c, dd, e, f = -b1 / 2.0, -b2 / 2.0, 1.0 + b2, -b2 / 2.0
    ones, zeros = jnp.ones(n - 2), jnp.zeros(n - 2)

    def solve(rows, low, mid, high):
        def down(pq, row):
            below = low * pq[0] + mid
            now = -high / below, (row - low * pq[1]) / below
            return now, now

        def up(after, pq):
            now = pq[0] * after + pq[1]
            return now, now

        _, pq = lax.scan(down, (zeros, ones), rows)
        return lax.scan(up, ones, pq, reverse=True)[1]

    def step(_, uv):
        u, v = uv
        rows = -dd * u[1:-1, :-2] + (1.0 + 2.0 * dd) * u[1:-1, 1:-1] - f * u[1:-1, 2:]
        v = v.at[0, 1:-1].set(1.0).at[-1, 1:-1].set(1.0)
        v = v.at[1:-1, 1:-1].set(solve(rows, a, b, c))
        rows = (-a * v[:-2, 1:-1] + (1.0 + 2.0 * a) * v[1:-1, 1:-1] - c * v[2:, 1:-1]).T
        u = u.at[1:-1, 0].set(1.0).at[1:-1, -1].set(1.0)
        return u.at[1:-1, 1:-1].set(solve(rows, dd, e, f).T), v

    return lax.fori_loop(0, steps, step, (u, jnp.zeros_like(u)))[0]
