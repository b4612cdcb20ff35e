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


@pytest.mark.parametrize("n", [0, 1, 8, 9, 13, 59, 60, 61, 64, 65, 131])
def test_some_rows_pack_the_next_part_of_their_weights(n: int) -> None:
    rows = sw.ShapeDtypeStruct((sw.Dim("n"), 771), "float32")
    shapes = [rows, sw.ShapeDtypeStruct((771, 700), "float32")]
    x, w = given(n, 771), given(771, 700)
    product = sw.jit(lambda x, w: sw.nn.relu(x @ w), input_signature=shapes)
    np.testing.assert_allclose(product(x, w), np.maximum(x @ w, 0), rtol=1e-4, atol=1e-3)


def test_wide_operands_are_packed() -> None:
    """As many columns as are read in place have a version: a few hundred of as long a sum."""
    sizes = [sw.Dim(name) for name in "nkm"]
    shapes = [sw.ShapeDtypeStruct(tuple(s), "float32") for s in (sizes[:2], sizes[1:])]
    product = sw.jit(snp.matmul, input_signature=shapes)
    for n, k, m in ((13, 1, 255), (13, 70, 256), (1, 70, 257), (13, 0, 300), (67, 300, 600)):
        x, w = given(n, k), given(k, m)
        np.testing.assert_allclose(product(x, w), x @ w, rtol=1e-4, atol=1e-4)


def columns(x: Any, w: Any, image: Any, filters: Any) -> Any:
    """Return what has vectors along a loop of unknown length, shared or an op's own."""
    y = w @ x
    best = sw.nn.max_pool(image, 3, stride=1, padding=1)
    seen = sw.nn.conv(image, filters, padding=1, groups=3)
    return (
        y,
        snp.tanh(x),
        sw.nn.softmax(x, axis=-1),
        snp.sum(x, axis=1),
        snp.argmax(x, axis=1),
        best,
        seen,
    )


@pytest.mark.parametrize("n", (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 23, 32, 33, 47, 64, 65, 131))
def test_columns_of_any_number(n: int, wide: Callable[..., Any]) -> None:
    x, w, image, filters = given(260, n), given(30, 260), given(1, 3, n, n), given(3, 1, 3, 3)
    got = wide(x, w, image, filters)
    near = np.exp(x - x.max(1, keepdims=True))
    around = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    zeros = np.where(np.isinf(around), 0, around)
    shifts = [(i, j) for i in range(3) for j in range(3)]
    best = np.max([around[..., i : i + n, j : j + n] for i, j in shifts], axis=0)
    seen = sum(
        zeros[..., i : i + n, j : j + n] * filters[None, :, 0, i, j, None, None] for i, j in shifts
    )
    want = w @ x, np.tanh(x), near / near.sum(1, keepdims=True), x.sum(1), x.argmax(1), best, seen
    for mine, right in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-4, atol=1e-4)


@pytest.fixture(scope="module")
def wide() -> Callable[..., Any]:
    """Return the program for any number of columns."""
    n = sw.Dim("n")
    shapes: list[Any] = [(260, n), (30, 260), (1, 3, n, n), (3, 1, 3, 3)]
    return sw.jit(
        columns, input_signature=[sw.ShapeDtypeStruct(shape, "float32") for shape in shapes]
    )


@pytest.mark.parametrize("kind", ("float32", "float64", "float16", "int32"))
def test_one_column_of_any_number(kind: str) -> None:
    """Up to four columns are read in vectors along the sum; a bias has their size too."""
    n = sw.Dim("n")

    def layer(x: Any, w: Any, b: Any) -> Any:
        return snp.maximum(x @ w + b, 0), snp.argmax(w, axis=1)

    shapes: list[Any] = [(70, 331), (331, n), (n,)]
    program = sw.jit(layer, input_signature=[sw.ShapeDtypeStruct(shape, kind) for shape in shapes])
    for columns in (1, 2, 3, 4, 5, 1, 16, 17, 1, 67):
        x, w, b = ((given(*s) * 8).astype(kind) for s in ((70, 331), (331, columns), (columns,)))
        y, most = program(x, w, b)
        close = 1e-1 if kind == "float16" else 1e-3
        want = np.maximum(x.astype("float64") @ w.astype("float64") + b, 0)
        np.testing.assert_allclose(y, want, rtol=close, atol=close * 300)
        np.testing.assert_array_equal(most, w.argmax(1))
    assert program.cache_info().programs == 1


def test_blocks_of_any_rows() -> None:
    """Rows are cut evenly at the launch, into whole tiles."""
    shapes: list[Any] = [(sw.Dim("n"), 100), (100, 70)]
    product = sw.jit(
        lambda x, w: sw.nn.relu(x @ w),
        machine="vector_bits=256,l1=4096,l2=16384,threads=2",
        input_signature=[sw.ShapeDtypeStruct(shape, "float32") for shape in shapes],
    )
    w = given(100, 70)
    for n in (0, 1, 9, 47, 48, 49, 100, 997):
        x = given(n, 100)
        np.testing.assert_allclose(product(x, w), np.maximum(x @ w, 0), rtol=1e-4, atol=1e-4)


def attention(q: Any, k: Any, v: Any) -> Any:
    """Return what queries attend to, among any number of keys."""
    return sw.nn.softmax(q @ snp.matrix_transpose(k), axis=-1) @ v


def test_attention_to_any_number_of_keys() -> None:
    """One key has versions of its own: of the product's columns, and of the softmax."""
    n = sw.Dim("n")
    shapes: list[Any] = [(3, 40, 64), (3, n, 64), (3, n, 64)]
    program = sw.jit(
        attention, input_signature=[sw.ShapeDtypeStruct(shape, "float32") for shape in shapes]
    )
    for keys in (1, 2, 3, 7, 8, 15, 16, 17, 31, 67):
        q, k, v = given(3, 40, 64), given(3, keys, 64), given(3, keys, 64)
        np.testing.assert_allclose(program(q, k, v), attended(q, k, v), rtol=1e-3, atol=1e-4)


def attended(q: Any, k: Any, v: Any) -> Any:
    """Return the same by NumPy."""
    scores = q @ k.transpose(0, 2, 1)
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    return scores / scores.sum(-1, keepdims=True) @ v


def test_attention_of_few_queries() -> None:
    """Few queries and keys, both of unknown number: several sums over a head run at once."""
    n, m = sw.Dim("n"), sw.Dim("m")
    shapes: list[Any] = [(3, n, 64), (3, m, 64), (3, m, 64)]
    program = sw.jit(
        attention, input_signature=[sw.ShapeDtypeStruct(shape, "float32") for shape in shapes]
    )
    for queries in (1, 2, 3, 4, 5, 7, 8, 9):
        for keys in (1, 2, 3, 4, 5, 7, 8, 13):
            q, k, v = given(3, queries, 64), given(3, keys, 64), given(3, keys, 64)
            np.testing.assert_allclose(program(q, k, v), attended(q, k, v), rtol=1e-3, atol=1e-4)


def test_rows_of_one_element_keep_nan() -> None:
    shapes = [sw.ShapeDtypeStruct((33, sw.Dim("n")), "float32")]
    program = sw.jit(
        lambda x: (snp.max(x, axis=1), snp.argmax(x, axis=1), snp.sum(x, axis=1)),
        input_signature=shapes,
    )
    for n in (1, 2):
        x = given(33, n)
        x[5], x[7], x[9] = np.nan, np.inf, -np.inf
        for got, want in zip(program(x), (x.max(1), x.argmax(1), x.sum(1)), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6)


KINDS = "float64", "float16", "int8", "int16", "int64", "uint8", "bool"
"""Element types of vectors that end under a mask; f32 has tests of its own above."""


def of_kinds(*arrays: Any) -> list[Any]:
    """Return maps and reductions of rows of each type, one of which divides integers."""
    whole = arrays[KINDS.index("int16")]
    found = [whole // (whole * whole + 1)]
    for kind, x in zip(KINDS, arrays, strict=True):
        found += [snp.max(x, axis=1), snp.argmin(x, axis=1), snp.sum(x, axis=1), snp.any(x, axis=1)]
        found.append(snp.logical_not(x) if kind == "bool" else x * x + x)
    return found


def test_masked_ends_of_all_types() -> None:
    """Vectors of 512 bits of any type end under a mask, on every machine that compiles them."""
    shapes = [sw.ShapeDtypeStruct((3, sw.Dim("n")), kind) for kind in KINDS]
    program = sw.jit(of_kinds, machine="vector_bits=512,threads=2", input_signature=shapes)
    for n in (1, 7, 16, 17, 63, 64, 65, 131):
        numbers = np.random.default_rng(n).integers(-3, 4, (3, n))
        arrays = [abs(numbers).astype(kind) for kind in KINDS]
        whole = arrays[KINDS.index("int16")]
        want = [whole // (whole * whole + 1)]
        for kind, x in zip(KINDS, arrays, strict=True):
            want += [x.max(1), x.argmin(1), x.sum(1), x.any(1)]
            want.append(~x if kind == "bool" else x * x + x)
        for got, right in zip(program(*arrays), want, strict=True):
            np.testing.assert_allclose(got, right, rtol=1e-3)
