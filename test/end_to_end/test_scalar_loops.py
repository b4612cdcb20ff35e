"""Loops over numbers and single elements, written in Python, give what they give in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stepwell as sw

RANDOM = np.random.default_rng(42)


def longest(a: Any, b: Any) -> Any:
    """Two nested loops with branches, every cell read from those before."""
    t = np.zeros((len(a) + 1, len(b) + 1), dtype=np.int64)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            if a[i - 1] == b[j - 1]:
                t[i, j] = t[i - 1, j - 1] + 1
            else:
                t[i, j] = max(t[i - 1, j], t[i, j - 1])
    return t


def backwards(w: Any, v: Any) -> Any:
    """A loop that counts down, and indices that are computed."""
    best = np.zeros(50, dtype=np.int64)
    for i in range(len(w)):
        for c in range(49, -1, -1):
            if c >= w[i]:
                best[c] = max(best[c], best[c - w[i]] + v[i])
    return best


def steps(x: Any) -> Any:
    """Steps of two and three, up and down; what a counter is after its loop."""
    y = np.zeros_like(x)
    last = -1
    for i in range(1, len(x), 2):
        y[i] += x[i]
        last = i
    for i in range(len(x) - 1, 0, -3):
        y[i] -= 2 * x[i]
        last += i
    return y, last


def swapped(x: Any) -> Any:
    """Elements that change places: each is read before the other is written."""
    x = x.copy()
    for i in range(len(x)):
        for j in range(len(x) - 1 - i):
            if x[j] > x[j + 1]:
                kept = x[j]
                x[j] = x[j + 1]
                x[j + 1] = kept
    return x


def inserted(x: Any) -> Any:
    """A loop that is left for two reasons."""
    x = x.copy()
    for i in range(1, len(x)):
        key = x[i]
        j = i - 1
        while j >= 0 and x[j] > key:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = key
    return x


def two_arrays(x: Any, n: Any) -> Any:
    """Bounds that only the run knows: arguments, and what a loop around counts."""
    low = np.full(len(x), 7.0)
    high = np.zeros(len(x))
    for i in range(n):
        s = 0.0
        for j in range(i):
            s += x[j] * low[j]
        low[i] = x[i] - s
        high[len(x) - 1 - i] = s
    return low, high


def exchanged(x: Any) -> Any:
    """Arrays that change places are no scalar code."""
    a = x.copy()
    b = np.zeros_like(x)
    for _i in range(9):
        for j in range(1, len(x) - 1):
            b[j] = (a[j - 1] + a[j + 1]) / 2
        a, b = b, a
    return a


def wrapped(seed: Any) -> Any:
    """Integers wrap around."""
    s = seed
    for _i in range(100):
        s = s * 6364136223846793005 + 1442695040888963407
    return s


def small_counter(n: Any) -> Any:
    """A counter of eight bits."""
    i = n
    k = 0
    while i < 120:
        i += np.int8(9)
        k += 1
    return i, k


def until(x: Any, limit: Any) -> Any:
    """A condition on floats: a NaN ends it."""
    n = 0
    while x < limit:
        x = x * 1.5
        n += 1
    return x, n


def left_early(x: Any) -> Any:
    """A loop that is broken off, in one that goes on."""
    found = np.full(len(x), -1)
    for i in range(len(x)):
        for j in range(len(x)):
            if x[j] * 2 == x[i]:
                found[i] = j
                break
    return found


def rows(x: Any, k: Any) -> Any:
    """Rows and columns of which single elements are used."""
    s = 0.0
    for i in range(len(x)):
        row = x[i] * 2.0
        column = x[:, 1]
        s += row[k] * column[i]
    return s


def masked(x: Any) -> Any:
    """Booleans in an array, and a step that is a number."""
    p = np.ones(len(x), dtype=np.bool_)
    i = 2
    while i * i < len(x) + x[0]:
        if p[i]:
            j = i * i
            while j < len(x) + x[0]:
                p[j] = False
                j += i
        i += 1
    return p


def curves(x: Any) -> Any:
    """Functions of single numbers, one waiting for the other."""
    y = np.zeros(len(x))
    s = 0.5
    for i in range(len(x)):
        s = np.exp(-s) + np.log(s * s + 1.5) * np.sin(x[i])
        y[i] = (s * s + 1.0) ** -1.5 + np.expm1(x[i]) + np.log2(s * s + 0.5)
    return y


INTEGERS = RANDOM.integers(0, 5, 17)
FLOATS = RANDOM.normal(size=13)
PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (longest, (INTEGERS, INTEGERS[3:14])),
    (longest, (INTEGERS.astype(np.uint8), INTEGERS[:0].astype(np.uint8))),
    (backwards, (RANDOM.integers(1, 30, 9), RANDOM.integers(1, 30, 9))),
    (steps, (FLOATS,)),
    (steps, (FLOATS.astype(np.float32),)),
    (swapped, (FLOATS,)),
    (swapped, (INTEGERS.astype(np.int16),)),
    (inserted, (INTEGERS,)),
    (two_arrays, (FLOATS, 13)),
    (two_arrays, (FLOATS, 0)),
    (exchanged, (FLOATS,)),
    (wrapped, (12345,)),
    (small_counter, (np.int8(3),)),
    (until, (1.0, 50.0)),
    (until, (np.nan, 50.0)),
    (left_early, (INTEGERS,)),
    (rows, (RANDOM.normal(size=(5, 4)), 3)),
    (curves, (FLOATS,)),
    (masked, (np.zeros(40, dtype=np.int64),)),
]


def same(got: Any, want: Any) -> None:
    """Compare results, which may be tuples."""
    if isinstance(want, tuple):
        for each in zip(got, want, strict=True):
            same(*each)
    else:
        np.testing.assert_allclose(got, want, rtol=1e-6 if want.dtype == np.float32 else 1e-12)
        assert np.asarray(got).dtype == want.dtype


def expected(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Return what the function gives in NumPy."""
    with np.errstate(over="ignore"):
        given = [np.int64(a) if isinstance(a, int) else a for a in arguments]
        found = function(*given)
    if isinstance(found, tuple):
        return tuple(np.asarray(f) for f in found)
    return np.asarray(found)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("function", "arguments"), PROGRAMS)
def test_as_in_numpy(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    same(sw.jit(function)(*arguments), expected(function, arguments))


@pytest.mark.parametrize(("function", "arguments"), [PROGRAMS[0], PROGRAMS[8], PROGRAMS[13]])
@pytest.mark.opencl
def test_as_in_numpy_by_opencl(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    same(sw.jit(function, target="opencl")(*arguments), expected(function, arguments))


@pytest.mark.parametrize(("function", "arguments"), [PROGRAMS[8], PROGRAMS[13], PROGRAMS[18]])
def test_scalar_code_calls_nothing(
    function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    """The host launches kernels one after the other; what goes round is in them."""
    source = sw.jit(function).trace(*arguments).compile().source
    host = source[source.index(f"func_{function.__name__}(") :]
    assert "while (1)" not in host
    assert "for (" not in host


def test_a_check_leaves_the_loops() -> None:
    """An index that is out of range in some iteration raises, with what NumPy says."""

    def walk(nexts: Any, n: Any) -> Any:
        at = 0
        for _ in range(n):
            at = nexts[at]
        return at

    nexts = np.array([2, 9, 1])
    walked = sw.jit(walk)
    assert walked(nexts, 2) == 1
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 3"):
        walked(nexts, 4)
    assert "while (1)" not in walked.trace(nexts, 4).compile().source.split("func_walk(")[1]


def test_a_loop_that_is_given_up_half_way_leaves_nothing() -> None:
    """Products of rows are no scalar code, which is seen after the counters were written."""

    def rows(a: Any, c: Any) -> None:
        for r in range(a.shape[0]):
            for q in range(a.shape[1]):
                a[r, q, :] = a[r, q, :] @ c

    a, c = np.random.default_rng(0).random((10, 9, 5)), np.eye(5)[::-1].copy()
    expected = a.copy()
    rows(expected, c)
    sw.jit(rows)(a, c)
    np.testing.assert_allclose(a, expected)
