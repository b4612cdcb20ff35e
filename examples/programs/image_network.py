"""A small network for images: convolutions by windows of slices, pooling, a classifier."""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np

import stepwell as sw


def conv(x: Any, w: Any, b: Any) -> Any:
    """Return the convolution of images (n, h, w, c) with 3 x 3 filters, zeros around."""
    n, h, width, _ = x.shape
    padded = np.zeros((n, h + 2, width + 2, x.shape[3]), x.dtype)
    padded[:, 1:-1, 1:-1] = x
    y = np.zeros((n, h, width, w.shape[3]), x.dtype)
    for i in range(3):
        for j in range(3):
            y += padded[:, i : i + h, j : j + width] @ w[i, j]
    return np.maximum(y + b, np.float32(0))


def pool(x: Any) -> Any:
    """Return the largest of each 2 x 2 pixels."""
    n, h, w, c = x.shape
    return x.reshape(n, h // 2, 2, w // 2, 2, c).max(axis=(2, 4))


def network(params: Any, images: Any) -> Any:
    """Return the chances of each class."""
    x = images
    for w, b in params["convolutions"]:
        x = pool(conv(x, w, b))
    scores = x.mean(axis=(1, 2)) @ params["w"] + params["b"]
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def parameters(channels: tuple[int, ...] = (3, 16, 32, 64), classes: int = 10) -> Any:
    """Return parameters that have learnt nothing."""
    random = np.random.default_rng(0)
    return {
        "convolutions": [
            (
                (random.standard_normal((3, 3, n, m)) / (9 * n) ** 0.5).astype(np.float32),
                np.zeros(m, np.float32),
            )
            for n, m in itertools.pairwise(channels)
        ],
        "w": random.standard_normal((channels[-1], classes)).astype(np.float32),
        "b": np.zeros(classes, np.float32),
    }


def main() -> None:
    """Classify images with NumPy and with the compiled network."""
    params = parameters()
    images = np.random.default_rng(1).random((4, 32, 32, 3), dtype=np.float32)
    compiled = sw.jit(network)
    right, ours = network(params, images), compiled(params, images)
    np.testing.assert_allclose(ours, right, rtol=1e-4, atol=1e-6)
    took = [_seconds(f, params, images) for f in (compiled, network)]
    print(f"images: {took[0] * 1e3:.2f} ms for four, in NumPy {took[1] * 1e3:.2f} ms")


def _seconds(function: Any, *args: Any) -> float:
    start = time.perf_counter()
    for _ in range(10):
        function(*args)
    return (time.perf_counter() - start) / 10


if __name__ == "__main__":
    main()
