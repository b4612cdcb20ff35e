"""A transformer learns to write Python's documentation, one character after another.

python examples/character_model/train.py [--steps 400] [--layers 3]

The text is in every Python: what `help("topics")` shows, 460 thousand characters. A step (forward,
backward, Adam) is one compiled program, which keeps the parameters in the memory they have; a
sample is another, whose loop over characters is compiled too.
"""

from __future__ import annotations

import argparse
import sys
import time
from pydoc_data.topics import topics
from typing import Any

import numpy as np
from numpy.typing import NDArray

import stepwell as sw

WIDTH, HEADS = 192, 6
CONTEXT, BATCH = 64, 16
HELD_OUT = 0.1
"""Which part of the text, its end, is not learnt from."""


def read() -> tuple[NDArray[np.int32], str]:
    """Return the text as numbers of its characters, and these in order."""
    text = "\n".join(topics[name] for name in sorted(topics))
    alphabet = "".join(sorted(set(text)))
    number = {character: k for k, character in enumerate(alphabet)}
    return np.array([number[character] for character in text], np.int32), alphabet


@sw.jit(static_argnames=("characters", "layers"))
def initial(key: Any, characters: int, layers: int) -> Any:
    """Return the parameters of a model that has learnt nothing."""
    keys = iter(sw.random.split(key, 4 * layers + 1))
    matrix, ones = sw.nn.initializers.lecun_normal(), sw.nn.initializers.ones

    def block() -> Any:
        return {
            "norm1": ones(None, (WIDTH,)),
            "qkv": matrix(next(keys), (WIDTH, 3 * WIDTH)),
            "out": matrix(next(keys), (WIDTH, WIDTH)),
            "norm2": ones(None, (WIDTH,)),
            "up": matrix(next(keys), (WIDTH, 4 * WIDTH)),
            "down": matrix(next(keys), (4 * WIDTH, WIDTH)),
        }

    return {
        "characters": sw.nn.initializers.normal(0.02)(next(keys), (characters, WIDTH)),
        "blocks": [block() for _ in range(layers)],
        "norm": ones(None, (WIDTH,)),
    }


def block(p: Any, x: Any) -> Any:
    """Return what a layer makes of ``x``, (batch, length, WIDTH)."""
    batch, length, _ = x.shape
    parts = sw.nn.dense(sw.nn.rms_norm(x, p["norm1"]), p["qkv"])
    parts = parts.reshape(batch, length, 3, HEADS, WIDTH // HEADS)
    q, k, v = parts[:, :, 0], parts[:, :, 1], parts[:, :, 2]
    q, k = sw.nn.rotary_embedding(q), sw.nn.rotary_embedding(k)
    seen = sw.nn.dot_product_attention(q, k, v, is_causal=True)
    x = x + sw.nn.dense(seen.reshape(batch, length, WIDTH), p["out"])
    wide = sw.nn.gelu(sw.nn.dense(sw.nn.rms_norm(x, p["norm2"]), p["up"]))
    return x + sw.nn.dense(wide, p["down"])


def scores(params: Any, tokens: Any) -> Any:
    """Return for each place how probable each character is to follow, as logits."""
    x = sw.nn.embedding(tokens, params["characters"])
    for p in params["blocks"]:
        x = block(p, x)
    return sw.nn.dense(sw.nn.rms_norm(x, params["norm"]), params["characters"].T)


def loss(params: Any, tokens: Any) -> Any:
    """Return the mean of how surprising each character is after those before it."""
    logits = scores(params, tokens[:, :-1])
    return sw.nn.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()


def trained(numbers: NDArray[np.int32], params: Any, steps: int) -> tuple[Any, list[float], float]:
    """Return what was learnt in so many steps, the loss of each, and the seconds they took."""
    rate = sw.optim.warmup_cosine_decay_schedule(0.0, 3e-3, max(steps // 10, 1), steps, 3e-4)
    adam = sw.optim.chain(sw.optim.clip_by_global_norm(1.0), sw.optim.adam(rate, b2=0.98))

    @sw.jit(donate_argnames=("params", "state"))
    def step(params: Any, state: Any, tokens: Any) -> Any:
        found, gradient = sw.value_and_grad(loss)(params, tokens)
        updates, state = adam.update(gradient, state, params)
        return sw.optim.apply_updates(params, updates), state, found

    random = np.random.default_rng(0)
    state, losses, start = adam.init(params), list[float](), time.perf_counter()
    for k in range(steps):
        tokens = batch(numbers, random)
        params, state, found = step(params, state, tokens)
        losses.append(float(found))
        if k == 0:
            print(f"compiled in {time.perf_counter() - start:.1f} s", flush=True)
            start = time.perf_counter()
        if k % 20 == 0 or k == steps - 1:
            print(f"step {k}: loss {np.mean(losses[-20:]):.3f}", flush=True)
    return params, losses, time.perf_counter() - start


def batch(numbers: NDArray[np.int32], random: np.random.Generator) -> NDArray[np.int32]:
    """Return pieces of the text, each a character longer than the context."""
    starts = random.integers(0, len(numbers) - CONTEXT - 1, BATCH)
    return numbers[starts[:, None] + np.arange(CONTEXT + 1)]


@sw.jit(static_argnames="count")
def sample(params: Any, start: Any, key: Any, count: int) -> Any:
    """Return ``count`` characters that follow those of ``start``, (CONTEXT,)."""

    def one(seen: Any, key: Any) -> Any:
        logits = scores(params, seen[None])[0, -1]
        drawn = sw.random.categorical(key, logits / 0.8).astype(seen.dtype)
        return np.concatenate([seen[1:], drawn[None]]), drawn

    return sw.lax.scan(one, start, sw.random.split(key, count))[1]


def main() -> int:
    """Train, and show what was learnt."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--layers", type=int, default=3)
    options = parser.parse_args()
    steps: int = options.steps
    numbers, alphabet = read()
    learnt, held = np.split(numbers, [int(len(numbers) * (1 - HELD_OUT))])
    params = initial(sw.random.key(0), len(alphabet), options.layers)
    count = sum(leaf.size for leaf in sw.tree.leaves(params))
    print(f"{len(numbers)} characters, {len(alphabet)} kinds; {count} parameters")
    params, losses, seconds = trained(learnt, params, steps)
    print(f"{(steps - 1) * BATCH * CONTEXT / seconds:.0f} characters a second")
    random = np.random.default_rng(1)
    surprise = float(np.mean([sw.jit(loss)(params, batch(held, random)) for _ in range(8)]))
    print(f"held out: loss {surprise:.3f}, {surprise / np.log(2):.2f} bits a character")
    written = sample(params, held[:CONTEXT], sw.random.key(1), 200)
    print("".join(alphabet[k] for k in (*held[:CONTEXT], *written)))
    guess = np.log(len(alphabet))
    assert abs(losses[0] - guess) < 0.5, "at first nothing is known"
    assert surprise < 0.75 * guess, "a model that learnt knows what a character is likely to be"
    return 0


if __name__ == "__main__":
    sys.exit(main())
