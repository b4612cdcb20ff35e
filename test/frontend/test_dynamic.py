"""One program for any size, made when a second one is seen."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.shapes import DYNAMIC

TABLE = np.linspace(0, 1, 500)


def exponential(x: Any) -> Any:
    return np.exp(x) + 1


def several(x: Any, y: Any) -> Any:
    return x @ y.T, x.sum(0), x.mean(), x[1:-1] * 2, x[::2], x[::-1], x.std(axis=0)


def made_of_sizes(x: Any) -> Any:
    w, i = np.zeros((len(x), 3)), np.arange(len(x))
    return (x[:, None] + w).reshape(-1), x / len(x), np.concatenate([x, x]) * 1.5, i * 2 + 1


def relaxed(x: Any) -> Any:
    u = x.copy()
    for _ in range(20):
        u[1:-1] = (u[:-2] + u[2:]) / 2
    return u


def squares(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total += x[i] * x[i]
    return total


def attention(q: Any, k: Any, v: Any) -> Any:
    s = q @ k.T / np.sqrt(q.shape[1])
    e = np.exp(s - s.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True)) @ v


def chosen(x: Any) -> Any:
    return np.where(x > 0.5, x, 0), np.argmax(x), np.sort(x), np.cumsum(x), np.pad(x, 2), np.diff(x)


def decided(x: Any) -> Any:
    return x * 2 if len(x) > 20 else x * 3


def outside(x: Any) -> Any:
    return x * TABLE[3] + TABLE[: len(x)].sum()


def written(x: Any) -> Any:
    x[1:] += 1
    x[0] = len(x)


def vectors(random: Any, n: int) -> tuple[Any, ...]:
    return (random.random(n),)


def matrices(random: Any, n: int) -> tuple[Any, ...]:
    return random.random((n, 4)), random.random((n, 4))


def queries(random: Any, n: int) -> tuple[Any, ...]:
    return random.random((n, 8)), random.random((2 * n + 1, 8)), random.random((2 * n + 1, 3))


SIZES = (4, 5, 6, 7, 17, 100, 3, 2, 1, 33)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "function, make, programs",
    [
        (exponential, vectors, 2),
        (several, matrices, 4),  # a size of 1 is another, and of 2 too
        (made_of_sizes, vectors, 3),
        (relaxed, vectors, 4),
        (squares, vectors, 10),
        (attention, queries, 3),
        (chosen, vectors, 4),
        (decided, vectors, 4),
        (outside, vectors, 10),
        (written, vectors, 3),
    ],
)
@pytest.mark.parametrize("mode", ["auto", "always"])
def test_results_are_those_of_numpy(function: Any, make: Any, programs: int, mode: str) -> None:
    random = np.random.default_rng(0)
    f: Any = sw.jit(function, dynamic=mode)
    for n in SIZES * 2:
        mine = make(random, n)
        plain = tuple(a.copy() for a in mine)
        got, want = f(*mine), function(*plain)
        for a, b in zip((got, *mine), (want, *plain), strict=True):
            parts = zip(a, b, strict=True) if isinstance(b, tuple) else [(a, b)]
            for g, w in parts:
                if w is not None:
                    assert np.shape(g) == np.shape(w) and np.asarray(g).dtype == np.asarray(w).dtype
                    np.testing.assert_allclose(g, w, rtol=1e-9, err_msg=str(n))
    assert f.cache_info().programs <= programs or mode == "always"


def test_two_sizes_make_a_program_for_any() -> None:
    f: Any = sw.jit(exponential)
    traces: list[int] = []
    for n in (4, 4, 5, 6, 700, 2, 1):
        np.testing.assert_allclose(f(np.ones(n)), np.exp(np.ones(n)) + 1)
        traces.append(f.cache_info().traces)
    assert traces == [1, 1, 2, 2, 2, 2, 2]
    f(np.ones(4, np.int32))
    assert f.cache_info().traces == 3


def test_first_sizes_have_programs_of_their_own() -> None:
    f: Any = sw.jit(exponential)
    f(np.ones(4))
    f(np.ones(5))
    known = [v for each in f._variants._known.values() for v in each]
    assert [v.sizes is None for v in known] == [True, False]
    assert known[1].program.signature.arguments[0].shape == (DYNAMIC,)


def test_never() -> None:
    f: Any = sw.jit(exponential, dynamic="never")
    for n in (4, 5, 6):
        f(np.ones(n))
    assert f.cache_info().programs == 3
    with pytest.raises(ValueError, match="dynamic is one of 'auto', 'always', 'never', got 'yes'"):
        sw.jit(exponential, dynamic="yes")


def test_dims_make_one_program() -> None:
    n = sw.Dim("n", max=50)
    types = [
        sw.ShapeDtypeStruct((n, 2), "float64"),
        sw.ShapeDtypeStruct((n + 1,), "float64"),
        sw.ShapeDtypeStruct((2 * n,), np.float64),
    ]

    def f(x: Any, y: Any, z: Any) -> Any:
        return x[:, 0] * y[1:] + z[::2], y.sum() + z.sum()

    jitted: Any = sw.jit(f, input_signature=types)
    for k in (4, 3, 5, 9, 50, 4):
        given = np.ones((k, 2)) * k, np.arange(k + 1.0), np.arange(2.0 * k)
        for a, b in zip(jitted(*given), f(*given), strict=True):
            np.testing.assert_allclose(a, b)
    assert jitted.cache_info()[:2] == (1, 1)
    x, y, z = np.ones((4, 2)), np.ones(5), np.ones(8)
    for wrong, said in (
        ((x, y, np.ones(9)), r"argument 'z' .*: 9 is no 2 \* n, where n is 0 to 50"),
        ((x, np.ones(6), z), r"argument 'y' .*: n is 4 already, and 5 by axis 0"),
        ((np.ones((4, 3)), y, z), r"argument 'x' .*: axis 1 has size 3"),
        ((np.ones((51, 2)), y, z), r"51 is no n, where n is 0 to 50"),
        ((x, y.astype(np.float32), z), r"argument 'y' .*: it is of f32"),
        ((x, y[None], z), r"argument 'y' .*: it has 2 axes"),
    ):
        with pytest.raises(TypeError, match=said):
            jitted(*wrong)
    with pytest.raises(TypeError, match=r"input_signature is of sw.ShapeDtypeStruct"):
        sw.jit(f, input_signature=[3])


def test_what_python_decides_is_told(caplog: pytest.LogCaptureFixture) -> None:
    def f(x: Any) -> Any:
        return x[: len(x) // 2] * 2

    jitted: Any = sw.jit(f)
    with caplog.at_level(logging.INFO, "stepwell"):
        for n in (8, 9, 10, 12):
            np.testing.assert_array_equal(jitted(np.ones(n)), np.ones(n // 2) * 2)
    assert "'f' has a program for each size: a slice has a bound" in caplog.text
    assert jitted.cache_info().programs == 4


def test_shapes_without_arrays() -> None:
    x = sw.ShapeDtypeStruct((3, 4), np.float32)
    got = sw.eval_shape(lambda x, n: {"y": x @ x.T, "z": [x.sum(), n]}, x, 2)
    assert got["y"] == sw.ShapeDtypeStruct((3, 3), np.float32)
    assert [(s.shape, s.dtype) for s in got["z"]] == [((), np.float32), ((), np.int64)]
    assert (x.ndim, x.size) == (2, 12)


def test_named_sizes_are_told_to_jit_alone() -> None:
    rows: Any = sw.ShapeDtypeStruct((sw.Dim("n"), 2), "float32")
    for given in (sw.jit(lambda x: x * 2).trace, lambda rows: sw.eval_shape(lambda x: x * 2, rows)):
        with pytest.raises(TypeError, match=r"argument 'x' has a named size.*input_signature"):
            given(rows)


def test_constants_that_follow_a_size() -> None:
    big = sw.freeze(np.arange(300.0))
    f: Any = sw.jit(lambda x: x * big[len(x)])
    for n in (4, 5, 6, 7):
        np.testing.assert_array_equal(f(np.ones(n)), np.ones(n) * n)
    g: Any = sw.jit(lambda x: x + np.linspace(0, 1, len(x)))
    for n in (4, 5, 6, 7):
        np.testing.assert_array_equal(g(np.ones(n)), np.ones(n) + np.linspace(0, 1, n))


def batch_of_steps(x: Any) -> Any:
    """Scan the columns of rows, which are the batch."""
    last, seen = sw.lax.scan(
        lambda c, r: (c * 0.5 + r, (c, r[:, None] * np.ones((1, 3)))), x[:, 0] * 0, x.T
    )
    return last, *seen


def as_many_steps(x: Any) -> Any:
    """Scan as many steps as there are rows, over nothing."""
    return sw.lax.scan(lambda c, _: (c * 0.5, c), x, None, length=len(x))


def steps_in_steps(x: Any) -> Any:
    def inner(c: Any, r: Any) -> Any:
        return sw.lax.scan(lambda d, s: (d + s, d * r), c, r[None] * np.ones((2, 1)))

    return sw.lax.scan(inner, x[:, 0] * 0, x.T)


def batches_of_steps(x: Any) -> Any:
    return sw.vmap(lambda row: sw.lax.scan(lambda c, r: (c + r, c * r), row * 0, row[:, None]))(x)


@pytest.mark.parametrize(
    "function", [batch_of_steps, as_many_steps, steps_in_steps, batches_of_steps]
)
def test_scans_over_unknown_sizes(function: Any) -> None:
    """One program takes all sizes, and gives what those of each size give."""
    random = np.random.default_rng(1)
    f, plain = sw.jit(function), sw.jit(function, dynamic="never")
    for n in (4, 5, 6, 7, 17, 33):
        x = random.random((n, 5))
        for got, want in zip(f(x), plain(x), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12, err_msg=str(n))
    assert f.cache_info().programs == 2


def test_gradients_of_scans_over_unknown_batches_and_steps() -> None:
    random = np.random.default_rng(2)
    weights = random.standard_normal((4, 4)) * 0.3, random.standard_normal((3, 4))

    def loss(weights: Any, x: Any) -> Any:
        def step(h: Any, row: Any) -> Any:
            h = np.tanh(h @ weights[0] + row @ weights[1])
            return h, h.sum(axis=1)

        h, seen = sw.lax.scan(step, np.zeros((len(x), 4)), x.transpose(1, 0, 2))
        return (h * h).mean() + seen.mean()

    f, plain = (sw.jit(sw.value_and_grad(loss), dynamic=mode) for mode in ("auto", "never"))
    for batch, steps in ((14, 6), (14, 7), (15, 9), (16, 10), (17, 11)):
        x = random.standard_normal((batch, steps, 3))
        (value, found), (want, wanted) = f(weights, x), plain(weights, x)
        for a, b in zip((value, *found), (want, *wanted), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10)
    assert f.cache_info().programs == 3


def ends(x: Any) -> Any:
    return x[-1] * 2, x[:2] + 1, x[1:3] + x[-3:-1], x[::-1][0], x[0] + x, x[1::2][:1] * 3


def test_slices_of_a_known_size_along_an_unknown_axis() -> None:
    random = np.random.default_rng(3)
    f: Any = sw.jit(ends)
    for n in (5, 6, 7, 9, 33, 4):
        x = random.random((n, 3))
        for got, want in zip(f(x), ends(x), strict=True):
            np.testing.assert_array_equal(got, want)
    assert f.cache_info().programs == 2


def rows(x: Any) -> Any:
    return x[0][None], x[:2, 1:] - x[:1, :-1]


def test_slices_of_a_known_size_where_another_axis_is_unknown_too() -> None:
    any_size = sw.ShapeDtypeStruct((sw.Dim("n"), sw.Dim("m")), "float64")
    f: Any = sw.jit(rows, input_signature=[any_size])
    for n, m in ((3, 4), (2, 7), (5, 3)):
        x = np.arange(float(n * m)).reshape(n, m)
        for got, want in zip(f(x), rows(x), strict=True):
            np.testing.assert_array_equal(got, want)
    assert f.cache_info()[:2] == (1, 1)


def test_slices_that_are_longer_than_an_axis() -> None:
    def few(x: Any) -> Any:
        return x[:2], x[-2:], x[-1:], x[-3:-1]

    f: Any = sw.jit(few)
    for n in (5, 6, 7, 3, 2, 1, 0, 8):
        x = np.arange(3.0 * n).reshape(n, 3)
        for got, want in zip(f(x), few(x), strict=True):
            np.testing.assert_array_equal(got, want)


def test_a_function_of_ours_called_at_several_lines_is_one_program() -> None:
    f = sw.jit(sw.nn.softmax, input_signature=[sw.ShapeDtypeStruct((sw.Dim("n"), 3), "float32")])
    first = f(np.zeros((8, 3), np.float32))
    second = f(np.zeros((9, 3), np.float32))
    assert first.shape == (8, 3) and second.shape == (9, 3)
    assert f.cache_info().programs == f.cache_info().traces == 1


def test_one_program_of_declared_sizes_serves_threads_that_begin_at_once() -> None:
    signature = [sw.ShapeDtypeStruct((2, sw.Dim("n")), np.float32)]
    f, start = sw.jit(lambda x: x * 2 + 1, input_signature=signature), threading.Barrier(4)

    def run(n: int) -> Any:
        start.wait(30)
        return f(np.ones((2, n), np.float32))

    sizes = (1, 3, 40, 80)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(run, sizes))
    for n, found in zip(sizes, results, strict=True):
        np.testing.assert_array_equal(found, np.full((2, n), 3, np.float32))
    assert f.cache_info()[:2] == (1, 1)
