"""Loops written by hand and compiled by numba, where that is what its users would do."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numba
import numpy as np
from numba import prange
from ops import Unsupported
from workloads import Arrays, Workload

from peers import Call, Peer

one = np.float32
RUN = 4096
"""So many elements are summed in float32; the sums of these runs in float64."""


def gelu_chain_4m(x, a, b, c):
    """Compute the chain in one pass."""
    y = np.empty_like(x)
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            t = x[i, j] * a[j] + b[j]
            h = math.tanh(one(0.7978845608) * (t + one(0.044715) * t * t * t))
            y[i, j] = one(0.5) * t * (one(1) + h) * c[j] - x[i, j]
    return y


def sum_of_products_16m(a, b, c):
    """Add up in float64 what runs of float32 sum to."""
    sums = np.zeros(a.size // RUN)
    for i in prange(sums.size):
        s = one(0)
        for j in range(i * RUN, (i + 1) * RUN):
            s += a[j] + b[j] * c[j]
        sums[i] = s
    return one(sums.sum())


def softmax_1024x1024(x):
    """Go over each row three times."""
    y = np.empty_like(x)
    for i in prange(x.shape[0]):
        m = x[i, 0]
        for j in range(x.shape[1]):
            m = max(m, x[i, j])
        s = one(0)
        for j in range(x.shape[1]):
            y[i, j] = math.exp(x[i, j] - m)
            s += y[i, j]
        for j in range(x.shape[1]):
            y[i, j] *= one(1) / s
    return y


def logsumexp_4096x1024(x):
    """Go over each row twice."""
    y = np.empty(x.shape[0], np.float32)
    for i in prange(x.shape[0]):
        m = x[i, 0]
        for j in range(x.shape[1]):
            m = max(m, x[i, j])
        s = one(0)
        for j in range(x.shape[1]):
            s += math.exp(x[i, j] - m)
        y[i] = m + math.log(s)
    return y


def layer_norm_4096x768(x, scale, shift):
    """Go over each row three times."""
    y = np.empty_like(x)
    n = one(x.shape[1])
    for i in prange(x.shape[0]):
        s = one(0)
        for j in range(x.shape[1]):
            s += x[i, j]
        v = one(0)
        for j in range(x.shape[1]):
            v += (x[i, j] - s / n) * (x[i, j] - s / n)
        r = one(1) / one(math.sqrt(v / n + one(1e-5)))
        for j in range(x.shape[1]):
            y[i, j] = (x[i, j] - s / n) * r * scale[j] + shift[j]
    return y


def jacobi_1024_100(u):
    """Sweep to and fro between two arrays."""
    u, v = u.copy(), u.copy()
    for _ in range(100):
        for i in prange(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                v[i, j] = one(0.25) * around
        u, v = v, u
    return u


def power100(x):
    """Multiply by the rows."""
    n = x.shape[0]
    y, z = np.eye(n).astype(x.dtype), np.empty_like(x)
    for _ in range(100):
        for i in range(n):
            for j in range(n):
                z[i, j] = 0
            for k in range(n):
                for j in range(n):
                    z[i, j] += x[i, k] * y[k, j]
        y, z = z, y
    return y


def call_add8(x, y):
    """Add."""
    return x + y


TOGETHER = {
    f.__name__: f
    for f in (
        gelu_chain_4m,
        sum_of_products_16m,
        softmax_1024x1024,
        logsumexp_4096x1024,
        layer_norm_4096x768,
        jacobi_1024_100,
    )
}
"""Workloads whose outer loop runs in parallel."""

ALONE = {"power100_f32": power100, "power100_i32": power100, "call_add8": call_add8}


class Main(Peer):
    """numba with fast mathematics."""

    version = numba.__version__

    def __init__(self, threads: int, variant: str) -> None:
        super().__init__(threads, variant)
        numba.set_num_threads(threads)

    def compile(self, workload: Workload, data: tuple[Arrays, Arrays]) -> Mapping[str, Call]:
        weights, inputs = data
        name = workload.name
        if name not in TOGETHER and name not in ALONE:
            raise Unsupported("not written in numba")
        parallel = name in TOGETHER and self.threads > 1
        fast = numba.njit(fastmath=True, parallel=parallel, error_model="numpy")
        function = fast(TOGETHER.get(name) or ALONE[name])
        arguments = [*inputs.values(), *weights.values()]
        return {"": lambda: function(*arguments)}
