"""The network of digits.mlir in NumPy, as one would write it by hand."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Array = NDArray[np.float32]


def convolution(x: Array, w: Array) -> Array:
    """Slide ``w`` (height, width, features in, out) over ``x`` (batch, height, width, features)."""
    height, width, features, out = w.shape
    windows = sliding_window_view(x, (height, width), axis=(1, 2)).transpose(0, 1, 2, 4, 5, 3)
    columns = windows.reshape(-1, height * width * features)
    return (columns @ w.reshape(-1, out)).reshape(*windows.shape[:3], out)


def relu(x: Array) -> Array:
    """Keep what is positive."""
    return np.maximum(x, 0)


def max_pool(x: Array) -> Array:
    """Return the greatest of each 2x2 of ``x`` (batch, height, width, features)."""
    n, height, width, features = x.shape
    return x.reshape(n, height // 2, 2, width // 2, 2, features).max(axis=(2, 4))


def log_softmax(x: Array) -> Array:
    """Return the logarithms of the softmax of each row."""
    shifted = x - x.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def pixels(images: NDArray[np.uint8]) -> Array:
    """Return images of 0..16 as floats of 0..1, with zeros around and one feature."""
    scaled = images.astype(np.float32) * np.float32(1 / 16)
    return np.pad(scaled, ((0, 0), (1, 1), (1, 1)))[..., np.newaxis]


def network(
    weights: Mapping[str, Array], images: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], Array]:
    """Return the digit of each image, and the logarithms of the ten probabilities."""
    strokes = relu(convolution(pixels(images), weights["w1"]) + weights["b1"])
    shapes = relu(convolution(strokes, weights["w2"]) + weights["b2"])
    flat = max_pool(shapes).reshape(len(images), 288)
    parts = relu(flat @ weights["w3"] + weights["b3"])
    scores = parts @ weights["w4"] + weights["b4"]
    return scores.argmax(axis=1), log_softmax(scores)
