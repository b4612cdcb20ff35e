"""Loops over rows, columns and windows whose bounds a loop counts give what they give in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stepwell as sw

Program = Callable[[Any, Any], Any]


def windows(a: Any, b: Any) -> Any:
    """Windows that are summed, copied and scaled, empty ones among them."""
    n = min(a.shape)
    s = np.zeros(n, a.dtype)
    for i in range(n):
        s[i] = a[i, :i].sum() + b[i, i:].sum() + a[i, :i].prod()
        a[i, :i] = b[i, :i]
        a[i, i + 1 :] *= 2
    return s


def products(a: Any, b: Any) -> None:
    """Products of a row and a column that begin and end where the loops are."""
    n = min(a.shape)
    for i in range(n):
        for j in range(i, n):
            a[i, j] -= a[i, :i] @ a[:i, j]
        a[:i, i] += b[i, :i]


def between(a: Any, b: Any) -> Any:
    """Two bounds, and what is least and greatest between them."""
    n = min(a.shape)
    t = np.zeros(n, a.dtype)
    for i in range(n):
        for j in range(i):
            t[j:i] += a[i, j:i] * b[j, j:i]
            t[j] += a[i, j:i].max() - b[j:i, j].min()
    return t


def running(a: Any, b: Any) -> None:
    """Rows from the first to the last, and columns from the last to the first."""
    for i in range(1, a.shape[0]):
        a[i] += a[i - 1] * b[i]
    for j in range(a.shape[1] - 2, -1, -1):
        a[:, j] -= a[:, j + 1]


def within_a_row(a: Any, b: Any) -> None:
    """Parts of a row that lie across each other."""
    for i in range(a.shape[0]):
        a[i, :-1] += a[i, 1:]
        a[i, 1:] -= a[i, :-1]
        a[i] = a[i, ::-1] + b[i]
        b[i, ::2] += b[i, 0]


def sweeps(a: Any, b: Any) -> Any:
    """Columns that follow from those before, of several arrays, and back again."""
    n = a.shape[1]
    c, d = np.zeros_like(a), np.zeros_like(a)
    c[:, 0], d[:, 0] = a[:, 0], b[:, 0]
    for k in range(1, n):
        below = a[:, k] - c[:, k - 1]
        c[:, k] = a[:, k] * below
        d[:, k] = (b[:, k] - d[:, k - 1]) * below
    for k in range(n - 2, -1, -1):
        d[:, k] -= c[:, k] * d[:, k + 1]
    for k in range(2, n):
        a[1:, k] += a[1:, k - 2] - b[:-1, k]
    for k in range(1, n):
        a[:, k] += a[::-1, k - 1]
    return d


def blocks(a: Any, b: Any) -> None:
    """Windows along both axes."""
    for i in range(min(a.shape)):
        a[:i, :i] += 1
        b[i:, :i] *= 2


def counted(a: Any, b: Any) -> Any:
    """What is true of some or all elements, how often, and where the greatest is."""
    c = 0
    for i in range(min(a.shape)):
        if (a[i, :i] > 0).any():
            c += 1
        if (b[i, i:] < 0.5).all():
            c += 10
        c += np.count_nonzero(a[i] > 0) * 100 + a[i].argmax()
    return c


def carried(a: Any, b: Any) -> Any:
    """Rows that a loop carries, of which one is exchanged for the other."""
    r = np.zeros(a.shape[1], a.dtype)
    q = np.ones(a.shape[1], a.dtype)
    for i in range(a.shape[0]):
        r = r + a[i]
        q += r * b[i]
    for i in range(a.shape[0]):
        r, q = q - a[i], r
    return r, q


def transposed(a: Any, b: Any) -> None:
    """A row that is written from a column which it crosses."""
    n = min(a.shape)
    for i in range(n):
        a[i, :n] += a[:n, i]
        b[i] -= (b[i - 1] @ b[i]) * a[i]


def elsewhere(a: Any, b: Any) -> None:
    """Rows that are read as they were before others were written."""
    for i in range(min(a.shape)):
        for j in range(i):
            t = a[j] + b[i]
            a[i] -= t
            b[j] += t[0]


PROGRAMS = (
    *(windows, products, between, running, sweeps, within_a_row),
    *(blocks, counted, carried, transposed, elsewhere),
)
NATIVE = (windows, products, running, blocks, counted, elsewhere)


def arrays(shape: tuple[int, int], dtype: type) -> list[Any]:
    random = np.random.default_rng(5).uniform(-2, 3, (2, *shape))
    return list(random.astype(dtype))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    ("shape", "dtype"), [((11, 9), np.float64), ((5, 7), np.int32), ((1, 1), np.float32)]
)
def test_as_in_numpy(program: Program, shape: tuple[int, int], dtype: type) -> None:
    wanted, given = arrays(shape, dtype), arrays(shape, dtype)
    results = program(*wanted), sw.jit(program)(*given)
    outputs = [r if isinstance(r, tuple) else (r,) for r in results if r is not None]
    for want, got in [*zip(*outputs, strict=True), *zip(wanted, given, strict=True)]:
        assert np.asarray(got).dtype == np.asarray(want).dtype
        close = 2e-5 if dtype is np.float32 else 1e-11
        np.testing.assert_allclose(got, want, rtol=close, atol=close)


@pytest.mark.parametrize("program", NATIVE)
def test_the_host_does_not_go_round(program: Program) -> None:
    source = sw.jit(program).trace(*arrays((11, 9), np.float64)).compile().source
    host = source[source.index(f"func_{program.__name__}(") :]
    assert "while (1)" not in host


def test_a_window_is_not_computed_with_beyond_its_bounds() -> None:
    """What lies outside is neither added nor made: it may be no number."""

    def sums(a: Any, k: Any) -> Any:
        s = np.zeros(len(a))
        for i in range(len(a)):
            s[i] = (a[i, : i + 1] / k[: i + 1]).sum()
        return s

    a, k = np.triu(np.full((6, 6), np.inf), 1) + np.eye(6), np.ones(6)
    np.testing.assert_array_equal(sw.jit(sums)(a, k), np.ones(6))
    source = sw.jit(sums).trace(a, k).compile().source
    assert " ? " not in source[source.index("kernel_sums") : source.index("func_sums")]
