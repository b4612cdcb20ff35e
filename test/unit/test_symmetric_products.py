"""Products of an array with itself: half of the blocks are computed, and both sides are equal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.machine import known_machine
from stepwell.core.source import Source
from stepwell.driver.lowering import stage_text
from stepwell.testing.machines import kernels_for

RANDOM = np.random.default_rng(17)
MACHINE = "generic,vector_bits=256,vector_registers=16,fma=1,threads=2,l1=16K,l2=64K,l3=4M"


@pytest.fixture(autouse=True)
def small_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile for a machine on which products of some tens of rows run in blocks."""
    monkeypatch.setenv("STEPWELL_MACHINE", MACHINE)


def columns(x: Any) -> Any:
    return x.T @ x


def rows(x: Any) -> Any:
    return x @ x.swapaxes(-1, -2)


def scaled(x: Any) -> Any:
    return np.maximum(x.T @ x, 1) * 3


def summed(x: Any) -> Any:
    return np.einsum("ki,kj->ij", x, x)


def covariance(x: Any) -> Any:
    centred = x - x.mean(axis=0)
    return centred.T @ centred / (x.shape[0] - 1)


def by_column(x: Any) -> Any:
    return x.T @ x + x[0]


def lower(x: Any) -> Any:
    return np.tril(x.T @ x)


def numbers(shape: tuple[int, ...], dtype: str) -> Any:
    if dtype[0] == "f":
        return RANDOM.standard_normal(shape).astype(dtype)
    return RANDOM.integers(-20, 100, shape).astype(dtype)


def check(f: Callable[[Any], Any], x: Any, symmetric: bool = True, **how: Any) -> None:
    got, exact = sw.jit(f, **how)(x), x.dtype.kind != "f"
    want = f(x if exact else x.astype(np.float64))
    if exact:
        np.testing.assert_array_equal(got, f(x))
    else:
        close = {2: 1e-2, 4: 1e-5, 8: 1e-13}[x.dtype.itemsize]
        largest = np.nanmax(np.abs(want), initial=1, where=np.isfinite(want))
        np.testing.assert_allclose(got, want, rtol=0, atol=close * largest)
    if symmetric:
        np.testing.assert_array_equal(got, got.swapaxes(-1, -2))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("f", [columns, rows, scaled, summed, covariance])
@pytest.mark.parametrize(
    "shape", [(200, 97), (97, 200), (64, 300), (129, 150), (5, 241), (300, 31)]
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_floats(f: Callable[[Any], Any], shape: tuple[int, int], dtype: str) -> None:
    check(f, numbers(shape, dtype))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("f", [columns, rows])
@pytest.mark.parametrize("dtype", ["float16", "int32", "int8", "int64", "uint8"])
@pytest.mark.parametrize("shape", [(131, 203), (203, 131)])
def test_other_types(f: Callable[[Any], Any], shape: tuple[int, int], dtype: str) -> None:
    check(f, numbers(shape, dtype))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("f", [columns, rows, scaled, covariance])
@pytest.mark.parametrize("shape", [(1, 1), (0, 5), (5, 0), (200, 97), (97, 200), (64, 300)])
def test_sizes_known_at_launch(f: Callable[[Any], Any], shape: tuple[int, int]) -> None:
    if f is covariance and (shape[0] < 2 or not shape[1]):
        pytest.skip("NumPy warns of a mean of nothing")
    check(f, numbers(shape, "float32"), dynamic="always")


@pytest.mark.parametrize("f", [by_column, lower])
def test_results_that_differ_on_both_sides(f: Callable[[Any], Any]) -> None:
    check(f, numbers((130, 170), "float32"), symmetric=False)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_batches(dtype: str) -> None:
    check(rows, numbers((3, 140, 90), dtype))
    check(lambda x: np.einsum("bki,bkj->bij", x, x), numbers((2, 90, 140), dtype))
    x = numbers((2, 90, 140), dtype)
    np.testing.assert_array_equal(sw.jit(sw.vmap(columns))(x)[1], sw.jit(columns)(x[1]))


def test_no_number_and_infinity() -> None:
    x = numbers((150, 190), "float32")
    x[3, 5], x[7, 100] = np.nan, np.inf
    check(columns, x)
    check(rows, x)


def test_gradient() -> None:
    x = numbers((90, 120), "float64")
    weights = numbers((120, 120), "float64")
    got = sw.grad(lambda x: (columns(x) * weights).sum())(x)
    np.testing.assert_allclose(got, x @ (weights + weights.T), atol=1e-10)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int8", "int32"])
@pytest.mark.parametrize("shape", [(200, 97, 61), (301, 150, 200), (64, 300, 33), (700, 40, 300)])
def test_transposed_rows(shape: tuple[int, int, int], dtype: str) -> None:
    """Rows that are contiguous across the sum are read from panels."""
    k, m, n = shape
    x, w = numbers((k, m), dtype), numbers((k, n), dtype)
    got = sw.jit(lambda x, w: x.T @ w)(x, w)
    if dtype[0] == "f":
        want = x.T.astype(np.float64) @ w.astype(np.float64)
        close = {2: 1e-2, 4: 1e-5, 8: 1e-13}[x.dtype.itemsize]
        np.testing.assert_allclose(got, want, rtol=0, atol=close * np.abs(want).max())
    else:
        np.testing.assert_array_equal(got, x.T @ w)


def kernels(f: Callable[..., Any], *arrays: Any) -> str:
    return kernels_for(sw.jit(f).trace(*arrays), machine="avx-512, 2 MiB, 2 cores")


def test_equal_operands_are_packed_once_and_mirrored() -> None:
    text = kernels(columns, numbers((500, 600), "float32"))
    assert text.count("kernel.launch") == 2
    assert "{mirror}" in text and "ins(%x_packed, %x_packed" in text


def test_different_operands_are_both_packed() -> None:
    x = numbers((1000, 1000), "float32")
    text = kernels(lambda x, w: x.T @ w, x, x)
    assert "{mirror}" not in text and "ins(%x_packed, %w_packed" in text


def test_results_with_one_value_for_each_column_are_not_mirrored() -> None:
    assert "{mirror}" not in kernels(by_column, numbers((500, 600), "float32"))


def test_few_rows_are_read_where_they_lie() -> None:
    text = kernels(columns, numbers((60, 60), "float32"))
    assert text.count("kernel.launch") == 1 and "{mirror}" not in text


def test_widened_rows_of_unknown_number_fill_whole_steps_of_columns() -> None:
    x = "tensor<?x?xf16>"
    text = f"""func.func @main(%x: {x}) -> {x} {{
      %y = nd.dot_general %x, %x contract [0] x [0] : ({x}, {x}) -> {x}
      func.return %y : {x}
    }}"""
    machine = known_machine("sapphire-rapids").override("threads=2")
    assert "{mirror}" in stage_text(Source(text, "<test>", "main", machine), "buffers")
    assert "scf.parallel" in stage_text(Source(text, "<test>", "main", machine), "loops")
