"""Calling a program with arrays good and bad, through the extension and through ctypes."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stepwell.core.shapes import DYNAMIC
from stepwell.runtime import program as program_module
from stepwell.runtime.program import Program

Build = Callable[[int], Program]
X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(params=["extension", "ctypes"])
def build(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, add_program: Build):
    """Build programs for both ways of calling."""
    if request.param == "ctypes":
        monkeypatch.setattr(program_module, "load_extension", lambda: None)
    return add_program


def test_a_call_gives_a_fresh_array(build: Build) -> None:
    add = build(3).call
    first, second = add(X, X), add(X, X)
    np.testing.assert_array_equal(first, X + X)
    assert not np.shares_memory(first, second)


def test_sizes_are_taken_from_the_arguments(build: Build) -> None:
    add = build(DYNAMIC).call
    for rows in (0, 1, 7, 100_003):
        x = np.ones((rows, 4), np.float32)
        np.testing.assert_array_equal(add(x, x), x + x)


def test_out_is_written_and_returned(build: Build) -> None:
    out = np.empty_like(X)
    assert build(3).call(X, X, out=out) is out
    np.testing.assert_array_equal(out, X + X)


def test_out_may_be_an_argument_or_strided(build: Build) -> None:
    add = build(DYNAMIC).call
    x = X.copy()
    add(x, x, out=x)
    np.testing.assert_array_equal(x, X + X)
    wide = np.zeros((3, 8), np.float32)
    add(X, X, out=wide[:, ::2])
    np.testing.assert_array_equal(wide[:, ::2], X + X)
    overlapping = np.zeros((4, 4), np.float32)
    overlapping[:3] = X
    add(overlapping[:3], X, out=overlapping[1:])
    np.testing.assert_array_equal(overlapping[1:], X + X)


def test_names_work_too(build: Build) -> None:
    np.testing.assert_array_equal(build(3).call(X, y=X), X + X)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((X,), TypeError, "add(x, y) lacks argument 'y'"),
        ((X, X, X), TypeError, "add(x, y) takes 2 arguments, got 3"),
        ((X, None), TypeError, "argument 'y': expected float32[3, 4], got None"),
        ((X, "x"), TypeError, "argument 'y': expected float32[3, 4], got str"),
        (
            (X, [1.0]),
            TypeError,
            "argument 'y': expected float32[3, 4], got list; help: np.asarray(y, np.float32)",
        ),
        (
            (X, X.astype(np.float64)),
            TypeError,
            "argument 'y': expected float32[3, 4], got float64[3, 4]; help: y.astype(np.float32)",
        ),
        (
            (X[0], X),
            ValueError,
            "argument 'x': expected float32[3, 4], got float32[4]",
        ),
        (
            (X, X[:2]),
            ValueError,
            "argument 'y': expected float32[3, 4], got float32[2, 4]",
        ),
        (
            (X, np.ma.masked_array(X)),
            TypeError,
            "argument 'y': expected float32[3, 4], got a masked array; help: y.filled(0)",
        ),
    ],
)
def test_what_does_not_fit_is_named(
    build: Build, arguments: tuple[Any, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        build(3).call(*arguments)
    assert str(caught.value) == message


def test_bad_names_and_outs(build: Build) -> None:
    add = build(3).call
    cases: list[tuple[dict[str, Any], str]] = [
        ({"z": X}, "add(x, y) has no argument 'z'"),
        ({"x": X}, "add(x, y) got two values for argument 'x'"),
        ({"out": [1, 2]}, "out: expected 1 array, got 2"),
        ({"out": "x"}, "out: expected an array float32[3, 4], got str"),
        ({"out": X.astype(int)}, "out: expected float32[3, 4], got int64[3, 4]"),
    ]
    for named, message in cases:
        with pytest.raises(TypeError) as caught:
            add(X, X, **named)
        assert str(caught.value) == message
    frozen = X.copy()
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="out: the array is read-only"):
        add(X, X, out=frozen)
    with pytest.raises(ValueError, match=r"out: expected float32\[3, 4\], got float32\[2, 4\]"):
        add(X, X, out=np.zeros((2, 4), np.float32))


def test_sizes_that_must_agree(build: Build) -> None:
    with pytest.raises(ValueError, match="'x' has size 3 along axis 0, 'y' has size 2"):
        build(DYNAMIC).call(X, X[:2])


def test_awkward_arrays_are_copied_and_said_once(
    build: Build, caplog: pytest.LogCaptureFixture
) -> None:
    add = build(3).call
    unaligned = np.frombuffer(b"x" + X.tobytes(), np.uint8)[1:].view(np.float32).reshape(3, 4)
    for awkward in (np.asfortranarray(X), X.astype(">f4"), unaligned):
        caplog.clear()
        with caplog.at_level(logging.INFO, "stepwell"):
            for _ in range(3):
                np.testing.assert_array_equal(add(X, awkward), X + X)
        (record,) = caplog.records
        assert "test_calls.py" in record.getMessage()
        assert "argument 'y' is not" in record.getMessage()


def test_read_only_and_subclassed_arrays_are_fine(build: Build) -> None:
    add = build(3).call
    frozen = X.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(add(frozen, frozen), X + X)
    result = add(X.view(np.recarray), X)
    assert type(result) is np.ndarray


def test_many_threads_share_a_program(build: Build) -> None:
    add = build(DYNAMIC).call
    wrong: list[int] = []

    def work(n: int) -> None:
        x = np.full((5000 + n, 4), n, np.float32)
        for _ in range(50):
            if (add(x, x) != 2 * n).any():
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_programs_are_collected(build: Build) -> None:
    before = len([o for o in gc.get_objects() if isinstance(o, Program)])
    for _ in range(3):
        build(3).call(X, X)
    gc.collect()
    assert len([o for o in gc.get_objects() if isinstance(o, Program)]) <= before
