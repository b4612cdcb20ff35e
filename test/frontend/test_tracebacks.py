"""Tracebacks have the lines of the user's program, and none of ours."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.tracebacks import VARIABLE

X = np.ones((2, 3))


def helper(x: Any) -> Any:
    return x.reshape(7)


def calls(x: Any) -> Any:
    return np.exp(helper(x))


def loops(x: Any) -> Any:
    for i in range(20):
        if x[0, 0] > 0:
            x[i] = np.sum(x, axis=1)
    return x


def sorts(x: Any) -> Any:
    return sorted(x, key=helper)


def in_branches(x: Any) -> Any:
    return sw.lax.cond(x[0, 0] > 0, helper, helper, x)


def catches(x: Any) -> Any:
    try:
        return helper(x)
    except ValueError:
        raise RuntimeError("no") from None


def raises_again(x: Any) -> Any:
    try:
        return helper(x)
    except ValueError:
        return x + {}


def lines(run: Callable[..., Any], *args: Any) -> list[str]:
    """Return the names of the functions in the traceback, but that of this one."""
    try:
        run(*args)
    except Exception as error:
        return [frame.name for frame in traceback.extract_tb(error.__traceback__)][1:]
    return []


@pytest.fixture(autouse=True)
def as_users_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE)


@pytest.mark.parametrize(
    "function, names",
    [
        (calls, ["calls", "helper"]),
        (loops, ["loops"]),
        (sorts, ["sorts", "helper"]),
        (in_branches, ["in_branches", "helper"]),
        (catches, ["catches"]),
        (raises_again, ["raises_again"]),
    ],
)
def test_only_the_users_lines(function: Any, names: list[str]) -> None:
    jitted = sw.jit(function)
    assert lines(jitted, X) == names, "the first call"
    assert lines(jitted, X) == names
    assert lines(jitted.trace, X) == names
    assert lines(jitted.explain, X) == names


def test_what_fails_while_it_runs() -> None:
    def reads(x: Any, i: Any) -> Any:
        return x[i]

    assert len(lines(sw.jit(reads), X, 5)) == 1


def test_compiling_has_no_lines_of_the_users() -> None:
    assert lines(sw.compile, "func.func @f() { nonsense }") == []
    assert lines(sw.jit(lambda x: x, target="nowhere"), X) == []


def test_exceptions_behind_one_are_the_users() -> None:
    with pytest.raises(TypeError) as found:
        sw.jit(raises_again)(X)
    behind = found.value.__context__
    assert behind is not None and "reshape" in str(behind)
    frames = traceback.extract_tb(behind.__traceback__)
    assert [frame.name for frame in frames] == ["raises_again", "helper"]
    with pytest.raises(ValueError) as found:
        sw.jit(calls)(X)
    assert found.value.__context__ is None


def test_all_lines_where_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "full")
    assert len(lines(sw.jit(calls), X)) > 10
