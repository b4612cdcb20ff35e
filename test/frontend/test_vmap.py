"""sw.vmap: batches of functions give what a Python loop over the examples gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stepwell as sw

X = np.arange(12.0).reshape(3, 4)
W = np.linspace(-1, 1, 16).reshape(4, 4)


def collatz(n: Any) -> Any:
    count = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


def until(row: Any) -> Any:
    total = 0.0
    for v in row:
        if v > 5:
            break
        total += v
    return total


def chosen(row: Any, i: Any) -> Any:
    """The index of an example that does not take the branch is not looked at."""
    if i < 4:
        return row[i]
    return -1.0


def assigned(row: Any, i: Any, v: Any) -> Any:
    row = row.copy()
    row[i : i + 2] = v
    for k in range(3):
        row[k] = row[k] + 1
    return row


def running(row: Any) -> Any:
    return sw.lax.scan(lambda c, y: (c + y, c * y), 0.0, row)


def switched(n: Any, v: Any) -> Any:
    return sw.lax.switch(n, [lambda a: a, lambda a: a * 2, lambda a: -a], v)


def noise(seed: Any) -> Any:
    return sw.random.normal(sw.random.key(seed), (3,))


def mixed(row: Any, k: int = 3) -> Any:
    return {"sum": row.sum(), "three": k, "none": None}


CASES: list[tuple[Callable[..., Any], tuple[Any, ...], Any, Any]] = [
    (lambda v: v.sum(), (X,), 0, 0),
    (lambda v: v * 2, (X,), 1, 1),
    (lambda v, k: v * k, (X, np.float64(2.0)), (0, None), -1),
    (lambda d: d["a"] @ d["b"], ({"a": X, "b": W},), ({"a": 0, "b": None},), 0),
    (lambda d: d["b"] @ d["a"], ({"a": X, "b": W},), ({"a": 0, "b": None},), 0),
    (lambda a, b: a @ b, (np.stack([W, W + 1]), np.stack([W, W - 1])), 0, 0),
    (collatz, (np.arange(1, 12),), 0, 0),
    (until, (X,), 0, 0),
    (chosen, (X, np.array([0, 4, 9])), 0, 0),
    (assigned, (X, np.array([0, 1, 2]), np.array([10.0, 20, 30])), 0, 0),
    (running, (X,), 0, 0),
    (switched, (np.arange(3), np.arange(3.0)), 0, 0),
    (noise, (np.arange(3),), 0, 0),
    (mixed, (X,), 0, 0),
    (lambda v: np.sort(-v), (X,), 0, 0),
    (lambda i: X[i, 1:], (np.array([2, 0, 0]),), 0, 0),
    (sw.grad(lambda w, v: np.sum(np.sin(w * v))), (np.ones(4), X), (None, 0), 0),
    (sw.vmap(lambda a, b: a * b, (None, 0)), (np.arange(3.0), np.arange(4.0)), (0, None), 0),
    (sw.jit(lambda v: v.max()), (X,), 0, 0),
]


def alone(function: Callable[..., Any], args: tuple[Any, ...], axes: Any, lane: int) -> Any:
    """Return the arguments of one example."""

    def of(value: Any, axis: Any) -> Any:
        if isinstance(value, dict):
            return {k: of(v, axis[k] if isinstance(axis, dict) else axis) for k, v in value.items()}
        return value if axis is None else np.take(value, lane, axis)

    each = axes if isinstance(axes, tuple) else (axes,) * len(args)
    return function(*(of(v, a) for v, a in zip(args, each, strict=True)))


def test_as_a_loop() -> None:
    """Many functions as one program."""

    @sw.jit
    def batched() -> Any:
        return [sw.vmap(f, i, o)(*args) for f, args, i, o in CASES]

    @sw.jit
    def one_by_one(lane: int) -> Any:
        return [alone(f, args, i, lane) for f, args, i, _ in CASES]

    results: Any = batched()
    for lane in range(2):
        wanted: Any = one_by_one(lane)
        for got, want, (_, _, _, out) in zip(results, wanted, CASES, strict=True):
            leaves, alike = sw.tree.leaves(got), sw.tree.leaves(want)
            for g, w in zip(leaves, alike, strict=True):
                np.testing.assert_allclose(np.take(g, lane, out), w, rtol=1e-12, atol=1e-14)


def test_gradient_of_a_batch() -> None:
    function = sw.grad(lambda w: sw.vmap(lambda v: np.sum(w * v) ** 2)(X).sum())
    np.testing.assert_allclose(function(np.ones(4)), 2 * (X.sum(1)[:, None] * X).sum(0))


def test_by_name_and_by_number() -> None:
    @sw.vmap
    def f(x: Any, *, k: Any) -> Any:
        return x + k

    np.testing.assert_array_equal(f(np.arange(3), k=np.arange(3)), [0, 2, 4])
    found = sw.vmap(lambda a: a + 1, in_axes=None, axis_size=2)(3)
    np.testing.assert_array_equal(found, [4, 4])


def test_no_examples() -> None:
    assert sw.vmap(lambda v: v.sum())(np.zeros((0, 4))).shape == (0,)


def test_calls_python_for_each_example() -> None:
    seen: list[float] = []

    def note(v: Any) -> Any:
        seen.append(float(v))
        return v * 2

    like = sw.ShapeDtypeStruct((), np.float64)

    @sw.vmap
    def f(v: Any) -> Any:
        if v > 1:
            return sw.callback(note, like, v)
        return v

    np.testing.assert_array_equal(f(np.array([3.0, 1.0, 2.0])), [6.0, 1.0, 4.0])
    assert seen == [3.0, 2.0]


def test_index_out_of_range() -> None:
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 with size 4"):
        sw.vmap(lambda v, i: v[i])(X, np.array([0, 4, 9]))


def writes(a: Any) -> Any:
    a[0] = 1
    return a


NOTHING: Any = None
REFUSED: list[tuple[Callable[..., Any], str]] = [
    (
        lambda: sw.vmap(lambda a, b: a + b)(X, np.ones(5)),
        "different numbers of examples: axis 0 of 'a' has 3, axis 0 of 'b' has 5",
    ),
    (lambda: sw.vmap(lambda a, b: a + b)(X, 1.0), "argument 'b' of .* say None for it in in_axes="),
    (
        lambda: sw.vmap(lambda a, b: a + b, in_axes=(0,))(X, 1.0),
        "tuple of 1, but .* with 2 arguments",
    ),
    (
        lambda: sw.vmap(lambda a, b: a, in_axes=(0, {"a": 0}))(X, 1.0),
        "must be built like argument 'b'",
    ),
    (lambda: sw.vmap(lambda a: a, in_axes=5)(X), "takes axis 5 of argument 'a'"),
    (lambda: sw.vmap(lambda a: a, out_axes=3)(X), r"along axis 3 .* each is f64\[4\]"),
    (lambda: sw.vmap(lambda a: a, in_axes="x")(X), "made of integers and None, got 'x'"),
    (lambda: sw.vmap(lambda a: "x")(X), "to return arrays and numbers, got str as its result"),
    (lambda: sw.vmap(lambda a: a, in_axes=None)(X), "has no examples"),
    (lambda: sw.vmap(lambda a: a, out_axes=None)(X), r"out_axes cannot be -1 \(None\)"),
    (lambda: sw.vmap(writes)(X), "'writes' assigns to its argument 'a'"),
    (lambda: sw.vmap(NOTHING), "vmap takes a function, got None"),
]


@pytest.mark.parametrize(("call", "said"), REFUSED, ids=lambda v: v if isinstance(v, str) else "")
def test_refused(call: Callable[..., Any], said: str) -> None:
    kinds = (ValueError, TypeError, sw.TraceError, sw.CompileError)
    with pytest.raises(kinds, match=said):
        call()


def test_any_number_of_examples() -> None:
    """A second size makes a program for all of them, of batches of batches too."""

    @sw.vmap
    def f(v: Any) -> Any:
        return sw.vmap(lambda u: (u * v).sum())(X[:, :2])

    for n in (30, 31, 32, 35):
        v = np.arange(2.0 * n).reshape(n, 2)
        np.testing.assert_allclose(f(v), v @ X[:, :2].T)
    assert f.cache_info().traces == 2


@sw.custom_vjp
def told(x: Any, w: Any) -> Any:
    return x @ w


told.defvjp(lambda x, w: (x @ w, (x, w)), lambda kept, g: (g * 3 * kept[1], g * 5 * kept[0]))


@sw.custom_jvp
def leaning(x: Any) -> Any:
    return np.sin(x)


@leaning.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return np.sin(primals[0]), 7 * tangents[0]


def test_rules_of_users_hold_in_batches() -> None:
    """Gradients of a batch are those that the function says, not those of what it computes."""
    w = np.arange(1.0, 5.0)
    each = sw.grad(lambda x, w: sw.vmap(told, (0, None))(x, w).sum(), argnums=(0, 1))
    gx, gw = each(X, w)
    np.testing.assert_allclose(gx, np.tile(3 * w, (3, 1)))
    np.testing.assert_allclose(gw, 5 * X.sum(0))
    np.testing.assert_allclose(sw.grad(lambda x: sw.vmap(leaning)(x).sum())(X), np.full(X.shape, 7))
    again = sw.grad(lambda x: sw.vmap(sw.checkpoint(lambda v: np.sin(np.sin(v)).sum()))(x).sum())
    np.testing.assert_allclose(again(X), np.cos(np.sin(X)) * np.cos(X))
    stopped = sw.grad(lambda x: sw.vmap(lambda v: (sw.stop_gradient(v) * v).sum())(x).sum())
    np.testing.assert_allclose(stopped(X), X)
