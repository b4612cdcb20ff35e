"""Looking at programs: what is not finite, and functions that run as they are."""

from __future__ import annotations

import gc
import threading
import traceback
import weakref
from typing import Any

import numpy as np
import pytest

import stepwell as sw


def halves(x: Any) -> Any:
    return sw.debug.check_finite(1 / x)


def steps(x: Any, n: Any) -> Any:
    y = np.sqrt(x)
    s = 0.0
    for k in range(n):
        s = s + np.log(y[k])
        if s > 1:
            s = s / (s - s)
    return s, y.sum()


def failure(function: Any, *args: Any) -> tuple[str, str | None]:
    with pytest.raises(FloatingPointError) as found, np.errstate(all="ignore"):
        function(*args)
    return str(found.value), traceback.extract_tb(found.value.__traceback__)[-1].line


def test_finite_is_looked_at_where_it_is_asked() -> None:
    f = sw.jit(halves)
    np.testing.assert_array_equal(f(np.array([2.0, 4.0])), [0.5, 0.25])
    said, line = failure(f, np.array([2.0, 0.0]))
    assert said.startswith("div gave a NaN or an infinity in f64[2], at ")
    assert line == "return sw.debug.check_finite(1 / x)"
    with sw.disable_jit():
        assert failure(f, np.array([2.0, 0.0]))[0] == "there is a NaN or an infinity"


@pytest.mark.parametrize(
    "x, said, line",
    [
        ([1, -2], "sqrt gave a NaN or an infinity in f64[2]", "y = np.sqrt(x)"),
        ([1, 0], "log gave a NaN or an infinity in f64[]", "s = s + np.log(y[k])"),
        ([1, 1e3], "div gave a NaN or an infinity in f64[]", "s = s / (s - s)"),
    ],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_the_first_line_that_gives_what_is_not_finite(
    x: Any, said: str, line: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPWELL_THREADS", str(threads))
    f = sw.jit(check_finite=True)(steps)
    found = failure(f, np.array(x, np.float64), 2)
    assert found[0].startswith(f"{said}, at ") and found[1] == line
    assert np.isfinite(f(np.array([1.0, 2.0]), 2)).all()
    assert "nd.check" not in str(sw.jit(steps).trace(np.ones(2), 0)).replace("nd.check %lt", "")


def test_functions_run_as_they_are() -> None:
    seen: list[type] = []

    @sw.jit
    def f(x: Any, flag: Any = 1) -> Any:
        seen.append(x.__class__)
        return x * 2 if x[0] > 0 else x

    with sw.disable_jit():
        np.testing.assert_array_equal(f(np.ones(2)), [2, 2])
        with sw.disable_jit():
            np.testing.assert_array_equal(f(x=-np.ones(2)), [-1, -1])
        out = np.zeros(2)
        assert f(np.ones(2), out=out) is out and out[0] == 2

        @sw.jit
        def made_inside(x: Any) -> Any:
            seen.append(x.__class__)
            return x + 1

        made_inside(np.ones(2))
    assert seen == [np.ndarray] * 4
    np.testing.assert_array_equal(f(np.ones(2)), [2, 2])
    made_inside(np.ones(2))
    assert np.ndarray not in seen[4:]
    count = len(seen)
    f(np.ones(2))
    assert len(seen) == count


def test_other_threads_go_on_compiled() -> None:
    seen: list[type] = []

    @sw.jit
    def f(x: Any) -> Any:
        seen.append(x.__class__)
        return x * 2

    f(np.ones(2))
    with sw.disable_jit():
        thread = threading.Thread(target=lambda: f(np.ones(2)))
        thread.start()
        thread.join()
        assert np.ndarray not in seen
        f(np.ones(2))
    assert seen[-1] is np.ndarray


def test_our_own_functions_are_compiled_each_by_itself() -> None:
    @sw.jit
    def f(x: Any) -> Any:
        y = sw.nn.relu(x)
        assert type(y) is np.ndarray or not isinstance(x, np.ndarray)
        return sw.lax.fori_loop(0, 3, lambda i, c: c * 2, y)

    x = np.array([-1.0, 2.0])
    with sw.disable_jit():
        np.testing.assert_array_equal(f(x), [0, 16])
    np.testing.assert_array_equal(f(x), [0, 16])
    with pytest.raises(sw.TraceError):
        sw.nn.relu(x)


def test_functions_are_forgotten() -> None:
    f = sw.jit(lambda x: x + 1)
    with sw.disable_jit():
        f(np.ones(2))
    f(np.ones(2))
    known = weakref.ref(f)
    del f
    gc.collect()
    assert known() is None
