"""Calls of compiled functions: however arguments are built and named, repeated calls stay in C."""

from __future__ import annotations

import gc
import sys
import threading
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp
from stepwell.runtime import program

X = np.arange(6, dtype=np.float32).reshape(2, 3)
ONE = np.float32(1)


class Pair(NamedTuple):
    a: Any
    b: Any


def _no_python(function: Any) -> None:
    """Let every call that leaves C fail from now on."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("the call went through Python")

    function._take_apart = refuse


def _same(got: Any, want: Any) -> None:
    assert type(got) is type(want)
    if isinstance(want, dict):
        assert list(got) == list(want)
        for key in want:
            _same(got[key], want[key])
    elif isinstance(want, tuple | list):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            _same(g, w)
    elif want is None:
        assert got is None
    else:
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


def _nested(p: Any, q: Any = None, *, r: Any = 2.0) -> Any:
    x = p["w"] + p["l"][0][0] * r
    return {"z": x, "a": [x, None], "p": Pair(x - p["l"][1].a, ())}


CALLS: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "nested": (_nested, ({"w": X, "l": [(X,), Pair(X, None)]},), {}),
    "by name": (_nested, (), {"r": X, "p": {"l": [(X,), Pair(X, None)], "w": X}}),
    "None": (_nested, ({"w": X, "l": [(X,), Pair(X, None)]}, None), {"r": X}),
    "number": (lambda x, s: x * s, (X, 3.0), {}),
    "integer": (lambda x, s: x.astype("int64") * s, (X, 3), {}),
    "truth": (lambda x, s: (x > 1) & s, (X, True), {}),
    "scalar": (lambda x, s: x * s, (X, np.float32(3)), {}),
    "more": (lambda x, *more, **named: x + more[1] + named["k"][0], (X, X, X), {"k": (X, X)}),
    "one result in a tuple": (lambda x: (x + ONE,), (X,), {}),
    "no result": (lambda x: None, (X,), {}),
    "no argument": (lambda: snp.ones(3), (), {}),
    "empty containers": (lambda p: [p["x"] * 2, {}, ()], ({"x": X, "y": [], "z": ()},), {}),
    "deep": (lambda p: p[0][0][0][0] + ONE, ([[[[X]]]],), {}),
}


@pytest.mark.parametrize("name", CALLS)
def test_repeated_calls_stay_in_c(name: str) -> None:
    function, args, kwargs = CALLS[name]
    jitted = sw.jit(function)
    first = jitted(*args, **kwargs)
    _no_python(jitted)
    _same(jitted(*args, **kwargs), first)


def test_the_values_are_those_of_this_call() -> None:
    f = sw.jit(lambda p, s=1.0: {"y": p["a"] * s + p["b"][0]})
    f({"a": X, "b": [X]})
    f({"a": X, "b": [X]}, 2.0)
    f({"a": X, "b": [X]}, s=2.0)
    for more in ({}, {"s": 2.0}):  # keys in another order are another program
        f({"b": [X], "a": X}, **more)
    f({"b": [X], "a": X}, 2.0)
    _no_python(f)
    np.testing.assert_array_equal(f({"b": [X], "a": X + 1}, 3.0)["y"], (X + 1) * 3 + X)
    np.testing.assert_array_equal(f({"b": [X], "a": X + 1}, s=-1.5)["y"], (X + 1) * -1.5 + X)
    np.testing.assert_array_equal(f({"b": [2 * X], "a": X})["y"], 3 * X)


def test_the_order_of_names_does_not_matter() -> None:
    f = sw.jit(lambda a, b, c: a - b * c)
    f(X, c=X, b=ONE)
    f(X, b=ONE, c=X)
    _no_python(f)
    np.testing.assert_array_equal(f(X, c=3 * X, b=np.float32(2)), -5 * X)
    np.testing.assert_array_equal(f(X, b=np.float32(2), c=3 * X), -5 * X)


def test_static_values_choose_the_program_by_type_too() -> None:
    f = sw.jit(lambda x, n: x * (10.0 if n is True else n), static_argnames="n")
    for _ in range(2):
        np.testing.assert_array_equal(f(X, 1), X)
        np.testing.assert_array_equal(f(X, True), X * 10)
        np.testing.assert_array_equal(f(X, n=2.0), X * 2)
        np.testing.assert_array_equal(f(X, n=2), X * 2)
    _no_python(f)
    np.testing.assert_array_equal(f(X, True), X * 10)
    np.testing.assert_array_equal(f(X, n=2), X * 2)


def test_structures_of_their_own_are_programs_of_their_own() -> None:
    f = sw.jit(lambda p: [q * 2.0 for q in p] if isinstance(p, list) else p["x"] + ONE)
    assert len(f([X])) == 1
    assert len(f([X, X])) == 2
    np.testing.assert_array_equal(f({"x": X}), X + 1)
    _no_python(f)
    assert [len(f([X] * n)) for n in (1, 2, 1)] == [1, 2, 1]
    for other in ([X, X, X], {"x": X, "y": X}, {"y": X}, (X,), [[X]], [X.astype("i4")], [None]):
        with pytest.raises(AssertionError, match="through Python"):
            f(other)


def test_arrays_that_lie_otherwise_are_copied() -> None:
    f = sw.jit(lambda p: {"y": p["x"] + p["w"]})
    f({"x": X, "w": X})
    _no_python(f)
    for awkward in (np.asfortranarray(X), X.astype(">f4"), np.repeat(X, 2, 1)[:, ::2], X[::-1]):
        np.testing.assert_array_equal(f({"x": awkward, "w": X})["y"], awkward + X)


def test_out_is_written() -> None:
    f = sw.jit(lambda p: p["x"] + p["w"])
    f({"x": X, "w": X})
    _no_python(f)
    out = np.empty_like(X)
    assert f({"x": X, "w": X}, out=out) is out
    np.testing.assert_array_equal(out, 2 * X)
    assert f({"x": X, "w": X}, out=None) is not out
    g = sw.jit(lambda x: {"y": x + ONE, "z": x - ONE})
    outs = (np.empty_like(X), np.empty_like(X))
    for _ in range(2):
        got = g(X, out=outs)
        assert got["y"] is outs[0] and got["z"] is outs[1]
    h = sw.jit(lambda x, out: x + out)
    for _ in range(2):
        np.testing.assert_array_equal(h(X, out=X), 2 * X)


def test_numbers_that_do_not_fit_are_refused() -> None:
    f = sw.jit(lambda x, n: x * n)
    i = np.arange(3)
    np.testing.assert_array_equal(f(i, 2), 2 * i)
    for _ in range(2):
        with pytest.raises(OverflowError):
            f(i, 2**63)
    np.testing.assert_array_equal(f(i, -(2**63)), i * -(2**63))


def test_integers_beyond_64_bits_are_refused() -> None:
    for number in (2**63, -(10**30)):
        with pytest.raises(OverflowError, match="argument 'n': a Python integer is an int64 here"):
            sw.jit(lambda n: n + 1)(number)


def test_a_default_that_may_change_is_read_in_every_call() -> None:
    default = [X]
    f = sw.jit(lambda x, d=default: x + d[0])
    f(X)
    f(X)
    default[0] = 5 * X
    np.testing.assert_array_equal(f(X), 6 * X)


def test_containers_of_other_classes_are_others() -> None:
    f: Any = sw.jit(lambda p: p["x"] * len(type(p).__name__))
    for _ in range(2):
        np.testing.assert_array_equal(f({"x": X}), X * 4)
        np.testing.assert_array_equal(f(OrderedDict(x=X)), X * 11)


def test_nothing_is_leaked() -> None:
    f = sw.jit(lambda p, s: {"y": p["x"] * s})
    x = X.copy()
    p: Any = {"x": x}
    f(p, 2.0)
    before = sys.getrefcount(x), sys.getrefcount(p)
    for _ in range(1000):
        f(p, 2.0)
        with pytest.raises(TypeError):
            f({"x": x, "y": "text"}, 2.0)
    gc.collect()
    assert (sys.getrefcount(x), sys.getrefcount(p)) == before
    held = len(gc.get_objects())
    for _ in range(1000):
        f(p, 2.0)
    assert abs(len(gc.get_objects()) - held) < 500


def test_without_the_extension_calls_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "load_extension", lambda: None)
    for function, args, kwargs in CALLS.values():
        jitted = sw.jit(function)
        _same(jitted(*args, **kwargs), jitted(*args, **kwargs))


def test_a_container_may_change_while_others_call() -> None:
    big = np.ones(1 << 16, np.float32)
    f = sw.jit(lambda p: p[0] + p[1])
    shared = [big, big]
    f(shared)
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            shared[0] = np.full_like(big, 2.0)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(200):
            assert set(np.unique(f(shared))) <= {2.0, 3.0}
    finally:
        stop.set()
        thread.join()


MASKED: Any = np.ma.array(data=np.ones(2), mask=np.array([False, True]))  # pyright: ignore


@pytest.mark.parametrize(
    "given, said",
    [
        (MASKED, "a MaskedArray computes otherwise .* its mask"),
        (
            np.eye(2).view(np.matrix),
            r"a matrix computes otherwise than an array; pass numpy\.asarray",
        ),
        (np.ones((1,) * 33), "argument 'x' has 33 axes, and at most 32 may be"),
    ],
)
def test_arrays_that_mean_something_else_are_refused(given: Any, said: str) -> None:
    f = sw.jit(lambda x: x * x)
    f(np.ones(2))
    for function in (f, sw.grad(lambda x: (x * x).sum())):
        with pytest.raises(TypeError, match=said):
            function(given)
