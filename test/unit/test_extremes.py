"""The greatest and the least of rows of any length: NaN, infinities and zeros of either sign."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp

RANDOM = np.random.default_rng(23)
SHAPES = [(1, 1), (3, 7), (2, 64), (5, 67), (4, 131), (1, 1000), (700, 3), (2, 4099)]
SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0]


def values(shape: tuple[int, ...], dtype: str, special: int) -> np.ndarray[Any, Any]:
    """Return a tensor with some special values, zeros of either sign being the greatest or least."""
    x = RANDOM.standard_normal(shape).astype(dtype)
    if special == 1:
        x = np.where(x > 0, np.copysign(0, RANDOM.standard_normal(shape)), x).astype(dtype)
    for _ in range(special):
        x[tuple(RANDOM.integers(n) for n in shape)] = RANDOM.choice(SPECIAL)
    return x


def same(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> None:
    np.testing.assert_array_equal(found, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))


def least(x: np.ndarray[Any, Any], axis: int) -> np.ndarray[Any, Any]:
    """Return the least, -0 being less than 0."""
    found = x.min(axis)
    negative = ((x == 0) & np.signbit(x)).any(axis)
    return np.where(found == 0, np.where(negative, -0.0, 0.0), found).astype(x.dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("axis", [0, 1])
def test_extremes(dtype: str, axis: int) -> None:
    both = sw.jit(lambda x: (snp.max(x, axis=axis), snp.min(x, axis=axis)))
    for shape in SHAPES:
        for special in (0, 1, 5):
            x = values(shape, dtype, special)
            greatest, smallest = both(x)
            same(np.asarray(greatest), -least(-x, axis))
            same(np.asarray(smallest), least(x, axis))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("length", [64, 83])
def test_nan_anywhere_in_a_row(dtype: str, length: int) -> None:
    x = RANDOM.standard_normal((length, length)).astype(dtype)
    np.fill_diagonal(x, np.nan)
    both = sw.jit(lambda x: (snp.max(x, axis=1), snp.min(x, axis=1)))
    assert np.isnan(np.asarray(both(x))).all()


def test_a_sum_beside_the_greatest() -> None:
    both = sw.jit(lambda x: (snp.max(x, axis=1), snp.sum(x, axis=1)))
    for shape in SHAPES:
        x = values(shape, "float32", 0)
        x[0, -1] = np.nan
        greatest, total = both(x)
        same(np.asarray(greatest), -least(-x, 1))
        np.testing.assert_allclose(np.asarray(total), x.sum(1), rtol=1e-4, atol=1e-4)


def test_softmax_of_rows_with_nan() -> None:
    softmax = sw.jit(lambda x: sw.nn.softmax(x, axis=1))
    for shape in SHAPES:
        x = values(shape, "float32", 4)
        with np.errstate(invalid="ignore"):
            e = np.exp(x - x.max(1, keepdims=True))
            expected = e / e.sum(1, keepdims=True)
        np.testing.assert_allclose(np.asarray(softmax(x)), expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((4, 33), (0, 1)), ((2, 3, 83), (1, 2)), ((3, 2, 40), (0, 2)), ((70,), (0,))],
)
def test_nan_anywhere_in_several_axes(
    dtype: str, shape: tuple[int, ...], axes: tuple[int, ...]
) -> None:
    both = sw.jit(lambda x: (snp.max(x, axis=axes), snp.min(x, axis=axes)))
    x = RANDOM.standard_normal(shape).astype(dtype)
    for place in range(x.size):
        holed = x.copy()
        holed.flat[place] = np.nan
        greatest, smallest = both(holed)
        np.testing.assert_array_equal(greatest, holed.max(axes))
        np.testing.assert_array_equal(smallest, holed.min(axes))
