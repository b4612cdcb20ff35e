"""The iterations of k-means (Lloyd's algorithm)."""

import numpy as np

from programs.libraries import jax, jnp, lax, prange


def kmeans(points, centres, steps):
    for _ in range(steps):
        distance = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        label = np.argmin(distance, axis=1)
        for k in range(centres.shape[0]):
            mine = label == k
            count = np.sum(mine)
            if count > 0:
                centres[k] = np.sum(points * mine[:, None], axis=0) / count
    return label


def inputs(tiny):
    n, k, d, steps = (40, 10, 3, 9) if tiny else (4000, 12, 4, 10)
    rng = np.random.default_rng(0)
    points = rng.random((n, d))
    return points, points[:k].copy(), steps


def loops(points, centres, steps):
    n, d = points.shape
    m = centres.shape[0]
    label = np.zeros(n, np.int64)
    for _ in range(steps):
        for i in prange(n):
            best = np.inf
            for k in range(m):
                s = 0.0
                for j in range(d):
                    s += (points[i, j] - centres[k, j]) ** 2
                if s < best:
                    best = s
                    label[i] = k
        total = np.zeros((m, d))
        count = np.zeros(m)
        for i in range(n):
            count[label[i]] += 1
            for j in range(d):
                total[label[i], j] += points[i, j]
        for k in range(m):
            if count[k] > 0:
                for j in range(d):
                    centres[k, j] = total[k, j] / count[k]
    return label


def port(points, centres, steps):
    def step(_, state):
        centres = state[0]
        distance = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        label = jnp.argmin(distance, axis=1)
        mine = jax.nn.one_hot(label, centres.shape[0], dtype=points.dtype)
        count = mine.sum(axis=0)[:, None]
        return jnp.where(count > 0, mine.T @ points / count, centres), label

    first = jnp.zeros(points.shape[0], jnp.int64)
    return lax.fori_loop(0, steps, step, (centres, first))
