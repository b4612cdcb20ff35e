"""Functions of one example, and the same written for a batch: what `vmap` is compared with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from models import Random, normal

import stepwell as sw
import stepwell.numpy as snp

BATCH = 64


@dataclass(frozen=True)
class Function:
    """A function of one example, and of a batch."""

    name: str
    of_one: Callable[..., Any]
    by_hand: Callable[..., Any]
    inputs: Callable[[Random], tuple[Any, ...]]
    in_axes: Any = 0


def dense(x: Any, w: Any, b: Any) -> Any:
    """Return a layer's activations, for an example or many."""
    return sw.nn.relu(x @ w + b)


def layers(x: Any, *weights: Any) -> Any:
    """Return what three layers make of an example or many."""
    for w in weights:
        x = sw.nn.relu(x @ w)
    return x


def softmax(x: Any) -> Any:
    """Return the shares of a row, or of many."""
    return sw.nn.softmax(x, axis=-1)


def norm(x: Any, scale: Any, bias: Any) -> Any:
    """Normalize a row or many."""
    return sw.nn.layer_norm(x, scale, bias)


def attention(q: Any, k: Any, v: Any) -> Any:
    """Return what queries attend to, (..., length, width)."""
    scores = q @ snp.matrix_transpose(k) * q.shape[-1] ** -0.5
    return sw.nn.softmax(scores, axis=-1) @ v


def image(x: Any, w: Any) -> Any:
    """Convolve one image."""
    return sw.nn.conv(x[None], w, padding=1)[0]


def images(x: Any, w: Any) -> Any:
    """Convolve many."""
    return sw.nn.conv(x, w, padding=1)


def bag(table: Any, places: Any) -> Any:
    """Return the sum of some rows of a table."""
    return snp.sum(snp.take(table, places, axis=0), axis=0)


def bags(table: Any, places: Any) -> Any:
    """Return the sums of many such."""
    return snp.sum(snp.take(table, places, axis=0), axis=1)


def recurrence(xs: Any, w: Any) -> Any:
    """Return the last state of a network that runs over a sequence, (length, width)."""

    def step(h: Any, x: Any) -> Any:
        return snp.tanh(h @ w + x), None

    return sw.lax.scan(step, snp.zeros_like(xs[0]), xs)[0]


def recurrences(xs: Any, w: Any) -> Any:
    """Run over many sequences, (batch, length, width)."""
    return recurrence(snp.permute_dims(xs, (1, 0, 2)), w)


def ranked(x: Any) -> Any:
    """Return the running sums of what is sorted, along the last axis."""
    return snp.cumulative_sum(snp.sort(x, axis=-1), axis=-1)


def form(x: Any, a: Any) -> Any:
    """Return a quadratic form."""
    return snp.where(snp.sum(x) > 0, x @ a @ x, snp.float32(0))


def forms(x: Any, a: Any) -> Any:
    """Return many."""
    return snp.where(snp.sum(x, axis=1) > 0, snp.sum((x @ a) * x, axis=1), snp.float32(0))


FUNCTIONS = (
    Function(
        "dense",
        dense,
        dense,
        lambda r: (normal(r, BATCH, 512), normal(r, 512, 512), normal(r, 512)),
        (0, None, None),
    ),
    Function(
        "mlp",
        layers,
        layers,
        lambda r: (normal(r, BATCH, 512), *(normal(r, 512, 512, scale=0.06) for _ in range(3))),
        (0, None, None, None),
    ),
    Function("softmax", softmax, softmax, lambda r: (normal(r, BATCH, 16384),)),
    Function(
        "layer_norm",
        norm,
        norm,
        lambda r: (normal(r, BATCH, 128, 96), normal(r, 96), normal(r, 96)),
        (0, None, None),
    ),
    Function(
        "attention",
        attention,
        attention,
        lambda r: tuple(normal(r, BATCH, 128, 64) for _ in range(3)),
    ),
    Function(
        "convolution",
        image,
        images,
        lambda r: (normal(r, BATCH, 16, 28, 28), normal(r, 16, 16, 3, 3)),
        (0, None),
    ),
    Function(
        "rows of a table",
        bag,
        bags,
        lambda r: (normal(r, 4096, 256), r.integers(0, 4096, (BATCH, 32))),
        (None, 0),
    ),
    Function(
        "recurrence",
        recurrence,
        recurrences,
        lambda r: (normal(r, BATCH, 50, 128), normal(r, 128, 128, scale=0.08)),
        (0, None),
    ),
    Function("sorted sums", ranked, ranked, lambda r: (normal(r, BATCH, 4096),)),
    Function(
        "quadratic forms",
        form,
        forms,
        lambda r: (normal(r, BATCH, 512), normal(r, 512, 512)),
        (0, None),
    ),
)
