"""Where indices are proven to lie within their axis nothing is checked; elsewhere NumPy's error is raised."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stepwell as sw

X = np.arange(12.0)


def rolled(x: Any) -> Any:
    y = np.zeros(12)
    for i in range(1, 12):
        y[i] = y[i - 1] + x[i]
    return y


def triangle(x: Any) -> Any:
    s = 0.0
    for i in range(12):
        for j in range(i):
            s += x[j] * x[-1 - j]
    return s


def backwards(x: Any) -> Any:
    s = 0.0
    for i in range(11, -1, -1):
        s = s * 0.5 + x[i]
    return s


def largest(x: Any) -> Any:
    return x[np.argmax(x)] + x[np.argsort(x)[3]]


def remainders(x: Any, n: Any) -> Any:
    return (
        x[n % 12]
        + x[(n % 5) * 2 + 1]
        + x[min(max(n, 0), 11)]
        + x[-1 - n % 12]
        + x[abs(n) % 12 // 2]
    )


def small(x: Any, i: Any) -> Any:
    return np.concatenate([x, x, x] * 8)[i]


def asked(x: Any, n: Any) -> Any:
    s = 0.0
    if n >= 0 and n < 12:
        s = x[n]
    return s


def asserted(x: Any, n: Any) -> Any:
    assert 0 <= n < 12
    return x[n] + x[n - 12]


def twice(x: Any, n: Any) -> Any:
    return x[n] + x[n] * 2


N = np.int64(7)


@pytest.mark.parametrize(
    "function, args, checks, choices",
    [
        (rolled, (X,), 0, 0),
        (triangle, (X,), 0, 0),
        (backwards, (X,), 0, 0),
        (largest, (X,), 0, 0),
        (remainders, (X, N), 0, 2),
        (small, (X, np.arange(9, dtype=np.uint8)), 0, 0),
        (asked, (X, N), 0, 0),
        (asserted, (X, N), 1, 0),
        (twice, (X, N), 1, 2),
    ],
)
def test_what_is_checked(function: Any, args: Any, checks: int, choices: int) -> None:
    text = str(sw.jit(function).trace(*args))
    assert (text.count("nd.check"), text.count("nd.select")) == (checks, choices), text
    np.testing.assert_allclose(sw.jit(function)(*args), function(*args), rtol=1e-14)


def reads(x: Any, i: Any) -> Any:
    return x[i]


def writes(x: Any, i: Any) -> Any:
    y = x.copy()
    y[i] = 5
    return y


def adds(x: Any, i: Any) -> Any:
    y = x.copy()
    y[2, i] += 1
    return y


def takes(x: Any, i: Any) -> Any:
    return np.take(x, i, axis=1)


def along(x: Any, i: Any) -> Any:
    return np.take_along_axis(x, np.broadcast_to(i, (3, 1)), 1)


def in_a_loop(x: Any, n: Any) -> Any:
    s = 0.0
    for k in range(n):
        s += x[k, 0]
    return s


def in_a_branch(x: Any, i: Any) -> Any:
    s = 0.0
    if i > 2:
        s = x[i, 0]
    return s


def in_a_while(x: Any, n: Any) -> Any:
    k = 0
    while x[k, 0] < n:
        k += 1
    return k


M = np.arange(12.0).reshape(3, 4)
FORMS: list[tuple[Callable[..., Any], Any]] = [
    (f, np.dtype(t).type(i))
    for f in (reads, writes, adds, takes, along, in_a_loop, in_a_branch, in_a_while)
    for t in ("i8", "i4", "i2", "u1", "u8")
    for i in ((-9, -5, -4, -1, 0, 2, 3, 4, 9) if t[0] == "i" else (0, 2, 3, 4, 9, 200))
]


def outcome(function: Any, *args: Any) -> tuple[str, Any, Any]:
    try:
        return "", function(*args), None
    except IndexError as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return str(error), frame.filename, frame.lineno


@pytest.mark.sampled(2)
@pytest.mark.parametrize("function", dict.fromkeys(f for f, _ in FORMS))
def test_the_errors_of_numpy(function: Any) -> None:
    """Message and line are those of the same function in Python."""
    compiled = sw.jit(function)
    for i in (i for f, i in FORMS if f is function):
        wanted, found = outcome(function, M, i), outcome(compiled, M, i)
        assert found[0] == wanted[0], (i, found, wanted)
        if wanted[0] and function is not along and function is not takes:
            assert found[1:] == wanted[1:]
        elif not wanted[0]:
            np.testing.assert_array_equal(found[1], wanted[1])


def test_arrays_of_indices() -> None:
    compiled = sw.jit(reads)
    np.testing.assert_array_equal(
        compiled(X, np.array([[0, -12], [11, 3]])), X[[[0, -12], [11, 3]]]
    )
    np.testing.assert_array_equal(compiled(X, np.zeros((0, 3), np.int64)), np.zeros((0, 3)))
    for bad in (12, -13, 2**40):
        with pytest.raises(
            IndexError, match=f"index {bad} is out of bounds for axis 0 with size 12"
        ):
            compiled(X, np.array([1, bad, 3]))


def test_indices_of_a_loop_are_looked_at_once() -> None:
    """The least and the largest of an array are found before a loop that reads by it."""

    def f(x: Any, idx: Any, n: Any) -> Any:
        for _ in range(n):
            x = x[idx] + 1
        return x

    text = str(sw.jit(f).trace(X, np.arange(12), N))
    assert text.index("nd.reduce_max") < text.index("nd.while") < text.index("nd.check")
    idx = np.arange(12)[::-1].copy()
    np.testing.assert_array_equal(sw.jit(f)(X, idx, 3), f(X, idx, 3))
    idx[3] = 12
    assert outcome(sw.jit(f), X, idx, 0)[0] == ""  # the loop does not run
    with pytest.raises(IndexError, match="index 12 is out of bounds for axis 0 with size 12"):
        sw.jit(f)(X, idx, 1)


def test_unchecked() -> None:
    f = sw.jit(check_bounds=False)(reads)
    assert f(X, np.int64(99)) == 11.0
    assert "nd.check" not in str(f.trace(X, N))


def test_nothing_is_written_where_it_raises() -> None:
    """An argument that is assigned to is as it was, if the program raised before."""

    def f(x: Any, i: Any) -> None:
        x[0] = 1
        x[i] = 2

    x = np.zeros(3)
    with pytest.raises(IndexError):
        sw.jit(f)(x, 3)
    sw.jit(f)(x, 2)
    np.testing.assert_array_equal(x, [1, 0, 2])


def test_messages_with_numbers() -> None:
    def f(n: Any, m: Any) -> Any:
        assert n < m, f"{n} is not less than {m}"
        return n

    with pytest.raises(AssertionError, match=r"^5 is not less than -2$"):
        sw.jit(f)(5, -2)
    assert sw.jit(f)(1, 2) == 1


def known_in_a_branch(x: Any, n: Any) -> Any:
    y = 0.0
    if n > 3:
        y = x[17]
    return y


def known_in_a_loop(x: Any, n: Any) -> Any:
    s = 0.0
    for _ in range(n):
        s += x[12]
    return s


def known_arrays(x: Any, n: Any) -> Any:
    y = x.copy()
    if n > 0:
        y[[1, 19]] = 2
    return y


def too_far(x: Any, n: Any) -> Any:
    s = x[0] * n
    for i in range(20):
        s += x[i]
    return s


@pytest.mark.parametrize("function", [known_in_a_branch, known_in_a_loop, known_arrays, too_far])
def test_indices_that_are_known_raise_where_the_run_comes_there(function: Any) -> None:
    compiled = sw.jit(function)
    for n in (0, 5):
        wanted, found = outcome(function, X, n), outcome(compiled, X, n)
        assert found[0] == wanted[0]
        if wanted[0]:
            assert found[1:] == wanted[1:]
        else:
            np.testing.assert_array_equal(found[1], wanted[1])
