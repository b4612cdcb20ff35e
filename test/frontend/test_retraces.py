"""Why a function is traced again, and how often it may be."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import stepwell as sw

RATE = 1.0


def ones(n: int, kind: str = "float32") -> Any:
    return np.ones(n, kind)


def test_each_signature_is_traced_once() -> None:
    f: Any = sw.jit(lambda x: x + 1, dynamic="never")
    traces: list[int] = []
    for x in (ones(4), ones(4), ones(5), ones(4, "int32")):
        f(x)
        traces.append(f.cache_info().traces)
    assert traces == [1, 1, 2, 3]
    assert f.cache_info().programs == 3


def reasons_of(function: Any, *calls: Any, **options: Any) -> tuple[str, ...]:
    f: Any = sw.jit(function, dynamic="never", **options)
    for call in calls:
        f(*call)
    return f.cache_info().reasons


def test_reasons() -> None:
    def add(x: Any, y: Any) -> Any:
        return x

    (told,) = reasons_of(add, (ones(4), 1.0), (ones(5), 1.0))
    assert told.startswith("argument 'x' is f32[5], was f32[4]; a size may be any with sw.Dim")
    (told,) = reasons_of(add, (ones(4), 1.0), (ones(4, "int32"), 1.0))
    assert told == "argument 'x' is i32[4], was f32[4]; convert it with astype"
    (told,) = reasons_of(add, (ones(4), 1.0), (ones(4), ones(1)[0]))
    assert told == ("argument 'y' is an array f32[], was a Python number; pass it always alike")
    (told,) = reasons_of(add, (ones(4), 1), (ones(4), 2), static_argnames="y")
    assert told == "the static argument 'y' is 2, was 1; each value is a program of its own"
    (told,) = reasons_of(add, (ones(4), {"a": 1}), (ones(4), {"b": 1}))
    assert told == "'y' is built otherwise; keep the containers and their keys the same"
    told = reasons_of(add, (ones(4), 1.0), (ones(9), ones(2)), (ones(4), 2))[-1]
    assert told.startswith("argument 'y' is i64[], was f64[]")  # most like the first


def test_what_is_read_outside_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    f: Any = sw.jit(lambda x: x * RATE)
    f(ones(4))
    monkeypatch.setitem(globals(), "RATE", 2.0)
    f(ones(4))
    assert f.cache_info().reasons == (
        "'RATE', read outside of the function, is 2.0, was 1.0; "
        "pass it as an argument if it changes often",
    )


def test_functions_of_libraries_have_no_limit(caplog: pytest.LogCaptureFixture) -> None:
    f: Any = sw.jit(lambda x: x + 1, max_traces=None, dynamic="never")
    key = sw.random.key(7)
    with caplog.at_level(logging.INFO, "stepwell"):
        for n in range(3):
            f(ones(n + 2))
            sw.random.bits(key, n)
    assert [r for r in caplog.records if "again" in r.getMessage()] == []
    assert f.cache_info() == (3, 3, None, ())


def test_lines_from_the_second_and_a_limit(caplog: pytest.LogCaptureFixture) -> None:
    f: Any = sw.jit(lambda x: x + 1, max_traces=4, dynamic="never")
    with caplog.at_level(logging.INFO, "stepwell"):
        for n in range(4):
            f(ones(n + 2))
    told = [(r.levelname, r.getMessage()) for r in caplog.records if "again" in r.getMessage()]
    assert [level for level, _ in told] == ["INFO", "WARNING", "WARNING"]
    assert told[2][1].startswith(
        "'<lambda>' is traced again (3): argument 'x' is f32[5], was f32[4]"
    )
    with pytest.raises(
        sw.TraceError, match=r"was traced 4 times, which is its limit, and now argu"
    ):
        f(ones(9))
    np.testing.assert_array_equal(f(ones(3)), [2, 2, 2])  # those that are there serve on
    f.clear_cache()
    assert f.cache_info() == (0, 0, 4, ())
    np.testing.assert_array_equal(f(ones(9)), ones(9) + 1)
    assert f.cache_info().traces == 1
    with pytest.raises(ValueError, match="max_traces is how often"):
        sw.jit(lambda x: x, max_traces=0)
