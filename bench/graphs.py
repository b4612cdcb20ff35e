"""Two graphs of 500 operations: layers that repeat, and layers no two of which are alike."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

import stepwell.numpy as snp

ROWS = 128
LAYERS = 25
"""With 20 operations each."""


def layer(x: Any, first: Any, second: Any) -> Any:
    """Return a normalised, projected and softmaxed `x`: matmuls, reductions, reshapes, the rest."""
    h = snp.reshape(x @ first, (8, 16, first.shape[1])) * 0.5 + 1.0
    centred = h - snp.mean(h, axis=2, keepdims=True)
    variance = snp.mean(centred * centred, axis=2, keepdims=True)
    h = snp.reshape(centred / snp.sqrt(variance + 1e-5), (ROWS, first.shape[1]))
    h = snp.maximum(h, 0.0) @ second
    e = snp.exp(h - snp.max(h, axis=1, keepdims=True))
    return h + 0.1 * (e / snp.sum(e, axis=1, keepdims=True))


def repeated(x: Any, first: Any, second: Any) -> Any:
    """Return `x` after layers of one shape."""
    for _ in range(LAYERS):
        x = layer(x, first, second)
    return x


def distinct(x: Any, *weights: Any) -> Any:
    """Return `x` after layers that are each a little wider than the one before."""
    for first, second in zip(weights[::2], weights[1::2], strict=True):
        x = layer(x, first, second)
    return x


def arguments(name: str) -> list[Any]:
    """Return what the graph of that name is called with."""
    widths = [64] * 2 if name == "repeated" else [32 + k for k in range(LAYERS + 1)]
    shapes = [shape for w, v in pairwise(widths) for shape in ((w, v), (v, v))]
    random = np.random.default_rng(0)
    return [random.standard_normal(shape, np.float32) / 8 for shape in [(ROWS, widths[0]), *shapes]]
