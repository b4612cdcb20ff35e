"""A two-dimensional convolution of images, one window at a time."""

import numpy as np

from programs.libraries import jnp, lax, prange


def conv2d(image, weights, bias):
    K = weights.shape[0]
    n, h, w, _ = image.shape
    output = np.empty((n, h - K + 1, w - K + 1, weights.shape[3]), dtype=np.float32)
    for i in range(h - K + 1):
        for j in range(w - K + 1):
            output[:, i, j, :] = np.sum(
                image[:, i : i + K, j : j + K, :, np.newaxis] * weights[np.newaxis],
                axis=(1, 2, 3),
            )
    return output + bias


def inputs(tiny):
    n, s, ci, co, k = (2, 13, 2, 3, 3) if tiny else (4, 32, 3, 16, 3)
    rng = np.random.default_rng(0)
    image = rng.random((n, s, s, ci), dtype=np.float32)
    return image, rng.random((k, k, ci, co), dtype=np.float32), rng.random(co, dtype=np.float32)


def loops(image, weights, bias):
    K, _, ci, co = weights.shape
    n, h, w, _ = image.shape
    output = np.empty((n, h - K + 1, w - K + 1, co), dtype=np.float32)
    for b in prange(n):
        for i in range(h - K + 1):
            for j in range(w - K + 1):
                for o in range(co):
                    output[b, i, j, o] = bias[o]
                for di in range(K):
                    for dj in range(K):
                        for c in range(ci):
                            for o in range(co):
                                x = image[b, i + di, j + dj, c]
                                output[b, i, j, o] += x * weights[di, dj, c, o]
    return output


def port(image, weights, bias):
    names = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(image, weights, (1, 1), "VALID", dimension_numbers=names) + (
        jnp.asarray(bias)
    )
