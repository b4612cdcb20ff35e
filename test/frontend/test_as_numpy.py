"""What NumPy 2 gives, value and dtype, where `stepwell.numpy` once gave something else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp

B = np.array([True, False, True, True])
C = np.array([True, True, False, False])
N = np.arange(4, dtype=np.int32)
F = np.arange(6, dtype=np.float32).reshape(2, 3)
LEAST = np.array([-(2**31), -1, 5, 0], np.int32)
TABLE = np.arange(10.0) * 2

# a function of a module of NumPy's functions and of arrays; the arrays
SAME: dict[str, tuple[Any, ...]] = {
    "maximum of booleans": (lambda m, a, b: m.maximum(a, b), B, C),
    "minimum of booleans": (lambda m, a, b: m.minimum(a, b), B, C),
    "abs of booleans": (lambda m, a: abs(a), B),
    "booleans // booleans": (lambda m, a, b: a // b, B, B),
    "booleans % booleans": (lambda m, a, b: a % b, B, B),
    "fmod of booleans": (lambda m, a, b: m.fmod(a, b), B, B),
    "booleans ** booleans": (lambda m, a, b: a**b, B, C),
    "booleans << booleans": (lambda m, a, b: a << b, B, C),
    "booleans >> booleans": (lambda m, a, b: a >> b, B, C),
    "square of booleans": (lambda m, a: m.square(a), B),
    "round of booleans": (lambda m, a: m.round(a), B),
    "diff of booleans": (lambda m, a: m.diff(a), B),
    "booleans @ booleans": (lambda m, a, b: a @ b, B, C),
    "matrices of booleans": (lambda m, a, b: a.reshape(2, 2) @ b.reshape(2, 2), B, C),
    "tensordot of booleans": (lambda m, a, b: m.tensordot(a, b, axes=1), B, C),
    "vecdot of booleans": (lambda m, a, b: m.vecdot(a, b), B, C),
    "outer of booleans": (lambda m, a, b: m.outer(a, b), B, C),
    "einsum of booleans": (lambda m, a, b: m.einsum("i,i->", a, b), B, C),
    "einsum of one of booleans": (lambda m, a: m.einsum("i->", a), B),
    "many booleans": (lambda m, a: a @ a, np.ones(300, np.bool_)),
    "bitwise_count": (lambda m, a: m.bitwise_count(a), LEAST),
    "bitwise_count of bytes": (lambda m, a: m.bitwise_count(a), np.arange(-128, 128, dtype="i1")),
    "bitwise_count of unsigned": (
        lambda m, a: m.bitwise_count(a),
        np.array([2**64 - 1, 3], np.uint64),
    ),
    "bitwise_count of booleans": (lambda m, a: m.bitwise_count(a), B),
    "isclose of integers": (lambda m, a: m.isclose(a, 0), LEAST),
    "isclose of bytes": (
        lambda m, a, b: m.isclose(a, b),
        np.array([-128, 1], np.int8),
        np.array([127, 1], np.int8),
    ),
    "isclose of booleans": (lambda m, a, b: m.isclose(a, b), B, C),
    "isclose of large integers": (
        lambda m, a: m.isclose(a, a + 1, 0, 0),
        np.array([2**40, 1], np.int64),
    ),
    "isclose with NaN": (
        lambda m, a: m.isclose(a, a, equal_nan=True),
        np.array([np.nan, 1], np.float32),
    ),
    "std of nothing": (lambda m, a: m.std(a[:0], ddof=1), F[0]),
    "var of one": (lambda m, a: m.var(a[:1], ddof=1), F[0]),
    "var of less": (lambda m, a: m.var(a, axis=1, ddof=5), F),
    "var": (lambda m, a: m.var(a, axis=1, ddof=1), F),
    "arange by halves as integers": (lambda m: m.arange(0, 1, 0.5, dtype="int32"),),
    "arange as integers": (lambda m: m.arange(0.5, 4.5, 1.5, dtype="int64"),),
    "arange down": (lambda m: m.arange(3, 0, -0.7, dtype="float32"),),
    "arange of halves": (lambda m: m.arange(3, 0, -0.7, dtype="float16"),),
    "arange of doubles": (lambda m: m.arange(0, 30, 0.1, dtype="float64"),),
    "arange of bytes": (lambda m: m.arange(250, 260, dtype="uint8"),),
    "arange of scalars": (lambda m: m.arange(np.int64(2), np.int64(9), np.int64(3)),),
    "clip by floats": (
        lambda m, a: m.clip(a, np.array([0.5, 1, 1, 1], np.float64), np.array([2.5], np.float64)),
        N,
    ),
    "clip by wider integers": (lambda m, a: m.clip(a, np.int64(1), None), N),
    "clip the wrong way": (lambda m, a: m.clip(a, 3, 1), N),
    "clip by nothing": (lambda m, a: m.clip(a), N),
    "full of a large number": (lambda m: m.full(3, 1e300),),
    "full of a large f32": (lambda m: m.full(3, 1e300, dtype="float32"),),
    "full toward zero": (lambda m: m.full(3, -1.5, dtype="int32"),),
    "full of truths": (lambda m: m.full(3, 2, dtype="bool"),),
    "repeats": (lambda m, a: m.repeat(a, np.array([1, 2, 0, 3])), N),
    "repeats in a list": (lambda m, a: m.repeat(a, [1, 2], axis=0), F),
    "repeats of one": (lambda m, a: m.repeat(a, [2], axis=1), F),
    "no repeats": (lambda m, a: m.repeat(a, 0), F),
    "repeat nothing": (lambda m, a: m.repeat(a[:0], 3), F),
    "a mask that is known": (lambda m, a: a[:, m.asarray(np.array([True, False, True]))], F),
    "a mask of a list": (lambda m, a: a[m.asarray([False, True])], F),
    "a mask of two axes": (lambda m, a: a[m.asarray(F > 2)], F),
    "a table": (lambda m, i: m.asarray(TABLE)[i], N),
    "expand_dims": (lambda m, a: m.expand_dims(a, (0, -1)), F),
    "linspace": (lambda m, a: m.linspace(a[0], a[1], 5), F),
    "linspace from 0": (lambda m, a: m.linspace(0, a[0, 2], 4), F),
    "linspace without its end": (lambda m, a: m.linspace(a[0], a[1], 5, endpoint=False), F),
    "linspace of NumPy": (lambda m, a: np.linspace(a[0], a[1], 7), F),
    "linspace of NumPy, of integers": (lambda m, i: np.linspace(i, 9, 4), N),
    "isclose of NumPy": (lambda m, a: np.isclose(a, a, equal_nan=True), np.array([np.nan, 1])),
    "linspace of one": (lambda m, a: m.linspace(a[0], a[1], 1), F),
    "linspace of none": (lambda m, a: m.linspace(a[0], a[1], 0), F),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", SAME)
def test_the_same_as_in_numpy(name: str) -> None:
    function, *arrays = SAME[name]
    if name == "clip by nothing" and not hasattr(np, "unstack"):
        pytest.skip("NumPy before 2.1 has no default for the bounds")
    want = function(np, *arrays)
    got = sw.jit(lambda *given: function(snp, *given))(*arrays)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-6, strict=True)


def test_numbers_are_f64_and_take_the_dtype_of_arrays() -> None:
    f = sw.jit(lambda x: x)
    for number in (1e300, -1e39, 0.1):
        for _ in range(2):
            got = f(number)
            assert got.dtype == np.float64 and got == number
    for number in (0.1, 1e39, float("inf")):
        got = sw.jit(lambda number=number: snp.asarray(number))()
        assert got == number and got.dtype == np.float64
    assert sw.jit(lambda x: x + 1e300)(np.array([1], np.float32))[0] == np.inf, "as in NumPy"


def test_an_array_is_filled_with_what_only_the_run_knows() -> None:
    def f(a: Any) -> Any:
        return (
            np.full(3, a[1]),
            np.full((2, 2), fill_value=a[0], dtype=np.float32),
            np.array([a[0], 7]),
        )

    for got, want in zip(sw.jit(f)(N), f(N), strict=True):
        np.testing.assert_array_equal(got, want, strict=True)


BF16: list[Any] = [
    lambda a: a + a.dtype.type(1),
    lambda a: a.dtype.type(1) / a,
    lambda a: np.where(a > a.dtype.type(1), a, a.dtype.type(0)),
    lambda a: np.stack([a, np.arange(3).astype(a.dtype)]),
    lambda a: a.astype(np.float32) * np.arange(3).astype(a.dtype),
]


@pytest.mark.parametrize("f", BF16)
def test_numbers_and_arrays_of_bfloat16_from_outside(f: Any) -> None:
    a = np.array([2, 1, 5], pytest.importorskip("ml_dtypes").bfloat16)
    got, want = sw.jit(f)(a), f(a)
    assert got.dtype == want.dtype and got.astype("f4").tolist() == want.astype("f4").tolist()


def test_limits_of_bfloat16() -> None:
    about = snp.finfo(snp.bfloat16)
    assert about.max == 3.3895313892515355e38 == -about.min
    one = np.float32(1)
    next_one = sw.jit(lambda x: (x.astype("bf16") + about.eps).astype("f32"))(one)
    assert next_one == 1.0078125 and about.eps == 0.0078125
    assert about.smallest_subnormal > 0 and about.bits == 16
