"""A decoder of text, one token after another, with a cache of keys and values that it writes to.

`step` is NumPy alone. Under `sw.jit` it works in the caller's cache: a token costs its own row.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import stepwell as sw

LAYERS, HEADS, WIDTH, WORDS, LONGEST = 4, 4, 128, 500, 64


def norm(x: Any, scale: Any, shift: Any) -> Any:
    """Return ``x`` with mean 0 and variance 1, scaled and shifted."""
    centred = x - x.mean()
    return centred / np.sqrt((centred * centred).mean() + np.float32(1e-5)) * scale + shift


def attention(q: Any, keys: Any, values: Any, position: Any) -> Any:
    """Return what the heads of one token take from the tokens up to it."""
    size = WIDTH // HEADS
    q = q.reshape(HEADS, size)
    keys = keys.reshape(LONGEST, HEADS, size).transpose(1, 2, 0)
    values = values.reshape(LONGEST, HEADS, size).transpose(1, 0, 2)
    scores = (q[:, None, :] @ keys)[:, 0] / np.float32(size**0.5)
    scores = np.where(np.arange(LONGEST) <= position, scores, np.float32(-1e9))
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return (weights[:, None, :] @ values).reshape(WIDTH)


def step(params: Any, keys: Any, values: Any, token: Any, position: Any) -> Any:
    """Return scores for the word after ``token``; the caches take its keys and values."""
    x = params["words"][token] + params["places"][position]
    for layer in range(LAYERS):
        p = params["layers"][layer]
        h = norm(x, p["scale1"], p["shift1"])
        keys[layer, position] = h @ p["k"]
        values[layer, position] = h @ p["v"]
        x = x + attention(h @ p["q"], keys[layer], values[layer], position) @ p["o"]
        h = norm(x, p["scale2"], p["shift2"])
        x = x + np.maximum(h @ p["up"], np.float32(0)) @ p["down"]
    return params["words"] @ x


def parameters() -> Any:
    """Return the parameters of a decoder that has learnt nothing."""
    random = np.random.default_rng(0)

    def matrix(n: int, m: int) -> Any:
        return (random.standard_normal((n, m)) / n**0.5).astype(np.float32)

    def layer() -> Any:
        vectors = {f"{name}{k}": np.ones(WIDTH, np.float32) for name in ("scale",) for k in (1, 2)}
        vectors |= {f"shift{k}": np.zeros(WIDTH, np.float32) for k in (1, 2)}
        square = {name: matrix(WIDTH, WIDTH) for name in "qkvo"}
        return {**vectors, **square, "up": matrix(WIDTH, 512), "down": matrix(512, WIDTH)}

    return {
        "words": matrix(WORDS, WIDTH),
        "places": matrix(LONGEST, WIDTH),
        "layers": [layer() for _ in range(LAYERS)],
    }


def decode(function: Any, params: Any, count: int) -> tuple[list[int], float]:
    """Return the words that follow the first, and the seconds that each took."""
    keys, values = (np.zeros((LAYERS, LONGEST, WIDTH), np.float32) for _ in range(2))
    token, words = 1, [1]
    function(params, keys, values, token, 0)
    start = time.perf_counter()
    for position in range(count):
        token = int(np.argmax(function(params, keys, values, token, position)))
        words.append(token)
    return words, (time.perf_counter() - start) / count


def main() -> None:
    """Decode with NumPy and with the compiled step."""
    params = parameters()
    expected, plain = decode(step, params, 40)
    words, seconds = decode(sw.jit(step), params, 40)
    assert words == expected
    print(f"decoder: {seconds * 1e6:.0f} us a token, in NumPy {plain * 1e6:.0f} us")


if __name__ == "__main__":
    main()
