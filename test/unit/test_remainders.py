"""Remainders of floats, which are exact, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp

RANDOM = np.random.default_rng(5)
SPECIAL = (0.0, -0.0, 1.0, -1.0, 3.0, np.inf, -np.inf, np.nan, 1e-310, 1e-40, 1e30, 2.5, 7.0, 0.1)


def samples(dtype: str) -> list[tuple[Any, Any]]:
    """Return operands: even, over all magnitudes, multiples and neighbours, special ones."""
    n, info = 4000, np.finfo(dtype)
    x, y = RANDOM.uniform(-30, 30, n).astype(dtype), RANDOM.uniform(-30, 30, n).astype(dtype)
    low, high = np.log(float(info.smallest_subnormal)), np.log(float(info.max)) - 1
    wide = np.exp(RANDOM.uniform(low, high, n)).astype(dtype)
    near = np.exp(RANDOM.uniform(-16, 14, n)).astype(dtype) * wide
    times = (RANDOM.integers(-(10**6), 10**6, n) * y).astype(dtype)
    steps = [np.nextafter(times, np.inf, dtype=dtype), np.nextafter(times, -np.inf, dtype=dtype)]
    some = np.array(SPECIAL, dtype)
    ends = np.repeat(some, len(some)), np.tile(some, len(some))
    return [
        (x, y),
        (wide, y),
        (near, wide),
        (-near, wide),
        *((t, y) for t in (times, *steps)),
        ends,
    ]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_exact(dtype: str) -> None:
    function = sw.jit(lambda x, y: (snp.fmod(x, y), snp.remainder(x, y), snp.floor_divide(x, y)))
    with np.errstate(all="ignore"):
        for x, y in samples(dtype):
            rest, modulo, whole = function(x, y)
            np.testing.assert_array_equal(rest, np.fmod(x, y))
            np.testing.assert_array_equal(np.signbit(rest), np.signbit(np.fmod(x, y)))
            np.testing.assert_array_equal(modulo, np.remainder(x, y))
            some = y != 0
            nearly = 2 * float(np.finfo(dtype).eps)  # a quotient that is large is rounded
            want = np.floor_divide(x, y)
            np.testing.assert_allclose(whole[some], want[some], rtol=nearly)
