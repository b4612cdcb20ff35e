"""What the workloads are written in: a small table of operations, each peer's own of every one.

Images are NCHW and their weights OIHW, weights of `linear` (in, out), softmax and the norms run
along the last axis. A peer may keep arrays in another layout, converted before the clock starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Array = Any


class ArrayOps:
    """Operations on arrays, from which models are built."""

    def matmul(self, x: Array, y: Array) -> Array:
        """Multiply matrices, the axes before the last two running along."""
        raise Unsupported("matmul")

    def add(self, x: Array, y: Array) -> Array:
        """Return x + y; shapes are broadcast, as by the next two."""
        return x + y

    def subtract(self, x: Array, y: Array) -> Array:
        """Return x - y."""
        return x - y

    def multiply(self, x: Array, y: Array) -> Array:
        """Return x * y."""
        return x * y

    def scale(self, x: Array, factor: float) -> Array:
        """Multiply by a number."""
        return x * factor

    def relu(self, x: Array) -> Array:
        """Return max(x, 0)."""
        raise Unsupported("relu")

    def positive(self, x: Array) -> Array:
        """Return 1 where x > 0, else 0."""
        raise Unsupported("positive")

    def relu6(self, x: Array) -> Array:
        """Return x between 0 and 6."""
        raise Unsupported("relu6")

    def gelu(self, x: Array, by_tanh: bool = False) -> Array:
        """Return x * P(X <= x) of a normal X, or its approximation by tanh."""
        raise Unsupported("gelu")

    def softmax(self, x: Array) -> Array:
        """Return exp(x) in shares of its sum."""
        raise Unsupported("softmax")

    def logsumexp(self, x: Array) -> Array:
        """Return log(sum(exp(x))), safe for any x."""
        raise Unsupported("logsumexp")

    def total(self, x: Array) -> Array:
        """Return the sum of all elements."""
        raise Unsupported("total")

    def sum_rows(self, x: Array) -> Array:
        """Return the sum along the first axis."""
        raise Unsupported("sum_rows")

    def reshape(self, x: Array, shape: Sequence[int]) -> Array:
        """Return the same elements in another shape."""
        return x.reshape(shape)

    def transpose(self, x: Array, axes: Sequence[int]) -> Array:
        """Return x with its axes in another order."""
        raise Unsupported("transpose")

    def identity(self, n: int, like: Array) -> Array:
        """Return the identity matrix in the dtype of another array."""
        raise Unsupported("identity")


class Ops(ArrayOps):
    """Operations on a library's arrays; what is missing makes a workload unsupported there."""

    def layer_norm(self, x: Array, scale: Array, shift: Array) -> Array:
        """Return (x - mean) / sqrt(variance + 1e-5) * scale + shift."""
        raise Unsupported("layer_norm")

    def linear(self, x: Array, w: Array, b: Array) -> Array:
        """Return x @ w + b."""
        return self.add(self.matmul(x, w), b)

    def conv(
        self, x: Array, w: Array, b: Array, stride: int = 1, padding: int = 0, groups: int = 1
    ) -> Array:
        """Convolve images and add b to each feature; groups is 1 or the number of features."""
        raise Unsupported("conv")

    def max_pool(self, x: Array, size: int, stride: int, padding: int) -> Array:
        """Return the greatest of each window."""
        raise Unsupported("max_pool")

    def image_mean(self, x: Array) -> Array:
        """Return the mean of each feature over its image: (images, features)."""
        raise Unsupported("image_mean")

    def attention(self, q: Array, k: Array, v: Array, scale: float) -> Array:
        """Return softmax(scale * q @ k.T) @ v, for (batch, heads, length, width)."""
        scores = self.matmul(q, self.transpose(k, (0, 1, 3, 2)))
        return self.matmul(self.softmax(self.scale(scores, scale)), v)

    def lstm(self, x: Array, wx: Array, wh: Array, b: Array) -> Array:
        """Return the hidden state after each row of x; gates in the order i, f, g, o."""
        raise Unsupported("lstm")

    def jacobi(self, u: Array, sweeps: int) -> Array:
        """Replace each inner point by the mean of its four neighbours, ``sweeps`` times."""
        raise Unsupported("jacobi")

    def power(self, x: Array, size: int, n: int) -> Array:
        """Return x to the n-th power by n products."""
        y = self.identity(size, x)
        for _ in range(n):
            y = self.matmul(x, y)
        return y

    def cross_entropy(self, x: Array, shares: Array) -> Array:
        """Return the mean over rows of logsumexp(x) - sum(x * shares)."""
        raise Unsupported("cross_entropy")


class Unsupported(Exception):
    """A peer has no way to say a workload."""
