"""The place of the greatest or least along any axis: the first one, or that of the first NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp

RANDOM = np.random.default_rng(29)
SHAPES = [(1, 1), (3, 7), (2, 64), (5, 67), (1, 1000), (700, 3), (2, 3, 131), (4099,)]


def values(shape: tuple[int, ...], dtype: str, special: int) -> np.ndarray[Any, Any]:
    """Return a tensor in which the greatest and the least stand several times."""
    x = RANDOM.integers(0, 6, shape).astype(dtype)
    if x.dtype.kind == "f":
        x = np.copysign(x, RANDOM.standard_normal(shape)).astype(dtype)
        for _ in range(special):
            x[tuple(RANDOM.integers(n) for n in shape)] = RANDOM.choice([np.nan, np.inf, -np.inf])
    return x


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint16", "int64"])
@pytest.mark.parametrize("axis", [0, -1])
def test_places(dtype: str, axis: int) -> None:
    both = sw.jit(lambda x: (snp.argmax(x, axis=axis), snp.argmin(x, axis=axis)))
    for shape in SHAPES:
        for special in (0, 3) if dtype[0] == "f" else (0,):
            x = values(shape, dtype, special)
            greatest, least = both(x)
            np.testing.assert_array_equal(np.asarray(greatest), x.argmax(axis))
            np.testing.assert_array_equal(np.asarray(least), x.argmin(axis))


def test_rows_of_the_least_number() -> None:
    place = sw.jit(lambda x: snp.argmax(x, axis=1))
    for least in (-np.inf, np.nan, -0.0):
        x = np.full((3, 70), least, np.float32)
        np.testing.assert_array_equal(np.asarray(place(x)), [0, 0, 0])


def test_beside_the_greatest_of_what_is_computed() -> None:
    both = sw.jit(lambda x: (snp.max(snp.exp(x), axis=1), snp.argmax(snp.exp(x), axis=1)))
    x = RANDOM.standard_normal((9, 133)).astype(np.float32)
    greatest, place = both(x)
    np.testing.assert_allclose(np.asarray(greatest), np.exp(x).max(1), rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(place), x.argmax(1))
