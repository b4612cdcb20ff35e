"""The escape times of the Mandelbrot set, in real arithmetic with a mask."""

import numpy as np

from programs.libraries import jnp, lax, prange


def mandelbrot(x, y, maxiter):
    cr = np.zeros((y.shape[0], x.shape[0])) + x
    ci = np.zeros((y.shape[0], x.shape[0])) + y[:, None]
    zr = np.zeros_like(cr)
    zi = np.zeros_like(cr)
    count = np.zeros(cr.shape, dtype=np.int64)
    for n in range(maxiter):
        inside = zr * zr + zi * zi < 4.0
        new = zr * zr - zi * zi + cr
        zi = np.where(inside, 2.0 * zr * zi + ci, zi)
        zr = np.where(inside, new, zr)
        count[inside] = n
    return count


def inputs(tiny):
    w, h, maxiter = (12, 11, 10) if tiny else (200, 160, 60)
    return np.linspace(-2.25, 0.75, w), np.linspace(-1.25, 1.25, h), maxiter


def loops(x, y, maxiter):
    count = np.zeros((y.shape[0], x.shape[0]), dtype=np.int64)
    for i in prange(y.shape[0]):
        for j in range(x.shape[0]):
            zr = 0.0
            zi = 0.0
            for n in range(maxiter):
                if zr * zr + zi * zi >= 4.0:
                    break
                zr, zi = zr * zr - zi * zi + x[j], 2.0 * zr * zi + y[i]
                count[i, j] = n
    return count


def port(x, y, maxiter):
    cr, ci = jnp.meshgrid(x, y)

    def step(n, state):
        zr, zi, count = state
        inside = zr * zr + zi * zi < 4.0
        new = zr * zr - zi * zi + cr
        zi = jnp.where(inside, 2.0 * zr * zi + ci, zi)
        return jnp.where(inside, new, zr), zi, jnp.where(inside, n, count)

    zero = jnp.zeros_like(cr)
    return lax.fori_loop(0, maxiter, step, (zero, zero, jnp.zeros(cr.shape, jnp.int64)))[2]
