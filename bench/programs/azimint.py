"""Azimuthal integration: the mean of the pixels in each ring."""

import numpy as np

from programs.libraries import jnp


def azimint(data, radius, npt):
    rmax = radius.max()
    res = np.zeros(npt)
    for i in range(npt):
        r1 = rmax * i / npt
        r2 = rmax * (i + 1) / npt
        mask = np.logical_and(r1 <= radius, radius < r2)
        res[i] = np.sum(np.where(mask, data, 0.0)) / np.sum(mask)
    return res


STATIC = ("npt",)


def inputs(tiny):
    n, npt = (200, 10) if tiny else (100000, 100)
    rng = np.random.default_rng(0)
    return rng.random(n), rng.random(n), npt


def loops(data, radius, npt):
    rmax = radius.max()
    total = np.zeros(npt)
    count = np.zeros(npt)
    for i in range(data.shape[0]):
        b = int(radius[i] * npt / rmax)
        if b < npt:
            total[b] += data[i]
            count[b] += 1
    return total / count


def port(data, radius, npt):
    b = jnp.floor(radius * npt / radius.max()).astype(jnp.int64)
    total = jnp.zeros(npt).at[b].add(data, mode="drop")
    return total / jnp.zeros(npt).at[b].add(1.0, mode="drop")
