"""The networks that are trained."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import models
import numpy as np
from models import IMAGE_BLOCKS, Random, Weights, linear, linear_weights, normal
from ops import Array

from training import Arrays, Task

IMAGES = 64
LENGTH, WIDTH, INNER, HEADS, LAYERS, SYMBOLS = 128, 256, 1024, 4, 4, 96
"""Of the transformer over characters."""
STEPS, HIDDEN = 100, 256
"""Of the LSTM."""


def _labels(random: Random, *shape: int, classes: int) -> Array:
    return random.integers(0, classes, shape)


def _perceptron(ops: Any, p: Weights, s: Weights, x: Mapping[str, Array]) -> Any:
    return ops.classified(models.perceptron(ops, p, x["x"]), x["labels"]), s


def _one_example(ops: Any, p: Weights, s: Weights, x: Mapping[str, Array]) -> Any:
    """The perceptron's loss of one image."""
    return _perceptron(ops, p, s, {k: v[None] for k, v in x.items()})


def _small_network(ops: Any, p: Weights, s: Weights, x: Mapping[str, Array]) -> Any:
    """LeNet-5, with ReLU and the greatest of each window."""
    h = ops.max_pool(ops.relu(ops.conv(x["x"], p["first.w"], p["first.b"], padding=2)), 2, 2, 0)
    h = ops.max_pool(ops.relu(ops.conv(h, p["second.w"], p["second.b"])), 2, 2, 0)
    h = ops.relu(linear(ops, p, "third", ops.flatten(h)))
    h = ops.relu(linear(ops, p, "fourth", h))
    return ops.classified(linear(ops, p, "fifth", h), x["labels"]), s


def _small_network_weights(random: Random) -> Arrays:
    p = models.conv_weights(random, "first", 6, 1, 5)
    p |= models.conv_weights(random, "second", 16, 6, 5)
    p |= linear_weights(random, "third", 400, 120)
    p |= linear_weights(random, "fourth", 120, 84)
    return p | linear_weights(random, "fifth", 84, 10)


def _norms() -> dict[str, int]:
    """Return the names of the batch norms of ResNet-18, and their features."""
    found = {"stem": 64}
    for k, (_, out, stride) in enumerate(IMAGE_BLOCKS):
        found |= {f"block{k}.first": out, f"block{k}.second": out}
        if stride != 1:
            found[f"block{k}.shortcut"] = out
    return found


def _residual(ops: Any, p: Weights, s: Weights, x: Mapping[str, Array]) -> Any:
    running: Arrays = {}

    def layer(name: str, x: Array, stride: int, padding: int) -> Array:
        h = ops.filtered(x, p[f"{name}.w"], stride, padding)
        mean, variance = f"{name}.mean", f"{name}.variance"
        scale, shift = p[f"{name}.scale"], p[f"{name}.shift"]
        h, running[mean], running[variance] = ops.batch_norm(h, scale, shift, s[mean], s[variance])
        return h

    h = ops.max_pool(ops.relu(layer("stem", x["x"], 2, 3)), 3, 2, 1)
    for k, (_, _, stride) in enumerate(IMAGE_BLOCKS):
        inner = ops.relu(layer(f"block{k}.first", h, stride, 1))
        inner = layer(f"block{k}.second", inner, 1, 1)
        short = layer(f"block{k}.shortcut", h, stride, 0) if stride != 1 else h
        h = ops.relu(ops.add(inner, short))
    scores = linear(ops, p, "classes", ops.image_mean(h))
    return ops.classified(scores, x["labels"]), running


def _residual_weights(random: Random) -> Arrays:
    filters = {k: v for k, v in models.resnet18_weights(random).items() if not k.endswith(".b")}
    p = filters | linear_weights(random, "classes", 512, 1000)
    for name, features in _norms().items():
        p[f"{name}.scale"] = 1 + normal(random, features, scale=0.1)
        p[f"{name}.shift"] = normal(random, features, scale=0.1)
    return p


def _residual_statistics(random: Random) -> Arrays:
    found: Arrays = {}
    for name, features in _norms().items():
        found[f"{name}.mean"] = np.zeros(features, np.float32)
        found[f"{name}.variance"] = np.ones(features, np.float32)
    return found


def _attention(ops: Any, p: Weights, name: str, x: Array, heads: int, causal: bool) -> Array:
    batch, length, width = x.shape
    split = (batch, length, heads, width // heads)
    q, k, v = (ops.reshape(linear(ops, p, f"{name}.{which}", x), split) for which in "qkv")
    return linear(ops, p, f"{name}.o", ops.reshape(ops.heads_attend(q, k, v, causal), x.shape))


def _layer_weights(random: Random, name: str, width: int, inner: int) -> Arrays:
    p: Arrays = {}
    for k in "qkvo":
        p |= linear_weights(random, f"{name}.{k}", width, width, scale=0.03)
    p |= linear_weights(random, f"{name}.up", width, inner, scale=0.03)
    p |= linear_weights(random, f"{name}.down", inner, width, scale=0.03)
    return (
        p
        | _norm_weights(random, f"{name}.norm1", width)
        | _norm_weights(random, f"{name}.norm2", width)
    )


def _norm_weights(random: Random, name: str, width: int) -> Arrays:
    scale, shift = 1 + normal(random, width, scale=0.1), normal(random, width, scale=0.1)
    return {f"{name}.scale": scale, f"{name}.shift": shift}


def _norm(ops: Any, p: Weights, name: str, x: Array) -> Array:
    return ops.layer_norm(x, p[f"{name}.scale"], p[f"{name}.shift"])


def _encoder(ops: Any, p: Weights, s: Weights, x: Mapping[str, Array]) -> Any:
    """A layer of BERT, of which the squared distance to a target is the loss."""
    h = x["x"]
    h = _norm(ops, p, "0.norm1", ops.add(h, _attention(ops, p, "0", h, models.HEADS, False)))
    inner = ops.gelu(linear(ops, p, "0.up", h))
    h = _norm(ops, p, "0.norm2", ops.add(h, linear(ops, p, "0.down", inner)))
    return ops.mean_square(ops.subtract(h, x["target"])), s


def _transformer(ops: Any, p: Weights, s: Weights, x: Mapping[str, Array]) -> Any:
    h = ops.add(ops.rows(p["symbols"], x["x"]), p["positions"])
    for k in range(LAYERS):
        given = _norm(ops, p, f"{k}.norm1", h)
        h = ops.add(h, _attention(ops, p, f"{k}", given, HEADS, True))
        inner = ops.gelu(linear(ops, p, f"{k}.up", _norm(ops, p, f"{k}.norm2", h)), by_tanh=True)
        h = ops.add(h, linear(ops, p, f"{k}.down", inner))
    scores = linear(ops, p, "next", _norm(ops, p, "norm", h))
    flat = ops.reshape(scores, (scores.shape[0] * LENGTH, SYMBOLS))
    return ops.classified(flat, ops.reshape(x["labels"], (scores.shape[0] * LENGTH,))), s


def _transformer_weights(random: Random) -> Arrays:
    p = {
        "symbols": normal(random, SYMBOLS, WIDTH, scale=0.02),
        "positions": normal(random, LENGTH, WIDTH, scale=0.02),
    }
    for k in range(LAYERS):
        p |= _layer_weights(random, f"{k}", WIDTH, INNER)
    p |= _norm_weights(random, "norm", WIDTH)
    return p | linear_weights(random, "next", WIDTH, SYMBOLS, scale=0.02)


def _recurrent(ops: Any, p: Weights, s: Weights, x: Mapping[str, Array]) -> Any:
    states = ops.lstms(x["x"], p["input"], p["state"], p["bias"])
    return ops.mean_square(ops.subtract(states, x["target"])), s


TASKS = {
    task.name: task
    for task in (
        Task(
            "mlp_b64",
            _perceptron,
            models.perceptron_weights,
            lambda r: {"x": normal(r, 64, 784), "labels": _labels(r, 64, classes=10)},
            "sgd",
            0.1,
        ),
        Task(
            "lenet_b64",
            _small_network,
            _small_network_weights,
            lambda r: {"x": normal(r, 64, 1, 28, 28), "labels": _labels(r, 64, classes=10)},
            "momentum",
            0.01,
        ),
        Task(
            "resnet18_b4",
            _residual,
            _residual_weights,
            lambda r: {"x": normal(r, 4, 3, 224, 224), "labels": _labels(r, 4, classes=1000)},
            "momentum",
            0.01,
            _residual_statistics,
        ),
        Task(
            "encoder_s128_d768_b4",
            _encoder,
            lambda r: _layer_weights(r, "0", models.WIDTH, models.INNER),
            lambda r: {k: normal(r, 4, models.LENGTH, models.WIDTH) for k in ("x", "target")},
            "adam",
            1e-4,
        ),
        Task(
            "characters_l4_d256_s128_b16",
            _transformer,
            _transformer_weights,
            lambda r: {k: _labels(r, 16, LENGTH, classes=SYMBOLS) for k in ("x", "labels")},
            "adam",
            3e-4,
        ),
        Task(
            "lstm_t100_h256_b16",
            _recurrent,
            lambda r: models.lstm_weights(r, HIDDEN),
            lambda r: {k: normal(r, STEPS, 16, HIDDEN) for k in ("x", "target")},
            "adam",
            1e-3,
        ),
        Task(
            "examples_mlp_b64",
            _one_example,
            models.perceptron_weights,
            lambda r: {"x": normal(r, 64, 784), "labels": _labels(r, 64, classes=10)},
            "examples",
        ),
    )
}

WARM_UP = Task(
    "warm_up",
    lambda ops, p, s, x: (ops.mean_square(linear(ops, p, "layer", x["x"])), s),
    lambda r: linear_weights(r, "layer", 4, 4),
    lambda r: {"x": normal(r, 4, 4)},
    "adam",
    0.1,
)
"""What is trained before memory is looked at, so that all that a library needs once is there."""


def chosen(patterns: str) -> list[Task]:
    """Return the tasks whose names match one of the patterns, separated by commas."""
    wanted = [p for p in patterns.split(",") if p]
    return [t for t in TASKS.values() if any(fnmatchcase(t.name, p) for p in wanted)]
