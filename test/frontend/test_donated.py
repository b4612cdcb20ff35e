"""Arguments whose memory results take over, and a decoder's cache that grows in place."""

from __future__ import annotations

import logging
import re
from itertools import pairwise
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


def test_results_take_the_memory_of_what_they_are_made_of() -> None:
    """In whatever order they are returned; what nothing is made of goes by type and order."""

    @sw.jit(donate_argnames=("a", "b", "c", "d", "e"))
    def turned(a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
        return b + 1.0, (a * 2.0 - b, c.sum()), np.full((2, 2), 7.0), d @ d.T

    a, b, c, d = np.ones(3), np.full(3, 2.0), np.ones((2, 2)), np.ones((4, 4))
    for _ in range(2):
        a[...], b[...], c[...] = 1.0, 2.0, 1.0
        first, (second, total), third, _ = turned(a, b, c, d, np.ones(5))
        assert first is b and second is a and third is c and total == 4
        np.testing.assert_array_equal(a, np.full(3, 0.0))
        np.testing.assert_array_equal(b, np.full(3, 3.0))
        np.testing.assert_array_equal(c, np.full((2, 2), 7.0))


def messages(caplog: pytest.LogCaptureFixture, jitted: Any, *calls: Any) -> list[str]:
    """Return what is said of donated arguments, of all calls made twice."""
    caplog.clear()
    with caplog.at_level(logging.WARNING, "stepwell"):
        for args in (*calls, *calls):
            jitted(*args)
    return [r.message.removeprefix("the donated argument ") for r in caplog.records]


def test_what_is_of_no_use_is_told(caplog: pytest.LogCaptureFixture) -> None:
    jitted = sw.jit(lambda x: x.sum(), donate_argnames="x")
    why = "'x' is used by no result: none has its dtype and shape"
    assert messages(caplog, jitted, (np.ones(3),)) == [why]
    jitted = sw.jit(lambda x, y: x + y, donate_argnums=(0, 1))
    why = "'y' is used by no result: none has its dtype and shape that no other argument goes to"
    assert messages(caplog, jitted, (np.ones(3), np.ones(3))) == [why]


def test_why_an_array_is_left_as_it_is_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    jitted = sw.jit(lambda p, x: {"w": p["w"] + x, "b": p["b"] * 2.0}, donate_argnames="p")
    w, b, x = np.ones((3, 4)), np.ones(2), np.ones((3, 4))
    read_only = np.ones((3, 4))
    read_only.flags.writeable = False
    kept = ", so it is left as it is, and the result is a new array"
    assert messages(
        caplog,
        jitted,
        ({"w": w, "b": b}, x),
        ({"w": read_only, "b": b}, x),
        ({"w": np.ones((4, 3)).T, "b": b}, x),
        ({"w": w, "b": b}, w),
        ({"w": w, "b": w[0, :2]}, x),
    ) == [
        f"'p['w']' is read-only{kept}",
        f"'p['w']' is not contiguous, aligned and of native byte order{kept}",
        f"'p['w']' is passed twice, as 'x' too{kept}",
        f"'p['b']' lies partly in the same memory as 'p['w']'{kept}",
        f"'p['w']' lies partly in the same memory as 'p['b']'{kept}",
    ]


def test_what_is_read_late_is_told(caplog: pytest.LogCaptureFixture) -> None:
    jitted = sw.jit(lambda a, x: (x @ a, a.sum()), donate_argnums=0)
    why = "is still read when the result that takes its memory is made, which is copied"
    a = np.ones((4, 4))
    assert messages(caplog, jitted, (a, np.ones((4, 4)))) == [f"'a' {why}"]
    assert jitted(a, np.ones((4, 4)))[0] is a


def init(*sizes: int) -> Any:
    rng = np.random.default_rng(0)
    pairs = enumerate(pairwise(sizes))
    return {
        f"layer{i}": {
            "w": rng.standard_normal((m, n)).astype(np.float32),
            "b": np.zeros(n, np.float32),
        }
        for i, (m, n) in pairs
    }


def loss(params: Any, x: Any, y: Any) -> Any:
    hidden = np.tanh(x @ params["layer0"]["w"] + params["layer0"]["b"])
    found = hidden @ params["layer1"]["w"] + params["layer1"]["b"] - y
    return np.mean(found * found)


ADAM = sw.optim.adam(1e-2)


def trained(params: Any, state: Any, x: Any, y: Any) -> Any:
    value, gradients = sw.value_and_grad(loss)(params, x, y)
    updates, state = ADAM.update(gradients, state, params)
    return value, {"state": state, "params": sw.optim.apply_updates(params, updates)}


PARAMS = sw.tree.map(sw.Variable, init(6, 5, 5))
STATE = sw.tree.map(sw.Variable, ADAM.init(init(6, 5, 5)))


def with_variables(x: Any, y: Any) -> Any:
    value, found = trained(PARAMS, STATE, x, y)
    sw.tree.assign(STATE, found["state"])
    return value


def test_a_step_of_training_copies_no_parameter() -> None:
    """In whatever order trees are returned: each parameter and moment is updated where it lies."""
    x, y = np.ones((7, 6), np.float32), np.ones((7, 5), np.float32)
    params = init(6, 5, 5)
    state = ADAM.init(params)
    donated = sw.jit(trained, donate_argnums=(0, 1))
    for jitted, given in (
        (donated, (params, state, x, y)),
        (sw.jit(lambda p, s, x, y: step_in_place(p, s, x, y)), (PARAMS, STATE, x, y)),
    ):
        text = jitted.trace(*given).lower("buffers").text
        copies = re.findall(r"memref.copy (%\w+), (%\w+) :", text)
        # each argument to its result on entry, which C leaves out where both are one array
        assert all(of.startswith(("%p", "%s")) for of, _ in copies) and len(copies) == 13, copies
    memory = sw.tree.leaves((params, state))
    value, found = donated(params, state, x, y)
    after = sw.tree.leaves((found["params"], found["state"]))
    assert all(a is b for a, b in zip(memory, after, strict=True))
    assert sw.jit(with_variables)(x, y) == value
    for variable, array in zip(sw.tree.leaves((PARAMS, STATE)), memory, strict=True):
        np.testing.assert_array_equal(variable, array)


def step_in_place(params: Any, state: Any, x: Any, y: Any) -> Any:
    value, found = trained(params, state, x, y)
    sw.tree.assign(state, found["state"])
    return value


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
@pytest.mark.opencl
def test_on_opencl(steps: int) -> None:
    """Arguments are worked on in place there too: the device has one buffer for both."""

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


def test_many_arrays_are_looked_at_again_where_they_lie_elsewhere() -> None:
    """Arrays where they were are known to be apart; others, and read-only ones, are looked at."""
    f = sw.jit(lambda xs: [x + 1 for x in xs], donate_argnums=0)
    xs = [np.zeros(3) for _ in range(8)]
    for step in range(3):
        for x, y in zip(xs, f(xs), strict=True):
            assert x is y and x[0] == step + 1
    shared = [*xs[:7], xs[6]]  # one twice: results are new
    for found in f(shared)[6:]:
        assert found is not xs[6] and found[0] == 4
    xs[2].flags.writeable = False
    assert f(xs)[2] is not xs[2]
    xs[2].flags.writeable = True
    assert f(xs)[2] is xs[2]
