"""`sw.lax.psum` and its kin within `sw.vmap`: what JAX 0.10.2 gives, as formulas in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from run_traced import interpreted

import stepwell as sw

R = np.random.default_rng(0)
X = R.standard_normal((3, 4))
SQUARE, WIDE, BOXES = (R.standard_normal(s) for s in ((3, 3), (3, 6), (2, 3, 4)))
lax = sw.lax


def batch(f: Any, *more: Any, name: Any = "b") -> Any:
    return sw.vmap(f, *more, axis_name=name)


def test_sums_and_exchanges() -> None:
    """All of them in one program."""

    def program(x: Any, s: Any, w: Any) -> dict[str, Any]:
        return {
            "psum": batch(lambda v: lax.psum({"x": v, "two": v > 0, "n": 1}, "b"))(x),
            "pmean": batch(lambda v: lax.pmean((v > 0, v), "b"))(x),
            "pmax": batch(lambda v: (lax.pmax(v, "b"), lax.pmin(v, "b")))(x),
            "one": sw.vmap(lambda v, k: v[2] * lax.psum(k, "b"), (0, None), axis_name="b")(x, s),
            "index": batch(lambda v: v * lax.axis_index("b") * lax.axis_size("b"))(x),
            "gather": batch(lambda v: lax.all_gather(v, "b", axis=1))(x),
            "tiled": batch(lambda v: lax.all_gather(v, "b", tiled=True))(x),
            "ppermute": batch(lambda v: lax.ppermute(v, "b", [(0, 1), (2, 0)]))(x),
            "pshuffle": batch(lambda v: lax.pshuffle(v, "b", [2, 0, 1]))(x),
            "pbroadcast": batch(lambda v: lax.pbroadcast(v, "b", 2))(x),
            "swap": batch(lambda v: lax.pswapaxes(v, "b", 0))(s),
            "all": batch(lambda v: lax.all_to_all(v, "b", 0, 0, tiled=True))(w),
            "scatter": batch(lambda v: lax.psum_scatter(v, "b"))(s),
            "parts": batch(lambda v: lax.psum_scatter(v, "b", tiled=True))(w),
        }

    found = interpreted(program, X, SQUARE, WIDE)
    rows = np.broadcast_to
    np.testing.assert_allclose(found["psum"]["x"], rows(X.sum(0), X.shape))
    np.testing.assert_array_equal(found["psum"]["two"], rows((X > 0).sum(0), X.shape))
    assert found["psum"]["two"].dtype == np.int32
    np.testing.assert_array_equal(found["psum"]["n"], [3, 3, 3])
    np.testing.assert_allclose(found["pmean"][0], rows((X > 0).mean(0), X.shape))
    np.testing.assert_allclose(found["pmean"][1], rows(X.mean(0), X.shape))
    np.testing.assert_array_equal(found["pmax"][0], rows(X.max(0), X.shape))
    np.testing.assert_array_equal(found["pmax"][1], rows(X.min(0), X.shape))
    np.testing.assert_allclose(found["one"][1], X[1, 2] * 3 * SQUARE)
    np.testing.assert_allclose(found["index"], X * np.arange(3)[:, None] * 3)
    np.testing.assert_array_equal(found["gather"], rows(X.T, (3, 4, 3)))
    np.testing.assert_array_equal(found["tiled"], rows(X.ravel(), (3, 12)))
    np.testing.assert_array_equal(found["ppermute"], [X[2], X[0], 0 * X[0]])
    np.testing.assert_array_equal(found["pshuffle"], X[[2, 0, 1]])
    np.testing.assert_array_equal(found["pbroadcast"], X[[2, 2, 2]])
    np.testing.assert_array_equal(found["swap"], SQUARE.T)
    np.testing.assert_array_equal(
        found["all"], WIDE.reshape(3, 3, 2).transpose(1, 0, 2).reshape(3, 6)
    )
    np.testing.assert_allclose(found["scatter"], SQUARE.sum(0))
    np.testing.assert_allclose(found["parts"], WIDE.sum(0).reshape(3, 2))


def test_batches_in_batches() -> None:
    def both(v: Any) -> Any:
        of_all = lax.psum(v * lax.axis_index("i"), ("i", "j"))
        return of_all + lax.pmax(v, "j"), lax.all_gather(v, "i"), lax.axis_index(("i", "j"))

    found, gathered, index = interpreted(lambda x: batch(batch(both, name="j"), name="i")(x), BOXES)
    np.testing.assert_allclose(found[0, 0], BOXES[1].sum(0) + BOXES[0].max(0))
    np.testing.assert_array_equal(gathered[1, 2], BOXES[:, 2])
    np.testing.assert_array_equal(index, [[0, 1, 2], [3, 4, 5]])
    hidden = batch(batch(lambda v: lax.psum(v, "i"), name="i"), name="i")
    np.testing.assert_allclose(interpreted(hidden, BOXES)[1, 2], BOXES[1].sum(0))


def normed(x: Any, w: Any) -> Any:
    """Batch norm, of one example."""
    centred = x - lax.pmean(x, "b")
    return centred / np.sqrt(lax.pmean(centred**2, "b") + 1e-3) * w


def test_batch_norm_of_one_example() -> None:
    """Compiled, with gradients: what code for the whole batch gives."""

    def by_hand(w: Any, x: Any) -> Any:
        centred = x - x.mean(0)
        return np.sin(centred / np.sqrt((centred**2).mean(0) + 1e-3) * w).sum()

    def by_vmap(w: Any, x: Any) -> Any:
        return np.sin(sw.vmap(normed, (0, None), axis_name="b")(x, w)).sum()

    w = np.array([1.0, -2.0, 0.5, 3.0])
    want = sw.value_and_grad(by_hand, (0, 1))(w, X)
    value, (d_w, d_x) = sw.value_and_grad(by_vmap, (0, 1))(w, X)
    np.testing.assert_allclose(value, want[0])
    np.testing.assert_allclose(d_w, want[1][0])
    np.testing.assert_allclose(d_x, want[1][1], atol=1e-12)


def test_derivatives_within_the_batch() -> None:
    """They are those of the sum of all examples' results, forward and backward."""

    def program(x: Any, s: Any) -> Any:
        ones = np.ones(4)

        def inner(v: Any) -> Any:
            return (normed(v, ones) ** 3).sum()

        return (
            batch(sw.grad(inner))(x),
            sw.grad(lambda x: batch(inner)(x).sum())(x),
            batch(sw.grad(lambda v: np.sin(lax.psum_scatter(v, "b"))))(s),
            batch(sw.grad(lambda v: (lax.all_gather(v, "b") ** 2).sum()))(x),
            batch(lambda v: sw.jvp(lambda u: normed(u, ones), (v,), (v * 2,))[1])(x),
            sw.jvp(lambda x: batch(lambda v: normed(v, ones))(x), (x,), (x * 2,))[1],
        )

    within, around, scattered, gathered, inside, outside = interpreted(program, X, SQUARE)
    np.testing.assert_allclose(within, around, atol=1e-12)
    np.testing.assert_allclose(scattered, np.broadcast_to(np.cos(SQUARE.sum(0)), (3, 3)))
    np.testing.assert_allclose(gathered, 6 * X)
    np.testing.assert_allclose(inside, outside, atol=1e-12)


def test_in_loops_and_branches() -> None:
    def scanned(v: Any) -> Any:
        return lax.scan(lambda c, y: (c + lax.pmean(y, "b"), c * y + lax.psum(c, "b")), 0.0, v)

    def counted(v: Any) -> Any:
        return lax.while_loop(lambda c: lax.psum(c, "b") < 50.0, lambda c: c + v, 1.0)

    def chosen(v: Any) -> Any:
        return lax.cond(v[0] > 0, lambda u: u * lax.psum(u, "b"), lambda u: u, v)

    (end, ys), n, some = interpreted(
        lambda x: (batch(scanned)(x), batch(counted)(abs(x[:, 0])), batch(chosen)(x)), X
    )
    np.testing.assert_allclose(end, np.full(3, X.mean(0).sum()))
    before = np.concatenate([[0.0], X.mean(0).cumsum()[:-1]])
    np.testing.assert_allclose(ys, before * X + 3 * before)
    steps = np.ceil((50 - 3) / abs(X[:, 0]).sum())
    np.testing.assert_allclose(n, 1 + steps * abs(X[:, 0]))
    np.testing.assert_allclose(some, np.where(X[:, :1] > 0, X * X.sum(0), X))


def test_any_number_of_examples() -> None:
    f = sw.vmap(lambda v: v - lax.pmean(v, "b") + lax.all_gather(v, "b").max(), axis_name="b")
    for n in (3, 5, 7):
        x = np.arange(n) * 1.5
        np.testing.assert_allclose(f(x), x - x.mean() + x.max())
    assert f.cache_info().traces == 2


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda: sw.vmap(lambda v: lax.psum(v, "b"))(X), NameError, "unbound axis name 'b'"),
        (lambda: batch(lambda v: lax.psum(v, "n"))(X), NameError, "'n'; there is 'b'"),
        (
            lambda: batch(lambda v: lax.psum(v, "b", axis_index_groups=[[0]]))(X),
            Exception,
            "groups",
        ),
        (lambda: batch(lambda v: lax.ppermute(v, "b", [(0, 3)]))(X), ValueError, "below 3"),
        (lambda: batch(lambda v: lax.pshuffle(v, "b", [0, 0, 1]))(X), ValueError, "an order of 3"),
        (
            lambda: batch(lambda v: lax.psum_scatter(v, "b"))(X),
            ValueError,
            "size 4, but must have 3",
        ),
        (lambda: sw.vmap(lambda v: v, spmd_axis_name="b")(X), TypeError, "several devices"),
        (lambda: sw.jit(lambda x: lax.psum(x, "b"))(X), NameError, "within a function given to"),
    ],
)
def test_mistakes(call: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        call()
