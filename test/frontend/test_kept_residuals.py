"""`sw.vjp` and `sw.linearize` outside of a trace: the function is computed once, whatever follows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw

W = np.random.default_rng(0).standard_normal((4, 4))
X = np.random.default_rng(1).standard_normal((3, 4))
SCALE = np.ones(4)


class Counted:
    """A function that counts how often it is computed."""

    def __init__(self) -> None:
        self.times = 0

    def tick(self, _: Any) -> None:
        self.times += 1

    def __call__(self, w: Any, x: Any, n: Any) -> Any:
        sw.callback(self.tick, None, x)
        hidden = np.tanh(np.tanh(x @ w) @ w)
        return {"y": hidden * SCALE * n, "positive": x > 0}


def test_the_function_is_computed_once() -> None:
    f = Counted()
    out, vjp_fn = sw.vjp(f, W, X, 3)
    assert f.times == 1
    nothing = np.zeros((3, 4), sw.float0)
    found = [vjp_fn({"y": np.full((3, 4), g), "positive": nothing}) for g in (1.0, 1.0, 2.0)]
    want = sw.grad(lambda w, x: np.sum(np.tanh(np.tanh(x @ w) @ w) * 3), (0, 1))(W, X)
    for (d_w, d_x, d_n), factor in zip(found, (1, 1, 2), strict=True):
        np.testing.assert_allclose(d_w, factor * want[0])
        np.testing.assert_allclose(d_x, factor * want[1])
        assert d_n.dtype == sw.float0
    _, jvp_fn = sw.linearize(f, W, X, 3)
    assert f.times == 2
    no_n = np.zeros((), sw.float0)
    tangents = [jvp_fn(W, X, no_n)["y"], jvp_fn(W, 2 * X, no_n)["y"], jvp_fn(W, X, no_n)["y"]]
    assert f.times == 2
    np.testing.assert_allclose(tangents[0], tangents[2])
    np.testing.assert_allclose(
        (out["y"] * tangents[0] / out["y"]).sum(), sum(map(np.vdot, want, (W, X)))
    )


def test_what_is_kept_is_as_it_was() -> None:
    """Arrays that change afterwards do not change the derivative."""
    x = X.copy()
    _, vjp_fn = sw.vjp(lambda x: x * x, x)
    x[...] = 0
    np.testing.assert_allclose(vjp_fn(np.ones((3, 4)))[0], 2 * X)
    weight = sw.Variable(W)
    _, vjp_fn = sw.vjp(lambda x: x @ weight, X)
    before = vjp_fn(np.ones((3, 4)))[0]
    weight[...] = 0
    np.testing.assert_allclose(vjp_fn(np.ones((3, 4)))[0], before)
    np.testing.assert_allclose(before, np.ones((3, 4)) @ W.T)


def test_one_pair_of_programs_for_any_size() -> None:
    def f(x: Any) -> Any:
        return np.sin(x) * x.sum()

    for n in (3, 5, 7, 9):
        x = np.arange(n) * 0.5
        _, vjp_fn = sw.vjp(f, x)
        want = np.cos(x) * x.sum() + np.sin(x).sum()
        np.testing.assert_allclose(vjp_fn(np.ones(n))[0], want)


def test_within_a_trace_it_is_computed_there() -> None:
    """A vjp_fn from outside is batched, or part of another function."""
    f = Counted()
    _, vjp_fn = sw.vjp(lambda x: f(W, x, 1)["y"], X)
    rows = np.stack([np.ones((3, 4)), 2 * np.ones((3, 4))])
    one = vjp_fn(rows[0])[0]
    np.testing.assert_allclose(sw.vmap(lambda g: vjp_fn(g)[0])(rows), [one, 2 * one])
    np.testing.assert_allclose(sw.jit(lambda g: vjp_fn(g)[0] * 2)(rows[0]), 2 * one)


def test_checkpoints_are_not_kept() -> None:
    """What is to be computed again is computed in the second program."""
    f = Counted()
    block = sw.checkpoint(lambda x: np.tanh(x @ W) + np.tanh(x @ W @ W))
    out, vjp_fn = sw.vjp(lambda x: block(block(x)).sum(), X)
    want = sw.grad(lambda x: block(block(x)).sum())(X)
    np.testing.assert_allclose(vjp_fn(1.0)[0], want)
    assert f.times == 0 and out.shape == ()


def test_results_of_integers_alone() -> None:
    out, vjp_fn = sw.vjp(lambda n: n * 2, 3)
    assert int(out) == 6 and vjp_fn(np.zeros((), sw.float0))[0].dtype == sw.float0
    _, vjp_fn = sw.vjp(lambda x: (x, x.sum()), X)
    np.testing.assert_allclose(vjp_fn((X, 1))[0], X + 1)


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        (np.ones(4), ValueError, r"cotangents has shape \(4\), but must have that of its value"),
        (np.ones((3, 4), np.float32), TypeError, "cotangents is f32, but must have the dtype"),
        (np.zeros((3, 4), sw.float0), TypeError, "is f64.3x4., got sw.float0"),
        ("x", TypeError, "a cotangent is an array or a number, got str"),
        ((X, X), TypeError, "cotangents must be built like what"),
    ],
)
def test_mistakes(given: Any, kind: type[Exception], said: str) -> None:
    _, vjp_fn = sw.vjp(np.sin, X)
    with pytest.raises(kind, match=said):
        vjp_fn(given)
