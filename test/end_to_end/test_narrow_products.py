"""Products with few columns, of every type and orientation, are NumPy's."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import stepwell as sw

TYPES = ["float32", "float64", "float16", ml_dtypes.bfloat16, "int8", "int32", "uint8", "int64"]
SIZES = [(13, 40, 1), (13, 40, 2), (4, 40, 3), (1, 40, 3), (13, 8, 5), (4, 7, 7), (5, 0, 3)]
"""Rows, depth and columns."""


def _of(random: np.random.Generator, dtype: Any, *shape: int) -> Any:
    return random.integers(0, 4, shape).astype(dtype)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: np.dtype(t).name)
def test_few_columns(dtype: Any) -> None:
    random = np.random.default_rng(3)

    def f(x: Any, w: Any, xt: Any, wt: Any) -> Any:
        return x @ w, x @ wt.T, xt.T @ w, (xt.T @ wt.T) * 2, (x @ w).T @ x

    for m, k, n in SIZES:
        x, w = _of(random, dtype, m, k), _of(random, dtype, k, n)
        arrays = x, w, x.T.copy(), w.T.copy()
        for got, want in zip(sw.jit(f)(*arrays), f(*arrays), strict=True):
            assert got.dtype == x.dtype and got.shape == want.shape  # NumPy's of bf16 is f32
            same = got.astype("f8"), want.astype("f8")
            np.testing.assert_allclose(*same, rtol=0.02 if got.itemsize == 2 else 1e-6)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_batches_loops_and_sizes_known_at_the_call(n: int) -> None:
    random = np.random.default_rng(n)
    w, many = random.normal(size=(24, n)), random.normal(size=(3, 24, n))

    @sw.jit(dynamic="always")
    def f(x: Any, w: Any, many: Any) -> Any:
        y = np.zeros(w.shape)
        for row in range(3):
            y += x[row].T @ (x[row] @ w)
        return x @ many, x @ w, y

    for rows in (1, 5, 16):
        x = random.normal(size=(3, rows, 24))
        found, wanted = f(x, w, many), f.__wrapped__(x, w, many)
        for got, want in zip(found, wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
