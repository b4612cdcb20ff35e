"""The operations in plain NumPy: in float64 the right answer, in float32 a peer.

It counts the work of what it is asked, so that a workload need not say how much it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from ops import Array, Ops

_erf = np.frompyfunc(math.erf, 1, 1)


class NumpyOps(Ops):
    """NumPy's operations; ``flops`` is what they were, an element of any function being one."""

    def __init__(self) -> None:
        self.flops = 0

    def _count(self, each: float, of: Any) -> Any:
        """Note so many operations for each element of a result; return the result."""
        self.flops += int(each * np.size(of))
        return of

    def matmul(self, x: Array, y: Array) -> Array:
        return self._count(2 * x.shape[-1], np.matmul(x, y))

    def add(self, x: Array, y: Array) -> Array:
        return self._count(1, x + y)

    def subtract(self, x: Array, y: Array) -> Array:
        return self._count(1, x - y)

    def multiply(self, x: Array, y: Array) -> Array:
        return self._count(1, x * y)

    def scale(self, x: Array, factor: float) -> Array:
        return self._count(1, x * x.dtype.type(factor))

    def relu(self, x: Array) -> Array:
        return self._count(1, np.maximum(x, 0))

    def positive(self, x: Array) -> Array:
        return (x > 0).astype(x.dtype)

    def relu6(self, x: Array) -> Array:
        return self._count(2, np.clip(x, 0, 6))

    def gelu(self, x: Array, by_tanh: bool = False) -> Array:
        one = x.dtype.type
        if by_tanh:
            inner = one(math.sqrt(2 / math.pi)) * (x + one(0.044715) * x * x * x)
            return self._count(8, one(0.5) * x * (one(1) + np.tanh(inner)))
        return self._count(4, one(0.5) * x * (one(1) + self._erf(x * one(math.sqrt(0.5)))))

    def _erf(self, x: Array) -> Array:
        return np.asarray(_erf(x), x.dtype)

    def softmax(self, x: Array) -> Array:
        e = np.exp(x - x.max(-1, keepdims=True))
        return self._count(5, e / e.sum(-1, keepdims=True))

    def logsumexp(self, x: Array) -> Array:
        self._count(4, x)
        m = x.max(-1, keepdims=True)
        return np.log(np.exp(x - m).sum(-1)) + m[..., 0]

    def layer_norm(self, x: Array, scale: Array, shift: Array) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred * centred).mean(-1, keepdims=True)
        return self._count(8, centred / np.sqrt(variance + x.dtype.type(1e-5)) * scale + shift)

    def total(self, x: Array) -> Array:
        self._count(1, x)
        return x.sum()

    def sum_rows(self, x: Array) -> Array:
        self._count(1, x)
        return x.sum(0)

    def transpose(self, x: Array, axes: Sequence[int]) -> Array:
        return x.transpose(axes)

    def conv(
        self, x: Array, w: Array, b: Array, stride: int = 1, padding: int = 0, groups: int = 1
    ) -> Array:
        edge = (padding, padding)
        x = np.pad(x, ((0, 0), (0, 0), edge, edge))
        windows = sliding_window_view(x, w.shape[2:], (2, 3))[:, :, ::stride, ::stride]
        if groups == 1:
            y = np.moveaxis(np.tensordot(windows, w, ((1, 4, 5), (1, 2, 3))), -1, 1)
        else:
            y = np.einsum("nchwij,cij->nchw", windows, w[:, 0])
        return self._count(2 * w[0].size, y + b[:, None, None])

    def max_pool(self, x: Array, size: int, stride: int, padding: int) -> Array:
        edge = (padding, padding)
        x = np.pad(x, ((0, 0), (0, 0), edge, edge), constant_values=-np.inf)
        windows = sliding_window_view(x, (size, size), (2, 3))[:, :, ::stride, ::stride]
        return self._count(size * size, windows.max((-1, -2)))

    def image_mean(self, x: Array) -> Array:
        self._count(1, x)
        return x.mean((2, 3))

    def lstm(self, x: Array, wx: Array, wh: Array, b: Array) -> Array:
        def sigmoid(z: Array) -> Array:
            return 1 / (1 + np.exp(-z))

        hidden = wh.shape[0]
        h = c = np.zeros(hidden, x.dtype)
        states: list[Array] = []
        for row in self.matmul(x, wx) + b:
            i, f, g, o = np.split(row + self.matmul(h, wh), 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = self._count(12, sigmoid(o) * np.tanh(c))
            states.append(h)
        return np.stack(states)

    def jacobi(self, u: Array, sweeps: int) -> Array:
        u, v = u.copy(), u.copy()
        for _ in range(sweeps):
            mean = u[:-2, 1:-1] + u[2:, 1:-1]
            mean += u[1:-1, :-2]
            mean += u[1:-1, 2:]
            mean *= u.dtype.type(0.25)
            v[1:-1, 1:-1] = self._count(4, mean)
            u, v = v, u
        return u

    def identity(self, n: int, like: Array) -> Array:
        return np.eye(n, dtype=like.dtype)

    def cross_entropy(self, x: Array, shares: Array) -> Array:
        return (self.logsumexp(x) - (x * shares).sum(-1)).mean()
