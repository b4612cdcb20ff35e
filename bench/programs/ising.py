"""Sweeps of the Ising model over a checkerboard's two colours, with given random numbers."""

import numpy as np

from programs.libraries import jnp, lax, prange


def ising(spins, chance, beta):
    n, m = spins.shape
    colour = np.add.outer(np.arange(n), np.arange(m)) % 2
    for t in range(chance.shape[0]):
        for c in range(2):
            around = (
                np.roll(spins, 1, 0) + np.roll(spins, -1, 0)
                + np.roll(spins, 1, 1) + np.roll(spins, -1, 1)
            )  # fmt: skip
            cost = 2.0 * spins * around
            flip = (colour == c) & (chance[t] < np.exp(-beta * cost))
            spins[flip] *= -1
    return spins.mean()


def inputs(tiny):
    n, m, sweeps = (12, 10, 9) if tiny else (128, 128, 20)
    rng = np.random.default_rng(0)
    return rng.choice(np.array([-1, 1]), (n, m)), rng.random((sweeps, n, m)), 0.4


def loops(spins, chance, beta):
    n, m = spins.shape
    for t in range(chance.shape[0]):
        for c in range(2):
            for i in prange(n):
                for j in range((i + c) % 2, m, 2):
                    around = spins[(i - 1) % n, j] + spins[(i + 1) % n, j]
                    around += spins[i, (j - 1) % m] + spins[i, (j + 1) % m]
                    if chance[t, i, j] < np.exp(-beta * 2.0 * spins[i, j] * around):
                        spins[i, j] *= -1
    return spins.mean()


def port(spins, chance, beta):
    n, m = spins.shape
    colour = jnp.add.outer(jnp.arange(n), jnp.arange(m)) % 2

    def sweep(spins, chance):
        for c in range(2):
            around = jnp.roll(spins, 1, 0) + jnp.roll(spins, -1, 0)
            around += jnp.roll(spins, 1, 1) + jnp.roll(spins, -1, 1)
            flip = (colour == c) & (chance < jnp.exp(-beta * 2.0 * spins * around))
            spins = jnp.where(flip, -spins, spins)
        return spins, None

    spins = lax.scan(sweep, spins, chance)[0]
    return spins, spins.mean()
