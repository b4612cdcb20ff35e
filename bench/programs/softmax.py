"""The softmax of attention scores."""

import numpy as np

from programs.libraries import jax, prange


def softmax(x):
    tmp_max = np.max(x, axis=-1, keepdims=True)
    tmp_out = np.exp(x - tmp_max)
    tmp_sum = np.sum(tmp_out, axis=-1, keepdims=True)
    return tmp_out / tmp_sum


def inputs(tiny):
    shape = (2, 2, 3, 5) if tiny else (8, 8, 96, 128)
    return (np.random.default_rng(0).random(shape, dtype=np.float32),)


def loops(x):
    rows = x.reshape(-1, x.shape[-1])
    out = np.empty_like(rows)
    for i in prange(rows.shape[0]):
        m = rows[i, 0]
        for j in range(rows.shape[1]):
            m = max(m, rows[i, j])
        s = np.float32(0)
        for j in range(rows.shape[1]):
            out[i, j] = np.exp(rows[i, j] - m)
            s += out[i, j]
        for j in range(rows.shape[1]):
            out[i, j] /= s
    return out.reshape(x.shape)


def port(x):
    return jax.nn.softmax(x)
