"""Arguments whose memory results take over, and a decoder's cache that grows in place."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import stepwell as sw


def step(cache: Any, position: Any, row: Any) -> Any:
    cache = cache.at[:, position].set(row)
    return cache, cache.sum(axis=1)


def test_a_donated_argument_is_the_result() -> None:
    jitted = sw.jit(step, donate_argnames="cache")
    cache, wanted = np.zeros((2, 5, 3)), np.zeros((2, 5, 3))
    for position in range(5):
        row = np.full((2, 3), position + 1.0)
        wanted[:, position] = row
        found, sums = jitted(cache, position, row)
        assert found is cache
        np.testing.assert_array_equal(cache, wanted)
        np.testing.assert_array_equal(sums, wanted.sum(axis=1))


def test_without_it_arguments_stay_what_they_are() -> None:
    jitted, cache = sw.jit(step), np.zeros((2, 5, 3))
    for _ in range(2):
        found, _ = jitted(cache, 1, np.ones((2, 3)))
        assert found is not cache and not cache.any()


def test_what_cannot_be_worked_in_is_left_as_it_is() -> None:
    jitted = sw.jit(step, donate_argnums=0)
    row = np.ones((2, 3))
    read_only = np.zeros((2, 5, 3))
    read_only.flags.writeable = False
    turned, shared = np.zeros((3, 5, 2)).T, np.zeros((2, 5, 3))
    wanted = np.zeros((2, 5, 3))
    wanted[:, 1] = 1
    for _ in range(2):
        found, _ = jitted(read_only, 1, row)
        np.testing.assert_array_equal(found, wanted)
        assert not read_only.any()
        found, _ = jitted(turned, 1, row)
        np.testing.assert_array_equal(found, wanted)
        shared[...] = 0
        shared[:, 4] = 1
        found, _ = jitted(shared, 1, shared[:, 4])  # not contiguous
        np.testing.assert_array_equal(found[:, 1], row)


def test_results_are_matched_by_type_and_order() -> None:
    @sw.jit(donate_argnames=("a", "b", "c"))
    def turned(a: Any, b: Any, c: Any) -> Any:
        return b + 1.0, (a * 2.0, c.sum())

    a, b, c = np.ones(3), np.full(3, 2.0), np.ones((2, 2))
    for _ in range(2):
        a[...], b[...] = 1.0, 2.0
        first, (second, _) = turned(a, b, c)
        assert first is a and second is b
        np.testing.assert_array_equal(a, np.full(3, 3.0))
        np.testing.assert_array_equal(b, np.full(3, 2.0))
        np.testing.assert_array_equal(c, np.ones((2, 2)))


def test_what_is_of_no_use_is_told(caplog: pytest.LogCaptureFixture) -> None:
    jitted = sw.jit(lambda x: x.sum(), donate_argnames="x")
    with caplog.at_level(logging.WARNING, "stepwell"):
        jitted(np.ones(3))
    assert "the donated argument 'x' is used by no result" in caplog.text


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="the function has no argument y to donate"):
        sw.jit(lambda x: x, donate_argnames="y")
    with pytest.raises(ValueError, match="x: a static argument is no data to donate"):
        sw.jit(lambda x: x, donate_argnames="x", static_argnames="x")


def decode(cache: Any, position: Any, x: Any, weights: Any) -> Any:
    layers, _, heads, _, depth = cache.shape
    for layer in range(layers):
        q, k, v = ((x @ weights[layer, n]).reshape(heads, depth) for n in range(3))
        cache[layer, 0, :, position] = k
        cache[layer, 1, :, position] = v
        scores = np.einsum("hd,htd->ht", q, cache[layer, 0]) * np.float32(0.25)
        scores = np.where(np.arange(cache.shape[3]) <= position, scores, np.float32(-1e30))
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        p = p / p.sum(axis=1, keepdims=True)
        x = x + np.einsum("ht,htd->hd", p, cache[layer, 1]).reshape(heads * depth)
    return x


@pytest.mark.parametrize("layers", [2, 10])
def test_a_cache_costs_a_token(layers: int) -> None:
    """Nothing as large as a layer's part of the cache is copied or made, however long it is."""
    rng, jitted = np.random.default_rng(0), sw.jit(decode)
    weights = rng.standard_normal((layers, 3, 32, 32)).astype(np.float32) * 0.1
    cache = np.zeros((layers, 2, 4, 33, 8), np.float32)
    wanted = cache.copy()
    for position in (0, 1, 7, 32):
        x = rng.standard_normal(32).astype(np.float32)
        found, expected = jitted(cache, position, x, weights), decode(wanted, position, x, weights)
        np.testing.assert_allclose(cache, wanted, atol=1e-5)
        np.testing.assert_allclose(found, expected, atol=1e-4)
    text = jitted.trace(cache, 3, x, weights).lower("buffers").text
    for line in text.splitlines():
        if "memref.copy" in line and not line.strip().startswith("memref.copy %cache, "):
            assert "x33x" not in line.partition(" to ")[2].partition("strided")[0], line
        if "memref.view %arena" in line or "memref.alloc" in line:
            assert "33x8" not in line, line


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_on_opencl(steps: int) -> None:
    """Arguments are worked on in place there too: the device has one buffer for both."""
    pytest.importorskip("pyopencl")

    def swap(u: Any, v: Any, n: Any) -> Any:
        i = 0
        while i < n:
            v[1:-1] = (u[2:] + u[:-2]) * 0.5
            u, v = v, u
            i += 1
        return u + 0

    u, v = np.arange(10.0) ** 2, np.ones(20)[::2]
    a, b = u.copy(), v.copy()
    want = swap(a, b, steps)
    np.testing.assert_array_equal(sw.jit(target="opencl")(swap)(u, v, steps), want)
    np.testing.assert_array_equal(u, a)
    np.testing.assert_array_equal(v, b)
    cache = np.zeros((2, 5, 3))
    jitted = sw.jit(step, donate_argnames="cache", target="opencl")
    found, sums = jitted(cache, steps, np.ones((2, 3)))
    assert found is cache and cache.sum() == 6
    np.testing.assert_array_equal(sums, cache.sum(axis=1))
