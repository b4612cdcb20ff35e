"""The flow in a channel, periodic along x, until it is steady."""

import numpy as np

from programs.libraries import jnp, lax


def channel_flow(nit, u, v, dt, dx, dy, p, F, tol):
    udiff = 1.0
    stepcount = 0
    while udiff > tol:
        un = u.copy()
        vn = v.copy()
        for _ in range(nit):
            pn = p.copy()
            p[1:-1, 1:-1] = 0.25 * (
                pn[1:-1, 2:] + pn[1:-1, :-2] + pn[2:, 1:-1] + pn[:-2, 1:-1]
            ) - 0.25 * dx * dy / dt * (
                (un[1:-1, 2:] - un[1:-1, :-2]) / (2 * dx)
                + (vn[2:, 1:-1] - vn[:-2, 1:-1]) / (2 * dy)
            )
            p[1:-1, -1] = 0.25 * (pn[1:-1, 0] + pn[1:-1, -2] + pn[2:, -1] + pn[:-2, -1])
            p[1:-1, 0] = 0.25 * (pn[1:-1, 1] + pn[1:-1, -1] + pn[2:, 0] + pn[:-2, 0])
            p[-1, :] = p[-2, :]
            p[0, :] = p[1, :]
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (un[1:-1, 1:-1] - un[1:-1, :-2])
            - vn[1:-1, 1:-1] * dt / dy * (un[1:-1, 1:-1] - un[:-2, 1:-1])
            - dt / (2 * dx) * (p[1:-1, 2:] - p[1:-1, :-2])
            + 0.1 * dt / dx**2 * (un[1:-1, 2:] - 2 * un[1:-1, 1:-1] + un[1:-1, :-2])
            + 0.1 * dt / dy**2 * (un[2:, 1:-1] - 2 * un[1:-1, 1:-1] + un[:-2, 1:-1])
            + F * dt
        )
        v[1:-1, 1:-1] = (
            vn[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (vn[1:-1, 1:-1] - vn[1:-1, :-2])
            - vn[1:-1, 1:-1] * dt / dy * (vn[1:-1, 1:-1] - vn[:-2, 1:-1])
            - dt / (2 * dy) * (p[2:, 1:-1] - p[:-2, 1:-1])
        )
        u[1:-1, 0] = u[1:-1, 1]
        u[1:-1, -1] = u[1:-1, -2]
        u[0, :] = 0
        u[-1, :] = 0
        v[0, :] = 0
        v[-1, :] = 0
        udiff = (np.sum(u) - np.sum(un)) / np.sum(u)
        stepcount += 1
    return stepcount


def inputs(tiny):
    n, nit, tol = (11, 9, 0.1) if tiny else (61, 20, 0.012)
    zero = np.zeros((n, n))
    d = 2 / (n - 1)
    return nit, zero, zero.copy(), 0.3 * d * d, d, d, zero + np.arange(n) * 1e-3, 1.0, tol


def port(nit, u, v, dt, dx, dy, p, F, tol):
    C, W, E = np.s_[1:-1, 1:-1], np.s_[1:-1, :-2], np.s_[1:-1, 2:]
    S, N = np.s_[:-2, 1:-1], np.s_[2:, 1:-1]

    def pressure(p, b):
        new = p.at[C].set(0.25 * (p[E] + p[W] + p[N] + p[S]) - b)
        right = 0.25 * (p[1:-1, 0] + p[1:-1, -2] + p[2:, -1] + p[:-2, -1])
        left = 0.25 * (p[1:-1, 1] + p[1:-1, -1] + p[2:, 0] + p[:-2, 0])
        new = new.at[1:-1, -1].set(right).at[1:-1, 0].set(left)
        new = new.at[-1, :].set(new[-2, :])
        return new.at[0, :].set(new[1, :])

    def step(state):
        u, v, p, _, count = state
        b = 0.25 * dx * dy / dt * ((u[E] - u[W]) / (2 * dx) + (v[N] - v[S]) / (2 * dy))
        p = lax.fori_loop(0, nit, lambda _, p: pressure(p, b), p)
        a = u[C] - u[C] * dt / dx * (u[C] - u[W]) - v[C] * dt / dy * (u[C] - u[S])
        a += 0.1 * dt / dx**2 * (u[E] - 2 * u[C] + u[W])
        a += 0.1 * dt / dy**2 * (u[N] - 2 * u[C] + u[S])
        a += F * dt - dt / (2 * dx) * (p[E] - p[W])
        c = v[C] - u[C] * dt / dx * (v[C] - v[W]) - v[C] * dt / dy * (v[C] - v[S])
        c -= dt / (2 * dy) * (p[N] - p[S])
        new = u.at[C].set(a)
        new = new.at[1:-1, 0].set(new[1:-1, 1]).at[1:-1, -1].set(new[1:-1, -2])
        new = new.at[0, :].set(0).at[-1, :].set(0)
        v = v.at[C].set(c).at[0, :].set(0).at[-1, :].set(0)
        return new, v, p, (jnp.sum(new) - jnp.sum(u)) / jnp.sum(new), count + 1

    state = u, v, p, 1.0, 0
    u, v, p, _, count = lax.while_loop(lambda s: s[3] > tol, step, state)
    return u, v, p, count
