"""The flow in a cavity with a moving lid: the Navier-Stokes equations by finite differences."""

import numpy as np

from programs.libraries import jnp, lax


def cavity_flow(nt, nit, u, v, dt, dx, dy, p, rho, nu):
    b = np.zeros_like(p)
    for _ in range(nt):
        un = u.copy()
        vn = v.copy()
        b[1:-1, 1:-1] = rho * (
            (1 / dt)
            * ((u[1:-1, 2:] - u[1:-1, :-2]) / (2 * dx) + (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dy))
            - ((u[1:-1, 2:] - u[1:-1, :-2]) / (2 * dx)) ** 2
            - 2
            * ((u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * dy))
            * ((v[1:-1, 2:] - v[1:-1, :-2]) / (2 * dx))
            - ((v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dy)) ** 2
        )
        for _ in range(nit):
            pn = p.copy()
            p[1:-1, 1:-1] = (
                (pn[1:-1, 2:] + pn[1:-1, :-2]) * dy**2 + (pn[2:, 1:-1] + pn[:-2, 1:-1]) * dx**2
            ) / (2 * (dx**2 + dy**2)) - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * b[1:-1, 1:-1]
            p[:, -1] = p[:, -2]
            p[0, :] = p[1, :]
            p[:, 0] = p[:, 1]
            p[-1, :] = 0
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (un[1:-1, 1:-1] - un[1:-1, :-2])
            - vn[1:-1, 1:-1] * dt / dy * (un[1:-1, 1:-1] - un[:-2, 1:-1])
            - dt / (2 * rho * dx) * (p[1:-1, 2:] - p[1:-1, :-2])
            + nu * dt / dx**2 * (un[1:-1, 2:] - 2 * un[1:-1, 1:-1] + un[1:-1, :-2])
            + nu * dt / dy**2 * (un[2:, 1:-1] - 2 * un[1:-1, 1:-1] + un[:-2, 1:-1])
        )
        v[1:-1, 1:-1] = (
            vn[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (vn[1:-1, 1:-1] - vn[1:-1, :-2])
            - vn[1:-1, 1:-1] * dt / dy * (vn[1:-1, 1:-1] - vn[:-2, 1:-1])
            - dt / (2 * rho * dy) * (p[2:, 1:-1] - p[:-2, 1:-1])
            + nu * dt / dx**2 * (vn[1:-1, 2:] - 2 * vn[1:-1, 1:-1] + vn[1:-1, :-2])
            + nu * dt / dy**2 * (vn[2:, 1:-1] - 2 * vn[1:-1, 1:-1] + vn[:-2, 1:-1])
        )
        u[0, :] = 0
        u[:, 0] = 0
        u[:, -1] = 0
        u[-1, :] = 1
        v[0, :] = 0
        v[-1, :] = 0
        v[:, 0] = 0
        v[:, -1] = 0


def inputs(tiny):
    n, nt, nit = (12, 3, 4) if tiny else (101, 20, 30)
    zero = np.zeros((n, n))
    d = 2 / (n - 1)
    return nt, nit, zero, zero.copy(), 0.1 / n, d, d, zero.copy(), 1.0, 0.1


def port(nt, nit, u, v, dt, dx, dy, p, rho, nu):
    C, W, E = np.s_[1:-1, 1:-1], np.s_[1:-1, :-2], np.s_[1:-1, 2:]
    S, N = np.s_[:-2, 1:-1], np.s_[2:, 1:-1]

    def pressure(p, b):
        new = ((p[E] + p[W]) * dy**2 + (p[N] + p[S]) * dx**2) / (2 * (dx**2 + dy**2))
        p = p.at[C].set(new - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * b)
        p = p.at[:, -1].set(p[:, -2])
        p = p.at[0, :].set(p[1, :])
        p = p.at[:, 0].set(p[:, 1])
        return p.at[-1, :].set(0)

    def moved(x, u, v):
        return (
            x[C]
            - u[C] * dt / dx * (x[C] - x[W])
            - v[C] * dt / dy * (x[C] - x[S])
            + nu * dt / dx**2 * (x[E] - 2 * x[C] + x[W])
            + nu * dt / dy**2 * (x[N] - 2 * x[C] + x[S])
        )

    def step(_, state):
        u, v, p = state
        ux, uy = (u[E] - u[W]) / (2 * dx), (u[N] - u[S]) / (2 * dy)
        vx, vy = (v[E] - v[W]) / (2 * dx), (v[N] - v[S]) / (2 * dy)
        b = rho * (1 / dt * (ux + vy) - ux**2 - 2 * (uy * vx) - vy**2)
        p = lax.fori_loop(0, nit, lambda _, p: pressure(p, b), p)
        a = moved(u, u, v) - dt / (2 * rho * dx) * (p[E] - p[W])
        c = moved(v, u, v) - dt / (2 * rho * dy) * (p[N] - p[S])
        return jnp.zeros_like(u).at[C].set(a).at[-1, :].set(1), jnp.zeros_like(v).at[C].set(c), p

    return lax.fori_loop(0, nt, step, (u, v, p))
