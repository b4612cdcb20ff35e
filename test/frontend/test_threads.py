"""Traces belong to a thread and a context; what leaks from one is refused, never a wrong number."""

from __future__ import annotations

import asyncio
import random
import re
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp
from stepwell.core.once import Once

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def in_threads(*work: Callable[[], Any]) -> list[Any]:
    """Run each in a thread of its own; return what they return, raise what one raises."""
    with ThreadPoolExecutor(len(work)) as pool:
        return [each.result(timeout=120) for each in [pool.submit(w) for w in work]]


def test_two_threads_trace_at_once() -> None:
    both = threading.Barrier(2)

    def numbered(k: float) -> Any:
        def f(x: Any) -> Any:
            both.wait(30)
            y = x * k
            both.wait(30)
            z = snp.ones((3,)) * y + snp.full((3,), k)
            both.wait(30)
            return z, y

        return sw.jit(f)

    for first, (k, (z, y)) in zip(
        (2.0, 3.0),
        enumerate(in_threads(*(lambda k=k: numbered(k)(X) for k in (2.0, 3.0)))),
        strict=True,
    ):
        assert k in (0, 1)
        np.testing.assert_array_equal(y, X * np.float32(first))
        np.testing.assert_array_equal(z, X * np.float32(first) + np.float32(first))


def test_a_signature_is_compiled_once() -> None:
    traced: list[int] = []
    start = threading.Barrier(6)

    def f(x: Any) -> Any:
        traced.append(1)
        return x + 1.0

    run = sw.jit(f)

    def call() -> Any:
        start.wait(30)
        return run(X)

    for result in in_threads(*[call] * 6):
        np.testing.assert_array_equal(result, X + 1)
    assert len(traced) == 1


def test_two_functions_that_call_each_other_in_two_threads() -> None:
    both = threading.Barrier(2)

    def meet() -> None:
        with suppress(threading.BrokenBarrierError):  # a second trace finds nobody else there
            both.wait(1)

    def make(other: Callable[[], Any], depth: int) -> Any:
        def f(x: Any, more: bool) -> Any:
            meet()
            return x + (other()(np.ones(3, np.float32), False) if more else depth)

        return sw.jit(f, static_argnames="more")

    table: list[Any] = []
    table.append(make(lambda: table[1], 10))
    table.append(make(lambda: table[0], 20))
    ones = np.ones(3, np.float32)
    a, b = in_threads(lambda: table[0](ones, True), lambda: table[1](ones, True))
    np.testing.assert_array_equal(a, ones + ones + 20)
    np.testing.assert_array_equal(b, ones + ones + 10)


def test_two_threads_that_need_what_the_other_makes() -> None:
    made: Once[str, str] = Once()
    both = threading.Barrier(2)

    def make(key: str, other: str) -> str:
        both.wait(30)
        return key + made.get(other, lambda: other)

    one, two = in_threads(
        lambda: made.get("a", lambda: make("a", "b")), lambda: made.get("b", lambda: make("b", "a"))
    )
    assert (one, two) == ("ab", "ba") or {one, two} <= {"ab", "ba", "a", "b"}


def test_who_waits_for_one_who_fails_tries_too() -> None:
    made: Once[str, int] = Once()
    begun, go_on = threading.Event(), threading.Event()

    def fail() -> int:
        begun.set()
        go_on.wait(30)
        raise ValueError("no")

    def first() -> None:
        with pytest.raises(ValueError, match="no"):
            made.get("k", fail)

    def second() -> int:
        begun.wait(30)
        threading.Timer(0.05, go_on.set).start()
        return made.get("k", lambda: 5)

    assert in_threads(first, second)[1] == 5


def leaked(function: Callable[[Any, list[Any]], Any]) -> Any:
    """Return a value that ``function`` leaves behind."""
    found: list[Any] = []
    sw.jit(lambda x: function(x, found)).trace(X)
    return found[0]


def keeps(x: Any, found: list[Any]) -> Any:
    found.append(x * 2)  # made here
    return x


@pytest.mark.parametrize(
    "use",
    [
        lambda x, y: y,
        lambda x, y: (x, {"y": y}),
        lambda x, y: -y,
        lambda x, y: x + y,
        lambda x, y: y + x,
        lambda x, y: y + 1,
        lambda x, y: 1 - y,
        lambda x, y: y[0],
        lambda x, y: x.at[0].set(y[0]),
        lambda x, y: x.at[0, y].set(1),
        lambda x, y: snp.sum(y),
        lambda x, y: snp.concat([x, y]),
        lambda x, y: snp.where(x > 0, x, y),
        lambda x, y: snp.reshape(y, (2, 3)),
        lambda x, y: snp.broadcast_to(y, (2, 3)),
        lambda x, y: snp.astype(y, "float32"),
        lambda x, y: snp.permute_dims(y, (0, 1)),
        lambda x, y: sw.lax.stop_gradient(y),
        lambda x, y: sw.lax.cond(y[0, 0] > 0, lambda: x, lambda: x),
        lambda x, y: sw.lax.cond(x[0, 0] > 0, lambda: x, lambda: y),
        lambda x, y: sw.lax.fori_loop(0, 3, lambda i, c: c + y, x),
        lambda x, y: sw.lax.fori_loop(0, 3, lambda i, c: y, x),
        lambda x, y: sw.lax.scan(lambda c, v: (c, y), x, x),
        lambda x, y: sw.lax.while_loop(lambda c: c[0, 0] < y[0, 0], lambda c: c + 1, x),
        lambda x, y: sw.jit(lambda v: v + 1)(y),
        lambda x, y: float(y[0, 0]),
        lambda x, y: bool(y),
        lambda x, y: np.asarray(y),
        lambda x, y: np.sin(y),
    ],
)
def test_a_leaked_value_is_refused_with_both_lines(use: Callable[[Any, Any], Any]) -> None:
    value = leaked(keeps)
    made = keeps.__code__.co_firstlineno + 1
    with pytest.raises(
        sw.TraceError, match="a value of one traced function was used in another"
    ) as caught:
        sw.jit(lambda x: use(x, value))(X)
    said = str(caught.value)
    assert f"made at {__file__}:{made}" in said
    assert f"used at {__file__}:" in said
    with pytest.raises(sw.TraceError, match=rf"made at {re.escape(__file__)}:{made}"):
        use(X, -value)


def test_the_next_trace_of_one_function_is_another_one() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        kept.append(x + 1)
        return kept[0] * 2

    run = sw.jit(f)
    np.testing.assert_array_equal(run(X), (X + 1) * 2)
    with pytest.raises(sw.TraceError, match="of 'f' in a later call"):
        run(X[0])


REGIONS: list[Callable[[Any, Callable[[Any], Any]], Any]] = [
    lambda x, keep: sw.lax.fori_loop(0, 3, lambda i, c: keep(c), x),
    lambda x, keep: sw.lax.scan(lambda c, v: (keep(c), v), x, x)[0],
    lambda x, keep: sw.lax.while_loop(lambda c: keep(c)[0, 0] < 3, lambda c: c + 1, x),
    lambda x, keep: sw.lax.while_loop(lambda c: c[0, 0] < 3, lambda c: keep(c) + 1, x),
    lambda x, keep: sw.lax.cond(x[0, 0] > 0, lambda: keep(x), lambda: x),
    lambda x, keep: sw.lax.cond(x[0, 0] > 0, lambda: x, lambda: keep(x)),
]


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize(
    "use",
    [
        lambda y, v: v,
        lambda y, v: y + v,
        lambda y, v: sw.lax.fori_loop(0, 2, lambda i, c: c + v, y),
        lambda y, v: sw.lax.cond(y[0, 0] > 0, lambda: v, lambda: y),
    ],
)
def test_a_value_of_a_region_stays_in_it(
    region: Callable[[Any, Callable[[Any], Any]], Any], use: Callable[[Any, Any], Any]
) -> None:
    def f(x: Any) -> Any:
        kept: list[Any] = []

        def keep(v: Any) -> Any:
            kept.append(v * 2)
            return v

        return use(region(x, keep), kept[0])

    with pytest.raises(
        sw.TraceError, match=r"gradient or vmap of 'f' was used outside of it.*made at"
    ):
        sw.jit(f)(X)


def test_a_region_may_use_what_is_outside_of_it() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        return sw.lax.fori_loop(
            0, 2, lambda i, c: sw.lax.cond(c[0, 0] < 9, lambda: c + y, lambda: c - y), x
        )

    np.testing.assert_array_equal(sw.jit(f)(X), X * 5)


def test_other_threads_cannot_write_a_trace() -> None:
    def elsewhere(x: Any, work: Callable[[], Any]) -> Any:
        return in_threads(work)[0]

    with pytest.raises(sw.TraceError, match="used in another thread than the one tracing it"):
        sw.jit(lambda x: elsewhere(x, lambda: x + x))(X)
    with pytest.raises(sw.TraceError, match="in the thread that calls it"):
        sw.jit(lambda x: elsewhere(x, lambda: sw.nn.relu(X)))(X)
    with_plain = sw.jit(lambda x: x + elsewhere(x, lambda: snp.ones(3)))
    np.testing.assert_array_equal(with_plain(X), X + 1)

    def with_context(x: Any) -> Any:
        context = copy_context()
        return elsewhere(x, lambda: context.run(lambda: snp.ones(3) + x))

    with pytest.raises(sw.TraceError, match=r"in the thread that calls it|used in another thread"):
        sw.jit(with_context)(X)


def test_a_context_does_not_outlive_its_trace() -> None:
    kept: list[Any] = []
    sw.jit(lambda x: kept.append(copy_context()) or x)(X)
    with pytest.raises(sw.TraceError, match="inside a function given to"):
        kept[0].run(lambda: sw.nn.relu(X))
    assert type(kept[0].run(lambda: snp.ones(3))) is np.ndarray
    np.testing.assert_array_equal(kept[0].run(lambda: sw.jit(lambda x: x + 1)(X)), X + 1)


def test_a_trace_that_fails_leaves_nothing_behind() -> None:
    attempts: list[int] = []

    def f(x: Any) -> Any:
        attempts.append(1)
        with suppress(ZeroDivisionError):  # the branch that failed is not written
            sw.lax.cond(x[0, 0] > 0, lambda: x + 1, lambda: 1 / 0)
        if len(attempts) == 1:
            raise KeyError("once")
        return x * 2

    run = sw.jit(f)
    with pytest.raises(KeyError):
        run(X)
    assert type(snp.ones(3)) is np.ndarray, "no trace is going on"
    np.testing.assert_array_equal(run(X), X * 2)
    assert "nd.if" not in str(run.trace(X))


def test_generators_and_tasks() -> None:
    def rows(x: Any) -> Any:
        for i in range(2):
            yield x[i] * 2

    kept: list[Any] = []

    def f(x: Any) -> Any:
        kept.append(rows(x))
        return next(kept[0]) + sum(rows(x))

    np.testing.assert_array_equal(sw.jit(f)(X), X[0] * 2 + (X * 2).sum(0))
    with pytest.raises(sw.TraceError, match="of 'f' was used outside of its trace"):
        next(kept[0])
    for lazy in (rows, slow):
        with pytest.raises(TypeError, match=f"'{lazy.__name__}' gives no arrays when it is called"):
            sw.jit(lazy)


async def slow(x: Any) -> Any:
    return x


def test_asyncio() -> None:
    run = sw.jit(lambda x, k: x * k, static_argnames="k")
    later: list[Any] = []

    def spawns(x: Any) -> Any:
        later.append(asyncio.ensure_future(late(x)))
        return x + 1

    async def late(x: Any) -> Any:
        return x + snp.ones(3)

    async def one(k: int) -> Any:
        await asyncio.sleep(0)
        if k % 2:
            return await asyncio.to_thread(run, X, float(k))
        return run(X, float(k))

    async def everything() -> None:
        for k, result in enumerate(await asyncio.gather(*map(one, range(8)))):
            np.testing.assert_array_equal(result, X * np.float32(k))
        np.testing.assert_array_equal(sw.jit(spawns)(X), X + 1)
        with pytest.raises(sw.TraceError, match=r"outside of its trace|inside a function given to"):
            await later[0]

    asyncio.run(everything())


def test_a_jitted_function_is_part_of_the_one_that_calls_it() -> None:
    inner = sw.jit(lambda x, k, n: {"y": x * k, "n": snp.sum(x) * n}, static_argnames="n")
    outer = sw.jit(lambda x: inner(x + 1, 2, n=3))
    got = outer(X)
    np.testing.assert_array_equal(got["y"], (X + 1) * 2)
    assert got["n"] == ((X + 1).sum() * 3)
    assert str(outer.trace(X)).count("func.func") == 1
    small = np.ones(3, np.int8)
    plain = sw.jit(lambda x, k: x + k)
    assert sw.jit(lambda x: plain(x, 2))(small).dtype == plain(small, 2).dtype
    # with numbers alone it is called, and gives numbers
    np.testing.assert_array_equal(sw.jit(lambda x: x + plain(X, 1.0))(X), X + X + 1)
    with pytest.raises(sw.TraceError, match="the static argument 'n' is not known while tracing"):
        sw.jit(lambda x: inner(x, 2, x))(X)
    with pytest.raises(sw.TraceError, match="out= names arrays"):
        sw.jit(lambda x: plain(x, 2, out=X))(X)
    np.testing.assert_array_equal(sw.jit(lambda x: sw.jit(lambda y: y + x)(X))(X), X + X)


def test_a_jitted_function_that_calls_itself() -> None:
    def power(x: Any, n: int) -> Any:
        return snp.ones(x.shape) if n == 0 else x * run(x, n - 1)

    run = sw.jit(power, static_argnames="n")
    np.testing.assert_array_equal(run(X, 5), X**5)


def test_many_threads_many_functions() -> None:
    stress(functions=12, threads=8, calls=800, seed=1)


@pytest.fixture
def restless() -> Iterator[None]:
    """Let Python change threads after each microsecond instead of five thousand."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.slow
def test_eight_threads_sixty_functions_ten_thousand_calls() -> None:
    stress(functions=60, threads=8, calls=10_000, seed=2)


@pytest.mark.slow
@pytest.mark.usefixtures("restless")
def test_threads_that_change_at_each_microsecond() -> None:
    stress(functions=60, threads=8, calls=10_000, seed=3)


@pytest.mark.usefixtures("restless")
def test_static_values_in_many_threads() -> None:
    values = (1, 1.0, True, 0.0, -0.0, (1,), (1.0,), float("nan"), np.float32(1), "1", scaled)
    traced: list[Any] = []

    def number(x: Any, s: Any) -> Any:
        traced.append(s)
        return x + next(k for k, v in enumerate(values) if v is s)

    f: Any = sw.jit(number, static_argnames="s")
    x = np.arange(4)

    def work(seed: int) -> None:
        chosen = random.Random(seed)
        for _ in range(300):
            k = chosen.randrange(len(values))
            np.testing.assert_array_equal(f(x, values[k]), x + k)

    in_threads(*[lambda seed=seed: work(seed) for seed in range(8)])
    assert len(traced) == len(values)


def scaled(x: Any) -> Any:
    return x * 2


def _function(k: int) -> tuple[Callable[..., Any], Callable[[Any], Any]]:
    """Return a function and what it is in NumPy; all have names and lines in common."""
    c = np.float32(k + 1)
    table = np.arange(64, dtype=np.float32) + c

    def affine(x: Any) -> Any:
        return {"y": x * c + table[: x.shape[0]], "s": snp.sum(x) + c}

    def looped(x: Any) -> Any:
        return sw.lax.fori_loop(0, k % 5 + 1, lambda i, v: v + c, x)

    def chosen(x: Any) -> Any:
        return sw.lax.cond(snp.sum(x) > k, lambda: x + c, lambda: x - c), snp.cumulative_sum(x)

    def many(x: Any) -> Any:
        y = snp.matmul(snp.reshape(x, (-1, 1)), snp.reshape(x, (1, -1)))
        return y + c, snp.sum(y, axis=0)

    def in_numpy(x: Any) -> Any:
        total = np.cumsum(x)
        y = x.reshape(-1, 1) * x.reshape(1, -1)
        repeated = x
        for _ in range(k % 5 + 1):
            repeated = repeated + c
        wants = (
            (x.sum() + c, x * c + table[: x.shape[0]]),
            (repeated,),
            (x + c if x.sum() > k else x - c, total),
            (y + c, y.sum(0)),
        )
        return wants[k % 4]

    return (affine, looped, chosen, many)[k % 4], in_numpy


def stress(functions: int, threads: int, calls: int, seed: int) -> None:
    """Call functions from all threads at once, also for the first time; hold results; compare."""
    table = [_function(k) for k in range(functions)]
    jitted = [sw.jit(f) for f, _ in table]
    wrong: list[str] = []

    def worker(number: int) -> None:
        chosen = random.Random(seed * 1000 + number)
        held: list[tuple[int, Any, Any]] = []

        def compare() -> None:
            for k, x, got in held:
                leaves = [got[n] for n in sorted(got)] if isinstance(got, dict) else got
                leaves = leaves if isinstance(leaves, list | tuple) else (leaves,)
                for g, want in zip(leaves, table[k][1](x), strict=True):
                    if not np.allclose(g, want, rtol=1e-5, atol=1e-4):
                        wrong.append(f"function {k} for {x[:4]}...: {g} is not {want}")
            held.clear()

        for _ in range(calls // threads):
            k = chosen.randrange(functions)
            n = chosen.choice((3, 3, 3, 17, 48))
            x = np.full(n, chosen.randrange(100), np.float32)
            x[0] = number
            held.append((k, x, jitted[k](x)))
            if len(held) == 20:
                compare()
        compare()

    in_threads(*[lambda n=n: worker(n) for n in range(threads)])
    assert wrong == []
