"""Products of a vector and a matrix of any size, either way round, with what comes after them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp

RANDOM = np.random.default_rng(11)
SIZES = [(1, 1), (3, 5), (17, 16), (64, 129), (130, 257), (7, 1030), (301, 777), (1000, 48)]


def _array(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("deep, wide", SIZES)
def test_vector_times_matrix(deep: int, wide: int) -> None:
    x, w, b = _array(deep), _array(deep, wide), _array(wide)
    got = sw.jit(lambda x, w, b: sw.nn.relu(x @ w + b))(x, w, b)
    want = np.maximum(x.astype(np.float64) @ w + b, 0)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * deep**0.5)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("deep, wide", SIZES[1::3])
@pytest.mark.parametrize("rows", [1, 2])
def test_few_rows_times_matrix(rows: int, deep: int, wide: int) -> None:
    x, w = _array(rows, deep), _array(deep, wide)
    got = sw.jit(lambda x, w: sw.nn.gelu(x @ w, approximate=False))(x, w)
    h = x.astype(np.float64) @ w
    want = sw.jit(lambda h: sw.nn.gelu(h, approximate=False))(h)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * deep**0.5)


@pytest.mark.parametrize("deep, wide", SIZES[::3])
def test_sums_of_columns(deep: int, wide: int) -> None:
    w = _array(deep, wide)
    got = sw.jit(lambda w: snp.sum(w * w, axis=0))(w)
    np.testing.assert_allclose(got, (w.astype(np.float64) ** 2).sum(axis=0), rtol=1e-5)
