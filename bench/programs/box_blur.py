"""A box blur of any radius, by a summed-area table."""

import numpy as np

from programs.libraries import jnp, prange


def box_blur(image, r):
    h, w = image.shape
    k = 2 * r + 1
    sums = np.zeros((h + 1, w + 1))
    sums[1:, 1:] = np.cumsum(np.cumsum(image, axis=0), axis=1)
    out = image.copy()
    out[r : h - r, r : w - r] = (sums[k:, k:] - sums[:-k, k:] - sums[k:, :-k] + sums[:-k, :-k]) / (
        k * k
    )
    return out


STATIC = ("r",)


def inputs(tiny):
    n, m, r = (13, 12, 2) if tiny else (400, 500, 7)
    return np.random.default_rng(0).random((n, m)), r


def loops(image, r):
    h, w = image.shape
    k = 2 * r + 1
    sums = np.zeros((h + 1, w + 1))
    for i in range(h):
        s = 0.0
        for j in range(w):
            s += image[i, j]
            sums[i + 1, j + 1] = sums[i, j + 1] + s
    out = image.copy()
    for i in prange(r, h - r):
        for j in range(r, w - r):
            a, b, c, d = i - r, i + r + 1, j - r, j + r + 1
            out[i, j] = (sums[b, d] - sums[a, d] - sums[b, c] + sums[a, c]) / (k * k)
    return out


def port(image, r):
    h, w = image.shape
    k = 2 * r + 1
    sums = jnp.pad(jnp.cumsum(jnp.cumsum(image, axis=0), axis=1), ((1, 0), (1, 0)))
    box = (sums[k:, k:] - sums[:-k, k:] - sums[k:, :-k] + sums[:-k, :-k]) / (k * k)
    return image.at[r : h - r, r : w - r].set(box)
