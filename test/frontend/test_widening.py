"""A NumPy scalar of float64 that widens float32 work is told of, once for each line."""

from __future__ import annotations

import inspect
import logging
import math
from typing import Any

import numpy as np
import pytest

import stepwell as sw

X = np.ones((2, 3), np.float32)
SCALE = np.sqrt(64)


def divided(x: Any) -> Any:
    return x / np.sqrt(64)


def from_outside(x: Any) -> Any:
    return SCALE * x


def compared(x: Any) -> Any:
    return x > np.float64(0.5)


def chosen(x: Any) -> Any:
    return np.where(x > 1, x, np.float64(0))


def by_ufunc(x: Any) -> Any:
    return np.maximum(x, np.float64(0))


def halves(x: Any) -> Any:
    return x.astype(np.float16) * np.float64(2)


@pytest.mark.parametrize(
    "f", [divided, from_outside, compared, chosen, by_ufunc, halves], ids=lambda f: f.__name__
)
def test_it_is_told_once_with_the_line(f: Any, caplog: pytest.LogCaptureFixture) -> None:
    line = inspect.getsourcelines(f)[1] + 1
    with caplog.at_level(logging.INFO, "stepwell"):
        np.testing.assert_array_equal(sw.jit(f)(X), f(X), strict=True)
        sw.jit(f)(X[:1])
    (told,) = [r for r in caplog.records if "float64" in r.getMessage()]
    assert told.levelname == "WARNING"
    assert told.getMessage().startswith(f"{__file__}:{line}: the NumPy scalar np.float64(")
    kind = "float16" if f is halves else "float32"
    assert f"makes {kind} arrays float64 here, as in NumPy" in told.getMessage()
    assert told.getMessage().endswith("float(...) around it, or math.sqrt for np.sqrt")


def test_an_argument_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    def scaled(x: Any, s: Any) -> Any:
        return x * s

    np.testing.assert_array_equal(sw.jit(scaled)(X, SCALE), X * SCALE, strict=True)
    (told,) = caplog.messages
    assert "an argument that is a NumPy scalar of float64 makes float32 arrays float64" in told
    assert told.endswith("pass it as a Python number, float(...)")


def test_it_is_told_of_in_a_jitted_function_called_by_another(
    caplog: pytest.LogCaptureFixture,
) -> None:
    inner = sw.jit(lambda x, s: x * s)
    sw.jit(lambda x: inner(x, np.float64(3)))(X)
    assert "the NumPy scalar np.float64(3.0)" in caplog.text


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x / math.sqrt(64),
        lambda x: x / float(np.sqrt(64)),
        lambda x: x / np.float32(8),
        lambda x: x / np.sqrt(np.float32(64)),
        lambda x: x * 2.0,
        lambda x: x.astype(np.float64) * np.float64(2),
        lambda x: x.astype(np.int32) * np.float64(2),
        lambda x: np.sum(x) * np.float64(2),
        lambda x: x * np.ones(3),
        lambda x: x + np.ones(3) * np.float64(2),
    ],
)
def test_what_is_not_widened_by_it_is_not_told_of(f: Any, caplog: pytest.LogCaptureFixture) -> None:
    np.testing.assert_array_equal(sw.jit(f)(X), f(X), strict=True)
    assert not caplog.records


def test_what_it_says_helps() -> None:
    assert sw.jit(divided)(X).dtype == np.float64
    assert sw.jit(lambda x: x / float(np.sqrt(64)))(X).dtype == np.float32
