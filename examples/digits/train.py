"""How the weights in digits.npz were made: python examples/digits/train.py [--write]

Plain NumPy: the forward pass of numpy_network.py, its derivatives by hand, and Adam, on two thirds
of the images, each shifted by up to a pixel. The held-out third is looked at once, at the end.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import numpy as np
from digits_data import WEIGHTS, Digits, load
from numpy.typing import NDArray
from numpy_network import Array, convolution, log_softmax, max_pool, network, pixels, relu

SHAPES = {"w1": (3, 3, 1, 16), "w2": (3, 3, 16, 32), "w3": (288, 64), "w4": (64, 10)}
EPOCHS, BATCH, RATE, DECAY = 40, 32, 2e-3, 1e-3

Weights = dict[str, Array]


def initial(random: np.random.RandomState) -> Weights:
    """Return weights that keep the variance of what passes through a relu, and zero biases."""
    weights: Weights = {}
    for name, shape in SHAPES.items():
        spread = np.sqrt(2 / np.prod(shape[:-1]))
        weights[name] = (random.standard_normal(shape) * spread).astype(np.float32)
        weights[name.replace("w", "b")] = np.zeros(shape[-1], np.float32)
    return weights


def convolution_gradient(dy: Array, x: Array, w: Array) -> tuple[Array, Array]:
    """Return the derivatives of a convolution by ``x`` and by ``w``."""
    height, width = dy.shape[1:3]
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    for i, j in np.ndindex(*w.shape[:2]):
        there = (slice(None), slice(i, i + height), slice(j, j + width))
        dw[i, j] = np.tensordot(x[there], dy, axes=([0, 1, 2], [0, 1, 2]))
        dx[there] += dy @ w[i, j].T
    return dx, dw


def max_pool_gradient(dy: Array, x: Array, y: Array) -> Array:
    """Return the derivative by ``x``: it goes to what was the greatest of each 2x2."""
    spread_y, spread_dy = (np.repeat(np.repeat(a, 2, axis=1), 2, axis=2) for a in (y, dy))
    return spread_dy * (x == spread_y)


def gradients(weights: Weights, images: NDArray[np.uint8], labels: NDArray[np.uint8]) -> Weights:
    """Return the derivatives of the mean cross-entropy by each of the weights."""
    n, x, grad = len(images), pixels(images), Weights()
    strokes = relu(convolution(x, weights["w1"]) + weights["b1"])
    shapes = relu(convolution(strokes, weights["w2"]) + weights["b2"])
    pooled = max_pool(shapes)
    flat = pooled.reshape(n, -1)
    parts = relu(flat @ weights["w3"] + weights["b3"])
    d = np.exp(log_softmax(parts @ weights["w4"] + weights["b4"]))
    d[np.arange(n), labels] -= 1
    d /= n
    grad["w4"], grad["b4"] = parts.T @ d, d.sum(axis=0)
    d = (d @ weights["w4"].T) * (parts > 0)
    grad["w3"], grad["b3"] = flat.T @ d, d.sum(axis=0)
    d = (d @ weights["w3"].T).reshape(pooled.shape)
    d = max_pool_gradient(d, shapes, pooled) * (shapes > 0)
    grad["b2"] = d.sum(axis=(0, 1, 2))
    d, grad["w2"] = convolution_gradient(d, strokes, weights["w2"])
    d *= strokes > 0
    grad["b1"] = d.sum(axis=(0, 1, 2))
    _, grad["w1"] = convolution_gradient(d, x, weights["w1"])
    return grad


class Adam:
    """Steps along the mean gradient, measured in its own spread (Kingma and Ba, 2015)."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.mean = {name: np.zeros_like(w) for name, w in weights.items()}
        self.square = {name: np.zeros_like(w) for name, w in weights.items()}
        self.count = 0

    def step(self, grad: Weights, rate: float) -> None:
        """Change the weights in place; matrices also decay."""
        self.count += 1
        for name, w in self.weights.items():
            mean, square, g = self.mean[name], self.square[name], grad[name]
            mean += 0.1 * (g - mean)
            square += 0.001 * (g * g - square)
            scale = np.sqrt(square / (1 - 0.999**self.count)) + 1e-8
            w -= rate * mean / (1 - 0.9**self.count) / scale
            if w.ndim > 1:
                w *= 1 - rate * DECAY


def batches(random: np.random.RandomState, digits: Digits) -> Iterator[Digits]:
    """Yield every image once, in random order, shifted by up to a pixel each way."""
    order = random.permutation(len(digits.images))
    for begin in range(0, len(order), BATCH):
        chosen = order[begin : begin + BATCH]
        padded = np.pad(digits.images[chosen], ((0, 0), (1, 1), (1, 1)))
        shifts = random.randint(0, 3, (len(chosen), 2))
        images = [p[i : i + 8, j : j + 8] for p, (i, j) in zip(padded, shifts, strict=True)]
        yield Digits(np.stack(images), digits.labels[chosen])


def train(digits: Digits) -> Weights:
    """Return weights trained on ``digits``: the same in every run on one machine."""
    random = np.random.RandomState(1)
    weights = initial(random)
    adam = Adam(weights)
    for epoch in range(EPOCHS):
        rate = RATE * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS))
        for batch in batches(random, digits):
            adam.step(gradients(weights, *batch), rate)
    return weights


def accuracy(weights: Weights, digits: Digits) -> float:
    """Return which part of ``digits`` is classified rightly."""
    return float((network(weights, digits.images)[0] == digits.labels).mean())


def main() -> None:
    """Train, say how well it went, and write the weights with --write."""
    training, held_out = load()
    began = time.perf_counter()
    weights = train(training)
    print(f"trained on {len(training.images)} images in {time.perf_counter() - began:.0f} s")
    print(f"accuracy there          {accuracy(weights, training):.4f}")
    print(f"on {len(held_out.images)} images held out  {accuracy(weights, held_out):.4f}")
    if "--write" in sys.argv[1:]:
        np.savez_compressed(WEIGHTS, **weights)  # pyright: ignore[reportArgumentType]


if __name__ == "__main__":
    main()
