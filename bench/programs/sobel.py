"""Edges of an image: Sobel gradients, and a threshold relative to the largest magnitude."""

import numpy as np

from programs.libraries import jnp, prange


def sobel(image, level):
    p = np.pad(image, 1, mode="edge")
    gx = p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:] - p[:-2, :-2] - 2 * p[1:-1, :-2] - p[2:, :-2]
    gy = p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:] - p[:-2, :-2] - 2 * p[:-2, 1:-1] - p[:-2, 2:]
    edges = np.sqrt(gx * gx + gy * gy)
    edges /= edges.max()
    edges[edges < level] = 0.0
    return edges


def inputs(tiny):
    n, m = (13, 12) if tiny else (480, 640)
    return np.random.default_rng(0).random((n, m), dtype=np.float32), 0.25


def loops(image, level):
    h, w = image.shape
    edges = np.empty_like(image)
    tops = np.zeros(h, np.float32)
    for i in prange(h):
        u, d = max(i - 1, 0), min(i + 1, h - 1)
        for j in range(w):
            a, b = max(j - 1, 0), min(j + 1, w - 1)
            gx = image[u, b] + 2 * image[i, b] + image[d, b]
            gx -= image[u, a] + 2 * image[i, a] + image[d, a]
            gy = image[d, a] + 2 * image[d, j] + image[d, b]
            gy -= image[u, a] + 2 * image[u, j] + image[u, b]
            edges[i, j] = np.sqrt(gx * gx + gy * gy)
            tops[i] = max(tops[i], edges[i, j])
    top = tops.max()
    for i in prange(h):
        for j in range(w):
            e = edges[i, j] / top
            edges[i, j] = e if e >= level else np.float32(0)
    return edges


def port(image, level):
    p = jnp.pad(image, 1, mode="edge")
    gx = p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:] - p[:-2, :-2] - 2 * p[1:-1, :-2] - p[2:, :-2]
    gy = p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:] - p[:-2, :-2] - 2 * p[:-2, 1:-1] - p[:-2, 2:]
    edges = jnp.sqrt(gx * gx + gy * gy)
    edges = edges / edges.max()
    return jnp.where(edges < level, 0.0, edges)
