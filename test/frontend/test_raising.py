"""`raise` and `assert` in branches and loops that only the run decides: what Python does, at its line."""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np
import pytest

import stepwell as sw

X = np.arange(5.0)


def sums(x: Any, n: Any) -> Any:
    if n <= 0:
        raise ValueError(f"n must be positive, got {n}")
    s = 0.0
    for k in range(n):
        if x[k] < 0:
            raise ZeroDivisionError
        elif x[k] > 100:
            y = x[k]
        else:
            y = x[k] * 2
        s += y
    return s


def chosen(x: Any, n: Any) -> Any:
    if n == 0:
        y = x + 1
    elif n == 1:
        y = x
    else:
        raise RuntimeError("no such way")
    return y


def helped(x: Any, n: Any) -> Any:
    def inner(k: Any) -> Any:
        if k > 3:
            raise KeyError("k")
        return x[k]

    if n > 2:
        return inner(n)
    return x[0]


def searched(x: Any, n: Any) -> Any:
    while True:
        n = n - 1
        if n < -3:
            raise ValueError("below")
        if x[n] > 2:
            break
    return n


def written(x: Any, n: Any) -> Any:
    y = x.copy()
    if n > 3:
        y[0] = 9
        raise OverflowError(f"{n} and {n - 1}")
    else:
        y[1] = 7
    y[2] += 1
    return y


def asserted(x: Any, n: Any) -> Any:
    s = 0.0
    for k in range(n):
        assert x[k] >= 0, ("negative", 1)
        s += x[k]
    return s


def known(x: Any, n: Any) -> Any:
    """The condition is known: it raises while it is traced, as Python does."""
    if len(x) > 4:
        raise ValueError("long")
    return x


CASES: list[tuple[Any, tuple[Any, ...]]] = [
    *((sums, (x, n)) for x in (X, X - 1, X * 60) for n in (0, 2, 6)),
    *((chosen, (X, n)) for n in (0, 1, 2)),
    *((helped, (X, n)) for n in (1, 3, 4)),
    *((searched, (x, 5)) for x in (X, X * 0)),
    *((written, (X, n)) for n in (1, 4)),
    *((asserted, (x, n)) for x in (X, X - 2) for n in (0, 2, 6)),
    (known, (X, 1)),
]


def outcome(function: Any, *args: Any) -> Any:
    try:
        return function(*args)
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return type(error), str(error).partition("\n")[0], frame.filename, frame.lineno


@pytest.mark.parametrize("threads", [1, 2])
def test_the_exceptions_of_python(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPWELL_THREADS", str(threads))
    compiled: dict[Any, Any] = {}
    for function, args in CASES:
        program = compiled.setdefault(function, sw.jit(function))
        wanted, found = outcome(function, *args), outcome(program, *args)
        if isinstance(wanted, tuple):
            assert found == wanted
        else:
            np.testing.assert_array_equal(found, wanted)


def test_what_a_branch_that_raises_leaves_is_known() -> None:
    """After it the condition is known not to hold: no index is checked."""

    def f(x: Any, n: Any) -> Any:
        if n < 0 or n >= 5:
            raise ValueError("n")
        return x[n]

    text = str(sw.jit(f).trace(X, 3))
    assert text.count("nd.check") == 1
    assert sw.jit(f)(X, 3) == 3


class Own(Exception):
    pass


def own(x: Any, n: Any) -> Any:
    if n > 0:
        raise Own("x")
    return x


def looped(x: Any, n: Any) -> Any:
    while n > 0:
        raise ValueError("x")
    return x


def floats(x: Any, n: Any) -> Any:
    if n > 0:
        raise ValueError(f"x is {x[0]}")
    return x


@pytest.mark.parametrize(
    "function, said",
    [
        (own, "Own is raised in a branch that only the run decides, where it can be Arithmetic"),
        (looped, "an exception is raised in a loop, or on each way through a branch"),
        (floats, "a message can have 2 integers without axes or format that only the run knows"),
    ],
)
def test_what_is_refused(function: Any, said: str) -> None:
    with pytest.raises(sw.TraceError, match=said):
        sw.jit(function).trace(X, 1)
