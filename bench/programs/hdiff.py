"""Horizontal diffusion in a weather model, with flux limiters."""

import numpy as np

from programs.libraries import jnp, prange


def hdiff(in_field, out_field, coeff):
    lap = 4.0 * in_field[1:-1, 1:-1] - (
        in_field[2:, 1:-1] + in_field[:-2, 1:-1] + in_field[1:-1, 2:] + in_field[1:-1, :-2]
    )
    res = lap[1:, 1:-1] - lap[:-1, 1:-1]
    flx = np.where(res * (in_field[2:-1, 2:-2] - in_field[1:-2, 2:-2]) > 0, 0, res)
    res = lap[1:-1, 1:] - lap[1:-1, :-1]
    fly = np.where(res * (in_field[2:-2, 2:-1] - in_field[2:-2, 1:-2]) > 0, 0, res)
    out_field[:] = in_field[2:-2, 2:-2] - coeff * (
        flx[1:, :] - flx[:-1, :] + fly[:, 1:] - fly[:, :-1]
    )


def inputs(tiny):
    n, m, k = (9, 10, 3) if tiny else (68, 68, 40)
    rng = np.random.default_rng(0)
    return rng.random((n, m, k)), np.zeros((n - 4, m - 4, k)), rng.random((n - 4, m - 4, k))


def loops(in_field, out_field, coeff):
    n, m, depth = in_field.shape
    lap = np.empty((n, m, depth))
    for i in prange(1, n - 1):
        for j in range(1, m - 1):
            for k in range(depth):
                around = in_field[i + 1, j, k] + in_field[i - 1, j, k]
                around = around + in_field[i, j + 1, k] + in_field[i, j - 1, k]
                lap[i, j, k] = 4.0 * in_field[i, j, k] - around
    for i in prange(2, n - 2):
        for j in range(2, m - 2):
            for k in range(depth):
                x = in_field[i, j, k]
                a = lap[i + 1, j, k] - lap[i, j, k]
                a = 0.0 if a * (in_field[i + 1, j, k] - x) > 0 else a
                b = lap[i, j, k] - lap[i - 1, j, k]
                b = 0.0 if b * (x - in_field[i - 1, j, k]) > 0 else b
                c = lap[i, j + 1, k] - lap[i, j, k]
                c = 0.0 if c * (in_field[i, j + 1, k] - x) > 0 else c
                d = lap[i, j, k] - lap[i, j - 1, k]
                d = 0.0 if d * (x - in_field[i, j - 1, k]) > 0 else d
                out_field[i - 2, j - 2, k] = x - coeff[i - 2, j - 2, k] * (a - b + c - d)


def port(in_field, out_field, coeff):
    lap = 4.0 * in_field[1:-1, 1:-1] - (
        in_field[2:, 1:-1] + in_field[:-2, 1:-1] + in_field[1:-1, 2:] + in_field[1:-1, :-2]
    )
    res = lap[1:, 1:-1] - lap[:-1, 1:-1]
    flx = jnp.where(res * (in_field[2:-1, 2:-2] - in_field[1:-2, 2:-2]) > 0, 0, res)
    res = lap[1:-1, 1:] - lap[1:-1, :-1]
    fly = jnp.where(res * (in_field[2:-2, 2:-1] - in_field[2:-2, 1:-2]) > 0, 0, res)
    return in_field[2:-2, 2:-2] - coeff * (flx[1:, :] - flx[:-1, :] + fly[:, 1:] - fly[:, :-1])
