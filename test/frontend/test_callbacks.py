"""Python functions that programs call while they run: in order, as often as they stand there."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from run_traced import interpreted

import stepwell as sw

X = np.array([3.0, 1.0, 2.0])


def ordered(x: Any) -> Any:
    return np.sort(x)


def two(x: Any, n: Any) -> Any:
    return {"less": x - n, "count": np.int32(n * 2)}


def uses_two(x: Any, n: Any) -> Any:
    found = sw.callback(two, {"less": x, "count": np.int32(0)}, x[::-1] * 2, n)
    return found["less"] + found["count"], found["count"]


@pytest.mark.parametrize("threads", [1, 2])
def test_results(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPWELL_THREADS", str(threads))

    def f(x: Any) -> Any:
        return sw.callback(ordered, x, x * 2) + 1

    for run in (sw.jit(f), lambda x: interpreted(f, x), f):
        np.testing.assert_array_equal(run(X), [3, 5, 7])
    for run in (sw.jit(uses_two), lambda *a: interpreted(uses_two, *a)):
        less, count = run(X, np.int64(4))
        np.testing.assert_array_equal(less, [8, 6, 10])
        assert np.asarray(count).dtype == np.int32 and count == 8


def test_order_in_loops_and_branches(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any, n: Any) -> Any:
        s = 0.0
        sw.debug.print("begin {} {name}", x[:2], name="known")
        for k in range(n):
            s += x[k]
            sw.debug.print("{}: {:.1f}", k, s)
            if s > 3.5:
                sw.debug.print("big {s}", s=s)
        sw.debug.print("end")
        return s

    def wanted() -> str:
        return "begin [3. 1.] known\n0: 3.0\n1: 4.0\nbig 4.0\n2: 6.0\nbig 6.0\nend\n"

    compiled = sw.jit(f)
    for run in (compiled, compiled, lambda *a: interpreted(f, *a), f):
        assert run(X, np.int64(3)) == 6
        assert capsys.readouterr().out == wanted()
    assert str(compiled.trace(X, 3)) == str(compiled.trace(X, 3))


def test_arrays_are_as_they_are_there() -> None:
    """What is written afterwards, in place perhaps, is not seen; slices and transposes come whole."""
    seen: list[Any] = []

    def note(*arrays: Any) -> None:
        seen.append(arrays)

    @sw.jit
    def f(x: Any, m: Any) -> Any:
        y = x * 2
        sw.callback(note, None, y, m.T, m[1:, ::2])
        y[0] = 9
        sw.callback(note, None, y)
        x[0] = 7
        return y + m.sum()

    m = np.arange(12.0).reshape(3, 4)
    x = X.copy()
    f(x, m)
    assert x[0] == 7 and len(seen) == 2
    np.testing.assert_array_equal(seen[0][0], [6, 2, 4])
    np.testing.assert_array_equal(seen[0][1], m.T)
    np.testing.assert_array_equal(seen[0][2], m[1:, ::2])
    np.testing.assert_array_equal(seen[1][0], [9, 2, 4])


DTYPES = (
    "bool",
    "int8",
    "uint8",
    "int16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "float32",
)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3)])
def test_dtypes_and_shapes(dtype: str, shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    got = sw.jit(lambda x: sw.callback(lambda v: v, x, x))(x)
    assert got.dtype == x.dtype and got.shape == shape
    np.testing.assert_array_equal(got, x)


def test_errors_propagate() -> None:
    class Own(Exception):
        pass

    def bad(x: Any) -> Any:
        if x.sum() > 5:
            raise Own("too much")
        return x

    after: list[Any] = []

    @sw.jit
    def f(x: Any) -> Any:
        y = sw.callback(bad, x, x)
        sw.callback(after.append, None, y)
        return y

    with pytest.raises(Own, match="too much"):
        f(X)
    assert not after
    np.testing.assert_array_equal(f(X / 2), X / 2)
    assert len(after) == 1


@pytest.mark.parametrize(
    "function, wanted, said",
    [
        (lambda x: x[:1], X, r"it is to give an array of shape \(3,\), it gave \(1,\)"),
        (lambda x: (x, x), X, "returned something else than it was to"),
        (lambda x: "text", X, "it is to give an array of shape"),
    ],
)
def test_wrong_results(function: Any, wanted: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        sw.jit(lambda x: sw.callback(function, wanted, x))(X)


def test_what_is_refused() -> None:
    with pytest.raises(sw.TraceError, match="must have a shape and a dtype, not 'text'"):
        sw.jit(lambda x: sw.callback(ordered, "text", x))(X)


@pytest.mark.opencl
def test_on_opencl(capsys: pytest.CaptureFixture[str]) -> None:
    """The host reads arrays back, calls in order, and puts back what it is given."""
    seen: list[Any] = []

    def half(x: Any, m: Any) -> Any:
        seen.append((x.copy(), m.copy()))
        if x[0] > 100:
            raise KeyError("too large")
        return x / 2

    def run(x: Any, m: Any) -> Any:
        for _ in range(3):
            x = sw.callback(half, x, x + 1, m[1:, ::2].T) * 3
        sw.debug.print("now {}", x[0])
        return x

    m = np.arange(20.0).reshape(4, 5)
    f, g = sw.jit(target="opencl")(run), sw.jit(run)
    np.testing.assert_allclose(f(X, m), g(X, m))
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 2 and said[0] == said[1]
    assert len(seen) == 6
    for ours, theirs in zip(seen[:3], seen[3:], strict=True):
        for x, y in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(x, y)
    with pytest.raises(KeyError, match="too large"):
        f(X + 100, m)
    again: Any = sw.jit(target="opencl")(lambda x: sw.callback(lambda v: g(v, m), x, x) + 1)
    np.testing.assert_allclose(again(X), g(X, m) + 1)


@pytest.mark.opencl
def test_a_callback_calls_its_own_program_on_opencl() -> None:
    def inner(x: Any) -> Any:
        return outer(x - 1) if x[0] > 0 else x

    outer: Any = sw.jit(target="opencl")(lambda x: sw.callback(inner, x, x * 1) + np.cos(x))
    expected = np.cos(np.full(3, 0.0)) + np.cos(np.full(3, 1.0)) + np.cos(np.full(3, 2.0))
    np.testing.assert_allclose(outer(np.full(3, 2.0)), expected)


def test_threads_stay_apart() -> None:
    """Each thread gets its own error, and its own arrays."""

    def half(x: Any) -> Any:
        if x[0] % 2:
            raise ValueError(int(x[0]))
        return x / 2

    f = sw.jit(lambda x: sw.callback(half, x, x))
    found: dict[int, Any] = {}

    def work(n: int) -> None:
        for k in range(n, 200, 8):
            try:
                found[k] = f(np.full(3, float(k)))[0]
            except ValueError as error:
                found[k] = error.args[0]

    f(np.zeros(3))
    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {k: k if k % 2 else k / 2 for k in range(200)}


def test_a_saved_program_says_what_it_lacks(tmp_path: Path) -> None:
    sw.jit(lambda x: sw.callback(ordered, x, x)).trace(X).compile().save(tmp_path / "p")
    code = f"import numpy as np, stepwell as sw; sw.load({str(tmp_path / 'p')!r})(np.ones(3))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "RuntimeError: the program calls ordered#0, which this process" in done.stderr


def test_programs_without_callbacks_know_nothing_of_them() -> None:
    gc.collect()
    assert "sw_host" not in sw.jit(lambda x: x + 1).trace(X).compile().source
