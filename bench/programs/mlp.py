"""A multilayer perceptron of three layers, and a softmax."""

import itertools

import numpy as np

from programs.libraries import jax, prange


def relu(x):
    return np.maximum(x, 0)


def softmax(x):
    tmp = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return tmp / np.sum(tmp, axis=-1, keepdims=True)


def mlp(x, w1, b1, w2, b2, w3, b3):
    x = relu(x @ w1 + b1)
    x = relu(x @ w2 + b2)
    return softmax(x @ w3 + b3)


def inputs(tiny):
    n, *sizes = (4, 5, 6, 7, 8) if tiny else (64, 256, 512, 512, 100)
    rng = np.random.default_rng(0)
    found = [rng.random((n, sizes[0]), dtype=np.float32)]
    for a, b in itertools.pairwise(sizes):
        found += [rng.random((a, b), dtype=np.float32) / a, rng.random(b, dtype=np.float32)]
    return tuple(found)


def loops(x, w1, b1, w2, b2, w3, b3):
    x = np.maximum(x @ w1 + b1, np.float32(0))
    x = np.maximum(x @ w2 + b2, np.float32(0))
    x = x @ w3 + b3
    for i in prange(x.shape[0]):
        m = x[i].max()
        s = np.float32(0)
        for j in range(x.shape[1]):
            x[i, j] = np.exp(x[i, j] - m)
            s += x[i, j]
        for j in range(x.shape[1]):
            x[i, j] /= s
    return x


def port(x, w1, b1, w2, b2, w3, b3):
    x = jax.nn.relu(x @ w1 + b1)
    x = jax.nn.relu(x @ w2 + b2)
    return jax.nn.softmax(x @ w3 + b3)
