"""Sums over many rows of few columns are cut in runs of rows; how many threads share them shows nowhere."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
from nestings import has

import stepwell as sw
import stepwell.numpy as snp
from stepwell.core.machine import thread_count
from stepwell.runtime.extension import load_extension
from stepwell.testing.machines import kernels_for

random = np.random.default_rng(23)
SIZES = [(190_003, 3), (70_001, 9), (40_009, 16), (9_973, 67), (5_003, 130), (2_050, 1_021)]


@pytest.fixture
def extension() -> Generator[Any]:
    found = load_extension()
    if found is None:
        pytest.skip("no extension")
    yield found
    found.set_threads(thread_count())


@pytest.mark.parametrize("kind", ["float32", "float64", "float16", "int8"])
def test_sums_of_columns(extension: Any, kind: str) -> None:
    for size in random.permutation(np.array(SIZES))[:3]:
        x = random.integers(-3, 4, size).astype(kind)
        traced = sw.jit(lambda x: (snp.sum(x, axis=0) + 3, snp.max(x, axis=0))).trace(x)
        assert has(kernels_for(traced), "parts")
        program = traced.compile()
        found = list[Any]()
        for threads in (1, 2, 5):
            extension.set_threads(threads)
            found.append(program(x))
        total, most = found[0]
        assert np.array_equal(most, x.max(axis=0))
        close = 5e-2 if kind == "float16" else 1e-5
        want = x.sum(axis=0, dtype=np.float64) + 3
        if kind != "int8":
            np.testing.assert_allclose(total, want, rtol=close, atol=200 * close)
        for other in found[1:]:
            assert all(a.tobytes() == b.tobytes() for a, b in zip(other, found[0], strict=True))


def test_a_vector_and_a_matrix(extension: Any) -> None:
    x = random.standard_normal(3001).astype(np.float32)
    w = random.standard_normal((3001, 517)).astype(np.float32)
    program = sw.jit(lambda x, w: snp.maximum(x @ w, 0)).trace(x, w).compile()
    results = list[Any]()
    for threads in (1, 2, 7):
        extension.set_threads(threads)
        results.append(program(x, w))
    want = np.maximum(x.astype(np.float64) @ w, 0)
    np.testing.assert_allclose(results[0], want, atol=1e-5 * np.abs(want).max())
    assert all(np.array_equal(r, results[0]) for r in results)


def test_the_mean_of_whole_numbers_is_exact(extension: Any) -> None:
    x = random.integers(-100, 100, (65_536, 12)).astype(np.float32)
    program = sw.jit(lambda x: snp.sum(x, axis=0)).trace(x).compile()
    assert np.array_equal(program(x), x.sum(axis=0, dtype=np.float64).astype(np.float32))
