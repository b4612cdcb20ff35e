"""Defaults that are not passed are known while tracing; recursion, keywords, generators, partial."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import stepwell as sw
from stepwell.frontend.errors import TraceError
from stepwell.frontend.functions import Function

X = np.arange(6.0).reshape(2, 3)


@dataclass(frozen=True)
class Config:
    steps: int = 2
    name: str = "scale"


class Pair(NamedTuple):
    low: float
    high: float


TWO, CONFIG, PAIR = np.int64(2), Config(), Pair(0.5, 2.5)


def number(x: Any, n: int = 3) -> Any:
    for _ in range(n):
        x = x * 2
    return x.reshape(-1)[:n]


def text(x: Any, mode: str = "add") -> Any:
    return {"add": x + 1, "double": x * 2}[mode]


def tuples(x: Any, axes: tuple[int, ...] = (0, 1), pad: Any = ((0, 1), (2, 0))) -> Any:
    return np.sum(np.pad(x, pad), axis=axes)


def flag(x: Any, keep: bool = True) -> Any:
    return np.sum(x, axis=0, keepdims=keep)


def nothing(x: Any, w: Any = None) -> Any:
    return x if w is None else x @ w


def real(x: Any, scale: float = 0.5) -> Any:
    return x * scale if scale < 1 else x


def scalar(x: Any, n: Any = TWO) -> Any:
    return x[:, :n]


def function(x: Any, act: Callable[..., Any] = np.tanh, kind: Any = np.float32) -> Any:
    return act(x).astype(kind)


def frozen(x: Any, config: Config = CONFIG, pair: Pair = PAIR) -> Any:
    for _ in range(config.steps):
        x = x * len(config.name)
    return np.clip(x, *pair)


def keyword_only(x: Any, *, n: int = 2, mode: str = "add") -> Any:
    return text(x, mode) if n > 1 else x


def after_more(x: Any, *rest: Any, n: int = 2, **named: Any) -> Any:
    return sum(rest, x) * range(n)[-1] + sum(named.values())


EVERY = (
    *(number, text, tuples, flag, nothing, real, scalar, function, frozen, keyword_only),
    after_more,
)


def same(got: Any, wanted: Any) -> None:
    np.testing.assert_array_equal(got, wanted, strict=True)


@pytest.mark.parametrize("f", EVERY, ids=lambda f: f.__name__)
def test_a_default_is_known_while_tracing(f: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    jitted = sw.jit(f)
    same(jitted(X), f(X))
    assert jitted.cache_info().traces == 1

    def missed(*_: Any) -> None:
        raise AssertionError("the call was not served in C")

    monkeypatch.setattr(Function, "_take_apart", missed)
    for k in range(3):
        same(jitted(X + k), f(X + k))


@pytest.mark.parametrize(
    ("f", "value"),
    [(text, "double"), (frozen, Config(1)), (flag, False), (scalar, 1), (number, 1)],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_values_passed_by_name_in_static_argnames(f: Any, value: Any) -> None:
    name = list(inspect.signature(f).parameters)[1]
    jitted = sw.jit(f, static_argnames=name)
    for _ in range(2):
        same(jitted(X), f(X))
        same(jitted(X, value), f(X, value))
        same(jitted(X, **{name: value}), f(X, value))
    assert jitted.cache_info().traces == 2


def test_what_is_passed_is_data_as_ever(caplog: pytest.LogCaptureFixture) -> None:
    jitted = sw.jit(lambda x, s=2: x * s, dynamic="never")
    with caplog.at_level(logging.INFO, "stepwell"):
        for _ in range(2):
            same(jitted(X), X * 2)
            same(jitted(X, 3), X * 3)
            same(jitted(X, s=4), X * 4)
            same(jitted(X, 2), X * 2)
    (reason,) = jitted.cache_info().reasons
    assert reason.startswith("'s' is passed, and was left to its default;")
    assert "static_argnames=('s',)" in reason and reason in caplog.text


def test_the_default_after_it_was_passed_is_told_of() -> None:
    jitted = sw.jit(lambda x, s=2: x * s)
    same(jitted(X, 3), X * 3)
    same(jitted(X), X * 2)
    assert jitted.cache_info().reasons == (
        "'s' is left to its default, known while tracing, and was passed",
    )


def test_arrays_lists_and_dicts_are_data() -> None:
    w, both = np.ones(3), [np.ones(3), 2]
    jitted = sw.jit(lambda x, w=w, both=both: x * w + both[0] * both[1])
    same(jitted(X), X + 2)
    w[:], both[1] = 5, 3
    same(jitted(X), X * 5 + 3)


def test_a_default_is_told_of_by_explain() -> None:
    assert sw.jit(number).explain(X).arguments == ("x: tensor<2x3xf64>", "n = 3, static")


def test_defaults_with_an_input_signature() -> None:
    spec = sw.ShapeDtypeStruct((2, 3), "float64")
    same(sw.jit(number, input_signature=[spec])(X), number(X))
    told = sw.jit(real_data, input_signature=[spec, sw.ShapeDtypeStruct((), "float64")])
    same(told(X), X * 0.5)
    same(told(X, 0.25), X * 0.25)
    assert told.cache_info().traces == 1


def real_data(x: Any, scale: float = 0.5) -> Any:
    return x * scale


def test_a_default_of_a_method() -> None:
    class Layer:
        def __init__(self) -> None:
            self.w = np.ones(3)

        @sw.jit
        def run(self, x: Any, n: int = 2) -> Any:
            for _ in range(n):
                x = x + self.w
            return x

    layer = Layer()
    for _ in range(2):
        same(layer.run(X), X + 2)


def test_a_default_where_the_function_assigns_to_its_argument() -> None:
    def fill(x: Any, n: int = 2, value: Any = 7.0) -> None:
        x[:, :n] = value

    jitted = sw.jit(fill)
    for given in ((), (2, 7.0)):
        got, wanted = X.copy(), X.copy()
        fill(wanted)
        if not given:
            jitted(got)
        else:
            sw.jit(fill, static_argnames="n")(got, *given)
        same(got, wanted)


@sw.jit
def power(x: Any, n: int = 4) -> Any:
    """Call itself with a number, which stays one."""
    if n == 0:
        return np.ones_like(x)
    half = power(x, n // 2)
    return half * half * x if n % 2 else half * half


@functools.partial(sw.jit, static_argnames="n")
def factorial(x: Any, n: int) -> Any:
    return x if n == 0 else n * factorial(x, n - 1)


def test_recursion_over_static_arguments() -> None:
    same(power(X), X**4)
    for n in (0, 1, 3, 5):
        same(factorial(X, n), X * [1, 1, 0, 6, 0, 120][n])


def test_recursion_that_only_the_run_could_end_is_refused() -> None:
    with pytest.raises(TraceError, match="'power' calls itself, and nothing known while tracing"):
        power(X, 3)


def fold(x: Any, parts: tuple[Any, ...]) -> Any:
    return x if not parts else fold(x * parts[0] + 1, parts[1:])


def test_recursion_of_a_plain_function_over_a_tuple() -> None:
    jitted = sw.jit(lambda x, a, b: fold(x, (a, b, 2)))
    same(jitted(X, X, X), fold(X, (X, X, 2)))


def pieces(x: Any, n: int) -> Iterator[Any]:
    for k in range(n):
        yield x * k


def consuming(x: Any, n: int = 3) -> Any:
    total = sum(pieces(x, n), np.zeros_like(x))
    first, *_ = pieces(x + 1, 2)
    stacked = np.stack([p + first for p in pieces(x, n)])
    return total, stacked, max(k for k in range(n)) + x, list(pieces(x, 2))[-1]


def test_generators_are_consumed_by_the_trace() -> None:
    jitted = sw.jit(consuming)
    for _ in range(2):
        for got, wanted in zip(jitted(X), consuming(X), strict=True):
            same(got, wanted)


def scaled(x: Any, factor: Any, n: int = 2, *, mode: str = "add") -> Any:
    for _ in range(n):
        x = text(x, mode) * factor
    return x


def test_partial() -> None:
    for held in (
        functools.partial(scaled, factor=3.0),
        functools.partial(scaled, factor=3.0, mode="double"),
        functools.partial(functools.partial(scaled, mode="double"), factor=2.0, n=3),
    ):
        jitted = sw.jit(held)
        for _ in range(2):
            same(jitted(X), held(X))
        assert jitted.cache_info().traces == 1
    inside = sw.jit(lambda x: functools.partial(scaled, factor=2.0, mode="double")(x))
    same(inside(X), scaled(X, 2.0, mode="double"))


def test_a_jitted_function_in_another_keeps_numbers() -> None:
    inner = sw.jit(number)
    outer = sw.jit(lambda x: (inner(x), inner(x, 2), inner(x, n=1)))
    for got, wanted in zip(outer(X), (number(X), number(X, 2), number(X, 1)), strict=True):
        same(got, wanted)


def test_numbers_of_numpy_stay_what_they_are_in_another() -> None:
    inner = sw.jit(lambda x, s: x * s)
    x = X.astype(np.float32)
    for s in (2, 2.5, np.float64(2), np.float32(2), True):
        same(sw.jit(lambda x, s=s: inner(x, s))(x), x * s)
