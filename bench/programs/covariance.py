"""The covariance matrix of the columns, one row of the result at a time."""

import numpy as np

from programs.libraries import jnp, prange


def covariance(data):
    n, m = data.shape
    mean = np.mean(data, axis=0)
    data -= mean
    cov = np.zeros((m, m), dtype=data.dtype)
    for i in range(m):
        cov[i:m, i] = cov[i, i:m] = data[:, i] @ data[:, i:m] / (n - 1.0)
    return cov


def inputs(tiny):
    n, m = (14, 12) if tiny else (300, 250)
    return (np.random.default_rng(0).random((n, m)),)


def loops(data):
    n, m = data.shape
    for j in range(m):
        s = 0.0
        for i in range(n):
            s += data[i, j]
        for i in range(n):
            data[i, j] -= s / n
    cov = np.zeros((m, m))
    for i in prange(m):
        for k in range(n):
            for j in range(i, m):
                cov[i, j] += data[k, i] * data[k, j]
        for j in range(i, m):
            cov[i, j] /= n - 1.0
            cov[j, i] = cov[i, j]
    return cov


def port(data):
    data = data - jnp.mean(data, axis=0)
    return data, data.T @ data / (data.shape[0] - 1.0)
