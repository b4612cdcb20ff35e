"""What a token costs a decoder whose cache of keys and values is updated in place, and copied.

`python bench/decoding.py` prints a row for each length of the cache: the step works in the caller's
cache, is given one to donate, or returns a changed copy. Calls of the three alternate; the least of
many is printed, and how many copies of the cache the program makes (those of a row do not count).
`--weights bf16` stores the weights as bf16.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import stepwell as sw

LAYERS, WIDTH, HEADS = 12, 768, 12
LENGTHS = (128, 512, 1024)
ROUNDS = 30
KINDS: dict[str, Any] = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16}


def norm(x: Any) -> Any:
    """Return ``x`` with mean 0 and variance 1."""
    x = x - x.mean()
    return x / np.sqrt((x * x).mean() + np.float32(1e-5))


def attention(q: Any, keys: Any, values: Any, position: Any) -> Any:
    """Return what the query attends to, among the tokens up to ``position``."""
    scores = np.einsum("hs,hns->hn", q, keys) / np.float32((WIDTH // HEADS) ** 0.5)
    scores = np.where(np.arange(keys.shape[1]) <= position, scores, np.float32(-1e9))
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return np.einsum("hn,hns->hs", weights, values).reshape(WIDTH)


def in_place(layers: Any, cache: Any, x: Any, position: Any) -> Any:
    """Return the next state; a layer writes its keys and values into the cache."""
    for number, p in enumerate(layers):
        h = norm(x)
        cache[number, 0, :, position] = (h @ p["k"]).reshape(HEADS, -1)
        cache[number, 1, :, position] = (h @ p["v"]).reshape(HEADS, -1)
        q = (h @ p["q"]).reshape(HEADS, -1)
        x = x + attention(q, cache[number, 0], cache[number, 1], position) @ p["o"]
        x = x + np.maximum(norm(x) @ p["up"], np.float32(0)) @ p["down"]
    return x


def functional(layers: Any, cache: Any, x: Any, position: Any) -> Any:
    """Return the next state and the cache with the new keys and values."""
    for number, p in enumerate(layers):
        h = norm(x)
        cache = cache.at[number, 0, :, position].set((h @ p["k"]).reshape(HEADS, -1))
        cache = cache.at[number, 1, :, position].set((h @ p["v"]).reshape(HEADS, -1))
        q = (h @ p["q"]).reshape(HEADS, -1)
        x = x + attention(q, cache[number, 0], cache[number, 1], position) @ p["o"]
        x = x + np.maximum(norm(x) @ p["up"], np.float32(0)) @ p["down"]
    return x, cache


def parameters(kind: str) -> list[dict[str, Any]]:
    """Return weights of a decoder that has learnt nothing."""
    random = np.random.default_rng(0)
    shapes = {name: (WIDTH, WIDTH) for name in "qkvo"}
    shapes |= {"up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}

    def layer() -> dict[str, Any]:
        return {
            name: (random.standard_normal(shape, np.float32) / np.float32(shape[0] ** 0.5)).astype(
                KINDS[kind]
            )
            for name, shape in shapes.items()
        }

    return [layer() for _ in range(LAYERS)]


def copies(function: Any, *arguments: Any) -> int:
    """Return how many copies of something as large as the cache a program makes, but on entry."""
    text = function.trace(*arguments).lower("buffers").text
    whole = "x".join(map(str, arguments[1].shape))
    found = re.findall(rf"memref\.copy %\w+, (%\w+) : memref<{whole}xf32>[^\n]*", text)
    entry = re.search(r"(%\w+): memref<[^>]*> \{nd\.into", text)
    return sum(into != (entry[1] if entry else "") for into in found)


def measured(length: int, layers: Any) -> str:
    """Return the row of one length."""
    random = np.random.default_rng(1)
    shape = (LAYERS, 2, HEADS, length, WIDTH // HEADS)
    cache = random.standard_normal(shape, np.float32)
    x, position = random.standard_normal(WIDTH, np.float32), length // 2
    steps = {
        "in place": sw.jit(in_place),
        "donated": sw.jit(functional, donate_argnames="cache"),
        "copied": sw.jit(functional),
    }
    counted = {name: copies(f, layers, cache, x, position) for name, f in steps.items()}
    want = steps["copied"](layers, cache, x, position)[0]
    calls: dict[str, Callable[[], Any]] = {
        name: (lambda f=f: f(layers, cache, x, position)) for name, f in steps.items()
    }
    np.testing.assert_allclose(calls["in place"](), want, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(calls["donated"]()[0], want, rtol=1e-4, atol=1e-4)
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(ROUNDS):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - start)
    cells = [f"{best[name] * 1e3:.1f} ms ({counted[name]})" for name in calls]
    return f"| {length} ({cache.nbytes / 1e6:.0f} MB) | {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", choices=KINDS, default="f32", help="how they are stored")
    layers = parameters(parser.parse_args().weights)
    print(
        "| tokens | in place (copies of the cache) | donated | copied |",
        "|---|---|---|---|",
        sep="\n",
    )
    for length in LENGTHS:
        print(measured(length, layers), flush=True)


if __name__ == "__main__":
    main()
