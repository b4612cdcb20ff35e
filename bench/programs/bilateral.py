"""A bilateral filter: neighbours are weighted by distance and by difference in value."""

import numpy as np

from programs.libraries import jnp, prange


def bilateral(image, radius, sigma_s, sigma_r):
    h, w = image.shape
    padded = np.pad(image, radius, mode="edge")
    total = np.zeros_like(image)
    weight = np.zeros_like(image)
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            shifted = padded[radius + dy : radius + dy + h, radius + dx : radius + dx + w]
            k = np.exp(
                -(dx * dx + dy * dy) / (2 * sigma_s**2) - (shifted - image) ** 2 / (2 * sigma_r**2)
            )
            total += k * shifted
            weight += k
    return total / weight


STATIC = ("radius",)


def inputs(tiny):
    n, m, radius = (13, 12, 2) if tiny else (200, 160, 3)
    return np.random.default_rng(0).random((n, m)), radius, 2.0, 0.1


def loops(image, radius, sigma_s, sigma_r):
    h, w = image.shape
    out = np.empty_like(image)
    for y in prange(h):
        for x in range(w):
            total = 0.0
            weight = 0.0
            for dy in range(-radius, radius + 1):
                for dx in range(-radius, radius + 1):
                    v = image[min(max(y + dy, 0), h - 1), min(max(x + dx, 0), w - 1)]
                    d = v - image[y, x]
                    near = -(dx * dx + dy * dy) / (2 * sigma_s**2)
                    k = np.exp(near - d * d / (2 * sigma_r**2))
                    total += k * v
                    weight += k
            out[y, x] = total / weight
    return out


def port(image, radius, sigma_s, sigma_r):
    h, w = image.shape
    padded = jnp.pad(image, radius, mode="edge")
    total = weight = 0.0
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            shifted = padded[radius + dy : radius + dy + h, radius + dx : radius + dx + w]
            near = -(dx * dx + dy * dy) / (2 * sigma_s**2)
            k = jnp.exp(near - (shifted - image) ** 2 / (2 * sigma_r**2))
            total, weight = total + k * shifted, weight + k
    return total / weight
