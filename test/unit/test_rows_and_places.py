"""Rows that are gathered, places of the greatest element, sums of diagonals: against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp

RANDOM = np.random.default_rng(11)
DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "float16", "float32", "float64")


def numbers(dtype: str, shape: tuple[int, ...]) -> Any:
    return (RANDOM.standard_normal(shape) * 40).astype(dtype)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", DTYPES)
def test_gathered_rows_and_columns(dtype: str) -> None:
    shape = tuple(int(n) for n in RANDOM.integers(1, 90, 2))
    x = numbers(dtype, (*shape, 37))
    for axis in (0, 1, 2):
        at = RANDOM.integers(-x.shape[axis], x.shape[axis], 41)
        take = sw.jit(lambda x, i, axis: snp.take(x, i, axis=axis), static_argnames=("axis",))
        np.testing.assert_array_equal(take(x, at, axis), np.take(x, at, axis=axis))


def test_what_is_gathered_is_worked_on() -> None:
    x, at = numbers("float32", (300, 33)), RANDOM.integers(0, 300, (7, 5))

    def f(x: Any, at: Any) -> Any:
        return snp.take(x * 2, at, axis=0) + snp.take(x, at + 1, axis=0)

    want = np.take(x * 2, at, axis=0) + np.take(x, np.minimum(at + 1, 299), axis=0)
    np.testing.assert_array_equal(sw.jit(f)(x, at), want)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", DTYPES[1:])
@pytest.mark.parametrize("long", [1, 63, 1000, 32766, 32767, 32768, 70001])
def test_places(dtype: str, long: int) -> None:
    x = numbers(dtype, (3, long))
    x[0] = x[0, 0]
    x[1, -1] = 100  # the greatest stands last, and once
    places = sw.jit(lambda x: (snp.argmax(x, axis=1), snp.argmin(x, axis=1)))(x)
    np.testing.assert_array_equal(places[0], np.argmax(x, axis=1))
    np.testing.assert_array_equal(places[1], np.argmin(x, axis=1))


def test_numbers_of_iterations_in_narrow_types() -> None:
    for dtype in ("int8", "int16", "uint8"):
        wide = sw.jit(lambda d: snp.astype(snp.arange(1000), d), static_argnames=("d",))
        kind = getattr(snp, dtype)
        np.testing.assert_array_equal(wide(kind), np.arange(1000).astype(dtype))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", [(5, 5), (1, 7), (7, 1), (4, 9), (9, 4), (0, 3), (3, 0)])
def test_diagonals(shape: tuple[int, int]) -> None:
    x = numbers("float32", (2, *shape))
    for offset in range(-10, 11):
        trace = sw.jit(lambda x, k: snp.trace(x, k, 1, 2), static_argnames=("k",))
        want = np.trace(x, offset, 1, 2)
        np.testing.assert_allclose(trace(x, offset), want, rtol=1e-6, atol=1e-5)
