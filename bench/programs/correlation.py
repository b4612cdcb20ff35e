"""The correlation matrix of the columns, one row of the result at a time."""

import numpy as np

from programs.libraries import jnp, prange


def correlation(data):
    n, m = data.shape
    mean = np.mean(data, axis=0)
    stddev = np.std(data, axis=0)
    stddev[stddev <= 0.1] = 1.0
    data -= mean
    data /= np.sqrt(n) * stddev
    corr = np.eye(m, dtype=data.dtype)
    for i in range(m - 1):
        corr[i + 1 : m, i] = corr[i, i + 1 : m] = data[:, i] @ data[:, i + 1 : m]
    return corr


def inputs(tiny):
    n, m = (14, 12) if tiny else (300, 250)
    return (np.random.default_rng(0).random((n, m)),)


def loops(data):
    n, m = data.shape
    for j in range(m):
        s = 0.0
        for i in range(n):
            s += data[i, j]
        mean = s / n
        s = 0.0
        for i in range(n):
            s += (data[i, j] - mean) ** 2
        stddev = np.sqrt(s / n)
        if stddev <= 0.1:
            stddev = 1.0
        for i in range(n):
            data[i, j] = (data[i, j] - mean) / (np.sqrt(n) * stddev)
    corr = np.eye(m)
    for i in prange(m - 1):
        for k in range(n):
            for j in range(i + 1, m):
                corr[i, j] += data[k, i] * data[k, j]
        for j in range(i + 1, m):
            corr[j, i] = corr[i, j]
    return corr


def port(data):
    n, m = data.shape
    stddev = jnp.std(data, axis=0)
    stddev = jnp.where(stddev <= 0.1, 1.0, stddev)
    data = (data - jnp.mean(data, axis=0)) / (jnp.sqrt(n) * stddev)
    return data, jnp.where(jnp.eye(m, dtype=bool), 1.0, data.T @ data)
