"""Rows whose length is no multiple of a vector's give what NumPy gives, with any threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp
from stepwell.core.machine import thread_count
from stepwell.runtime.extension import load_extension

RANDOM = np.random.default_rng(21)
SIZES = [(1, 1, 1), (2, 3, 17), (5, 33, 20), (6, 63, 72), (7, 127, 100), (3, 64, 31), (4, 130, 65)]


def numbers(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


def attention(q: Any, k: Any, v: Any, mask: Any) -> Any:
    scores = q @ snp.swapaxes(k, -1, -2) * q.shape[-1] ** -0.5 + mask
    return sw.nn.softmax(scores) @ v


def softmax(x: Any) -> Any:
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("b, s, d", SIZES)
def test_attention(b: int, s: int, d: int) -> None:
    q, k, v, mask = numbers(b, s, d), numbers(b, s, d), numbers(b, s, d), numbers(s, s)
    scores = q.astype(float) @ k.swapaxes(-1, -2) * d**-0.5 + mask
    got = sw.jit(attention)(q, k, v, mask)
    np.testing.assert_allclose(got, softmax(scores) @ v, rtol=0, atol=2e-5)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n", [4, 5, 12, 19, 27, 31, 77, 1003])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_reductions_along_rows(n: int, dtype: str) -> None:
    x = RANDOM.standard_normal((9, n)).astype(dtype)
    close = 1e-6 if dtype == "float32" else 1e-14

    def model(x: Any) -> Any:
        return sw.nn.softmax(x), snp.sum(x, axis=1), snp.max(x, axis=1), snp.min(x * x, axis=1)

    y, total, top, least = sw.jit(model)(x)
    np.testing.assert_allclose(y, softmax(x.astype(float)), rtol=0, atol=close)
    np.testing.assert_allclose(total, x.astype(float).sum(1), rtol=0, atol=close * n)
    np.testing.assert_array_equal(top, x.max(1))
    np.testing.assert_array_equal(least, (x * x).min(1))


def test_a_number_that_is_none_is_found_at_the_end() -> None:
    for at in range(29):
        x = numbers(2, 29)
        x[1, at] = np.nan
        assert np.isnan(sw.jit(lambda x: snp.max(x, axis=1))(x)).tolist() == [False, True]


def test_any_number_of_threads_gives_the_same() -> None:
    extension = load_extension()
    if extension is None:
        pytest.skip("no extension")
    args = numbers(4, 127, 72), numbers(4, 127, 72), numbers(4, 127, 72), numbers(127, 127)
    made, found = sw.jit(attention), set[bytes]()
    for threads in (1, 2, 3):
        extension.set_threads(threads)
        found.add(made(*args).tobytes())
    extension.set_threads(thread_count())
    assert len(found) == 1
