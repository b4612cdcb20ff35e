"""Versions of kernels by sizes that only a call tells: right at each size, around each threshold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp

SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 67)
"""Around the ranges of versions, and primes."""
W, V = (
    np.random.default_rng(7).standard_normal(shape, np.float32) for shape in ((40, 100), (100, 24))
)


def given(*shape: int) -> Any:
    """Return numbers of a shape, the same in each run."""
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


def kernels(x: Any, w: Any, v: Any) -> Any:
    """Return a product, one with sums of its rows, a chain, and one in place of a sum."""
    h = x @ w
    return h, snp.sum(h, axis=1), snp.tanh(h) @ v, x * 2 + x @ (w @ w.T)


@pytest.fixture(scope="module")
def compiled() -> Callable[..., Any]:
    """Return the program for any number of rows."""
    shapes: list[Any] = [(sw.Dim("n"), 40), W.shape, V.shape]
    return sw.jit(
        kernels, input_signature=[sw.ShapeDtypeStruct(shape, "float32") for shape in shapes]
    )


@pytest.mark.parametrize("n", SIZES)
def test_products_of_any_rows(compiled: Callable[..., Any], n: int) -> None:
    x = given(n, 40)
    h = x @ W
    want = h, h.sum(1), np.tanh(h) @ V, x * 2 + x @ (W @ W.T)
    for got, right in zip(compiled(x, W, V), want, strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-4)


def test_products_with_weights_laid_out_once() -> None:
    """Versions read what is packed for all of them."""
    w = given(300, 130)
    product = sw.jit(
        lambda x: sw.nn.relu(x @ w),
        input_signature=[sw.ShapeDtypeStruct((sw.Dim("n"), 300), "float32")],
    )
    for n in SIZES:
        x = given(n, 300)
        np.testing.assert_allclose(product(x), np.maximum(x @ w, 0), rtol=1e-4, atol=1e-4)
