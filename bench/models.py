"""Networks of several operations, and their weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from ops import Array, Ops

Weights = Mapping[str, Array]
Random = np.random.Generator

IMAGE_BLOCKS = (
    (64, 64, 1),
    (64, 64, 1),
    (64, 128, 2),
    (128, 128, 1),
    (128, 256, 2),
    (256, 256, 1),
    (256, 512, 2),
    (512, 512, 1),
)
"""Features in and out, and stride, of the blocks of ResNet-18."""
PERCEPTRON = (784, 512, 512, 10)
LENGTH, WIDTH, HEADS, INNER, LAYERS = 128, 768, 12, 3072, 12
"""Of BERT-base."""


def normal(random: Random, *shape: int, scale: float = 1.0) -> Array:
    """Return normally distributed float32."""
    return random.standard_normal(shape, np.float32) * np.float32(scale)


def linear_weights(
    random: Random, name: str, width: int, out: int, scale: float = 0.0
) -> dict[str, Array]:
    """Return NAME.w and NAME.b for `Ops.linear`."""
    w = normal(random, width, out, scale=scale or (2 / width) ** 0.5)
    return {f"{name}.w": w, f"{name}.b": normal(random, out, scale=0.01)}


def linear(ops: Ops, p: Weights, name: str, x: Array) -> Array:
    """Return x @ NAME.w + NAME.b."""
    return ops.linear(x, p[f"{name}.w"], p[f"{name}.b"])


def conv_weights(
    random: Random, name: str, out: int, features: int, size: int, scale: float = 1.0
) -> dict[str, Array]:
    """Return NAME.w and NAME.b for `Ops.conv`."""
    deviation = scale * (2 / (features * size * size)) ** 0.5
    w = normal(random, out, features, size, size, scale=deviation)
    return {f"{name}.w": w, f"{name}.b": normal(random, out, scale=0.01)}


def conv(ops: Ops, p: Weights, name: str, x: Array, **options: int) -> Array:
    """Convolve with NAME.w and add NAME.b."""
    return ops.conv(x, p[f"{name}.w"], p[f"{name}.b"], **options)


def perceptron_weights(random: Random) -> dict[str, Array]:
    """Return the weights of three layers."""
    p: dict[str, Array] = {}
    for k in range(3):
        p |= linear_weights(random, f"layer{k}", PERCEPTRON[k], PERCEPTRON[k + 1])
    return p


def perceptron(ops: Ops, p: Weights, x: Array) -> Array:
    """Return the scores of ten classes."""
    h = ops.relu(linear(ops, p, "layer0", x))
    h = ops.relu(linear(ops, p, "layer1", h))
    return linear(ops, p, "layer2", h)


def perceptron_step(
    ops: Ops, p: Weights, x: Array, shares: Array, rate: float
) -> tuple[Array, ...]:
    """Return the loss and the weights after a step down its gradient, written out."""
    z0 = linear(ops, p, "layer0", x)
    h0 = ops.relu(z0)
    z1 = linear(ops, p, "layer1", h0)
    h1 = ops.relu(z1)
    scores = linear(ops, p, "layer2", h1)
    d2 = ops.scale(ops.subtract(ops.softmax(scores), shares), 1 / x.shape[0])
    back = ops.matmul(d2, ops.transpose(p["layer2.w"], (1, 0)))
    d1 = ops.multiply(back, ops.positive(z1))
    back = ops.matmul(d1, ops.transpose(p["layer1.w"], (1, 0)))
    d0 = ops.multiply(back, ops.positive(z0))
    stepped: list[Array] = [ops.cross_entropy(scores, shares)]
    for k, (given, d) in enumerate(((x, d0), (h0, d1), (h1, d2))):
        slope = ops.matmul(ops.transpose(given, (1, 0)), d)
        stepped.append(ops.subtract(p[f"layer{k}.w"], ops.scale(slope, rate)))
        stepped.append(ops.subtract(p[f"layer{k}.b"], ops.scale(ops.sum_rows(d), rate)))
    return tuple(stepped)


def block_weights(
    random: Random, name: str, features: int, out: int, stride: int
) -> dict[str, Array]:
    """Return the weights of a block of ResNet-18."""
    p = conv_weights(random, f"{name}.first", out, features, 3)
    p |= conv_weights(random, f"{name}.second", out, out, 3, scale=0.3)
    if stride != 1:
        p |= conv_weights(random, f"{name}.shortcut", out, features, 1)
    return p


def block(ops: Ops, p: Weights, name: str, x: Array, stride: int) -> Array:
    """Return a block of ResNet-18, batch norms folded."""
    h = ops.relu(conv(ops, p, f"{name}.first", x, stride=stride, padding=1))
    h = conv(ops, p, f"{name}.second", h, padding=1)
    short = conv(ops, p, f"{name}.shortcut", x, stride=stride) if stride != 1 else x
    return ops.relu(ops.add(h, short))


def resnet18_weights(random: Random) -> dict[str, Array]:
    """Return the weights of ResNet-18."""
    p = conv_weights(random, "stem", 64, 3, 7)
    for k, sizes in enumerate(IMAGE_BLOCKS):
        p |= block_weights(random, f"block{k}", *sizes)
    return p | linear_weights(random, "classes", 512, 1000)


def resnet18(ops: Ops, p: Weights, x: Array) -> Array:
    """Return the scores of a thousand classes."""
    h = ops.relu(conv(ops, p, "stem", x, stride=2, padding=3))
    h = ops.max_pool(h, 3, 2, 1)
    for k, (_, _, stride) in enumerate(IMAGE_BLOCKS):
        h = block(ops, p, f"block{k}", h, stride)
    return linear(ops, p, "classes", ops.image_mean(h))


def inverted_residual_weights(random: Random) -> dict[str, Array]:
    """Return the weights of a block of MobileNetV2 with 24 features."""
    return {
        **conv_weights(random, "expand", 144, 24, 1),
        **conv_weights(random, "each", 144, 1, 3),
        **conv_weights(random, "project", 24, 144, 1),
    }


def inverted_residual(ops: Ops, p: Weights, x: Array) -> Array:
    """Return a block of MobileNetV2."""
    h = ops.relu6(conv(ops, p, "expand", x))
    h = ops.relu6(conv(ops, p, "each", h, padding=1, groups=144))
    return ops.add(conv(ops, p, "project", h), x)


def attention_weights(random: Random, name: str = "") -> dict[str, Array]:
    """Return the weights of attention with its four projections."""
    p: dict[str, Array] = {}
    for k in "qkvo":
        p |= linear_weights(random, f"{name}{k}", WIDTH, WIDTH, scale=0.03)
    return p


def attention(ops: Ops, p: Weights, x: Array, name: str = "") -> Array:
    """Return attention of a sequence to itself."""

    def heads(k: str) -> Array:
        projected = linear(ops, p, f"{name}{k}", x)
        split = ops.reshape(projected, (1, LENGTH, HEADS, WIDTH // HEADS))
        return ops.transpose(split, (0, 2, 1, 3))

    mixed = ops.attention(heads("q"), heads("k"), heads("v"), (WIDTH // HEADS) ** -0.5)
    joined = ops.reshape(ops.transpose(mixed, (0, 2, 1, 3)), (1, LENGTH, WIDTH))
    return linear(ops, p, f"{name}o", joined)


def encoder_weights(random: Random, name: str = "") -> dict[str, Array]:
    """Return the weights of a layer of BERT."""
    p = attention_weights(random, name)
    p |= linear_weights(random, f"{name}up", WIDTH, INNER, scale=0.03)
    p |= linear_weights(random, f"{name}down", INNER, WIDTH, scale=0.03)
    for norm in ("norm1", "norm2"):
        p[f"{name}{norm}.scale"] = 1 + normal(random, WIDTH, scale=0.1)
        p[f"{name}{norm}.shift"] = normal(random, WIDTH, scale=0.1)
    return p


def encoder(ops: Ops, p: Weights, x: Array, name: str = "") -> Array:
    """Return a layer of BERT."""

    def norm(which: str, of: Array) -> Array:
        scale, shift = p[f"{name}{which}.scale"], p[f"{name}{which}.shift"]
        return ops.layer_norm(of, scale, shift)

    h = norm("norm1", ops.add(x, attention(ops, p, x, name)))
    inner = ops.gelu(linear(ops, p, f"{name}up", h))
    return norm("norm2", ops.add(h, linear(ops, p, f"{name}down", inner)))


def bert_weights(random: Random) -> dict[str, Array]:
    """Return the weights of the twelve layers of BERT-base."""
    p: dict[str, Array] = {}
    for k in range(LAYERS):
        p |= encoder_weights(random, f"layer{k}.")
    return p


def bert(ops: Ops, p: Weights, x: Array) -> Array:
    """Return what BERT-base makes of an embedded sequence."""
    for k in range(LAYERS):
        x = encoder(ops, p, x, f"layer{k}.")
    return x


def lstm_weights(random: Random, width: int) -> dict[str, Array]:
    """Return the weights of an LSTM."""
    return {
        "input": normal(random, width, 4 * width, scale=0.06),
        "state": normal(random, width, 4 * width, scale=0.06),
        "bias": normal(random, 4 * width, scale=0.1),
    }


def rotation(random: Random, n: int) -> Any:
    """Return an orthogonal matrix, whose powers neither grow nor vanish."""
    q, _ = np.linalg.qr(random.standard_normal((n, n)))
    return q.astype(np.float32)
