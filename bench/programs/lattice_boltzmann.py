"""The lattice Boltzmann method: flow past a cylinder, with nine velocities."""

import numpy as np

from programs.libraries import jnp, lax, prange


def lattice_boltzmann(F, cylinder, steps, tau):
    cx = np.array([0, 0, 1, 1, 1, 0, -1, -1, -1])
    cy = np.array([0, 1, 1, 0, -1, -1, -1, 0, 1])
    weights = np.array([4 / 9, 1 / 9, 1 / 36, 1 / 9, 1 / 36, 1 / 9, 1 / 36, 1 / 9, 1 / 36])
    back = [0, 5, 6, 7, 8, 1, 2, 3, 4]
    for _ in range(steps):
        for i in range(9):
            F[:, :, i] = np.roll(F[:, :, i], cx[i], axis=1)
            F[:, :, i] = np.roll(F[:, :, i], cy[i], axis=0)
        bounced = F[:, :, back]
        rho = np.sum(F, axis=2)
        ux = np.sum(F * cx, axis=2) / rho
        uy = np.sum(F * cy, axis=2) / rho
        Feq = np.zeros_like(F)
        for i in range(9):
            c = cx[i] * ux + cy[i] * uy
            Feq[:, :, i] = rho * weights[i] * (1 + 3 * c + 4.5 * c**2 - 1.5 * (ux**2 + uy**2))
        F += -(1.0 / tau) * (F - Feq)
        F[:] = np.where(cylinder[:, :, None], bounced, F)


def inputs(tiny):
    ny, nx, steps = (10, 14, 9) if tiny else (60, 160, 20)
    F = 1.0 + 0.01 * np.random.default_rng(0).normal(size=(ny, nx, 9))
    F[:, :, 3] += 2 * (1 + 0.2 * np.cos(2 * np.pi * np.arange(nx) / nx * 4))
    y, x = np.mgrid[:ny, :nx]
    return F, (x - nx / 4) ** 2 + (y - ny / 2) ** 2 < (ny / 4) ** 2, steps, 0.6


def loops(F, cylinder, steps, tau):
    cx = np.array([0, 0, 1, 1, 1, 0, -1, -1, -1])
    cy = np.array([0, 1, 1, 0, -1, -1, -1, 0, 1])
    weights = np.array([4 / 9, 1 / 9, 1 / 36, 1 / 9, 1 / 36, 1 / 9, 1 / 36, 1 / 9, 1 / 36])
    back = np.array([0, 5, 6, 7, 8, 1, 2, 3, 4])
    ny, nx, _ = F.shape
    G = np.empty_like(F)
    for _ in range(steps):
        for y in prange(ny):
            for x in range(nx):
                rho = ux = uy = 0.0
                for i in range(9):
                    f = F[(y - cy[i]) % ny, (x - cx[i]) % nx, i]
                    G[y, x, i] = f
                    rho += f
                    ux += f * cx[i]
                    uy += f * cy[i]
                ux /= rho
                uy /= rho
                for i in range(9):
                    c = cx[i] * ux + cy[i] * uy
                    feq = rho * weights[i] * (1 + 3 * c + 4.5 * c * c - 1.5 * (ux * ux + uy * uy))
                    if not cylinder[y, x]:
                        G[y, x, i] -= (1.0 / tau) * (G[y, x, i] - feq)
                if cylinder[y, x]:
                    for i in range(1, 5):
                        G[y, x, i], G[y, x, back[i]] = G[y, x, back[i]], G[y, x, i]
        F[:] = G


def port(F, cylinder, steps, tau):
    cx = np.array([0, 0, 1, 1, 1, 0, -1, -1, -1])
    cy = np.array([0, 1, 1, 0, -1, -1, -1, 0, 1])
    weights = np.array([4 / 9, 1 / 9, 1 / 36, 1 / 9, 1 / 36, 1 / 9, 1 / 36, 1 / 9, 1 / 36])
    back = np.array([0, 5, 6, 7, 8, 1, 2, 3, 4])

    def step(_, F):
        F = jnp.stack([jnp.roll(F[:, :, i], (cy[i], cx[i]), (0, 1)) for i in range(9)], axis=2)
        rho = jnp.sum(F, axis=2)
        ux, uy = jnp.sum(F * cx, axis=2) / rho, jnp.sum(F * cy, axis=2) / rho
        c = ux[:, :, None] * cx + uy[:, :, None] * cy
        squares = (ux**2 + uy**2)[:, :, None]
        Feq = rho[:, :, None] * weights * (1 + 3 * c + 4.5 * c**2 - 1.5 * squares)
        return jnp.where(cylinder[:, :, None], F[:, :, back], F - (1.0 / tau) * (F - Feq))

    return lax.fori_loop(0, steps, step, F)
