"""stepwell.numpy against NumPy: every function, traced and run by the reference interpreter."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from run_traced import interpreted

import stepwell as sw
import stepwell.numpy as snp

R = np.random.default_rng(3)
X = R.standard_normal((3, 4)).astype(np.float32)
Y = R.standard_normal((3, 4)).astype(np.float32)
P = R.random((3, 4), np.float32) + np.float32(0.1)
V = R.standard_normal(4).astype(np.float32)
K = R.integers(-9, 9, (3, 4)).astype(np.int32)
J = R.integers(1, 5, (3, 4)).astype(np.int32)
B = R.random((3, 4)) > 0.5
T = R.standard_normal((2, 3, 4)).astype(np.float32)


def same(got: Any, want: Any) -> None:
    if isinstance(want, tuple | list):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            same(g, w)
        return
    want = np.asarray(want)
    assert np.shape(got) == want.shape
    np.testing.assert_allclose(np.asarray(got, want.dtype), want, rtol=2e-5, atol=1e-6)


UNARY = [
    "abs",
    "cos",
    "cosh",
    "exp",
    "exp2",
    "expm1",
    "sin",
    "sinh",
    "square",
    "tan",
    "tanh",
    "atan",
    "asinh",
    "cbrt",
    "negative",
    "positive",
    "sign",
    "ceil",
    "floor",
    "trunc",
    "round",
    "isnan",
    "isinf",
    "isfinite",
    "logical_not",
]
POSITIVE = ["log", "log10", "log1p", "log2", "sqrt", "reciprocal"]
BINARY = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "maximum",
    "minimum",
    "atan2",
    "hypot",
    "copysign",
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "floor_divide",
    "remainder",
    "fmod",
    "logaddexp",
    "logical_and",
    "logical_or",
    "logical_xor",
]
INTEGER = ["bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"]
NUMPY = {"bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift"}


HELD = [np.zeros((3, 4))]
"""An array that a function gets from C, where nothing tells that it is from outside."""


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    same(interpreted(getattr(snp, name), X), getattr(np, name)(X))


@pytest.mark.parametrize("name", POSITIVE)
def test_positive(name: str) -> None:
    same(interpreted(getattr(snp, name), P), getattr(np, name)(P))


@pytest.mark.parametrize("name", ["acos", "asin", "atanh", "acosh"])
def test_inverse(name: str) -> None:
    x = (P + 1 if name == "acosh" else P - np.float32(0.2)).astype(np.float32)
    x = np.minimum(x, np.float32(0.9)) if name != "acosh" else x
    same(interpreted(getattr(snp, name), x), getattr(np, name)(x))


@pytest.mark.parametrize("name", BINARY)
def test_binary_broadcasts(name: str) -> None:
    same(interpreted(getattr(snp, name), X, V), getattr(np, name)(X, V))


def test_logaddexp_without_end() -> None:
    ends = np.array([np.inf, -np.inf, np.nan, 2.0], np.float32)
    x, y = np.repeat(ends, 4), np.tile(ends, 4)
    with np.errstate(all="ignore"):
        same(interpreted(snp.logaddexp, x, y), np.logaddexp(x, y))


@pytest.mark.parametrize("name", INTEGER)
def test_integer(name: str) -> None:
    same(interpreted(getattr(snp, name), K, J), getattr(np, NUMPY.get(name, name))(K, J))


CASES: list[tuple[str, Callable[[Any], Any], tuple[Any, ...]]] = [
    ("operators", lambda n: lambda x, y: (2 * x + y / 3 - 1) ** 2 % 0.7 // 0.1, (X, Y)),
    ("reflected", lambda n: lambda x: (1 - x, 1 / x, 2**x, X + x, X @ x.T), (X,)),
    ("compare", lambda n: lambda x, y: ((x < y) & ~(x > 0), x == x, x != y, x >= 0), (X, Y)),
    ("integers", lambda n: lambda i, j: (i // j, i % j, i << j, -i, abs(i), i ^ 3), (K, J)),
    (
        "methods",
        lambda n: lambda x: (x.sum(), x.mean(axis=0), x.max(axis=1), x.reshape(2, 6)),
        (X,),
    ),
    ("where", lambda n: lambda b, x: (n.where(b, x, 0.0), n.where(x > 0, 1.0, x)), (B, X)),
    ("clip", lambda n: lambda x: (n.clip(x, -0.5, 0.5), n.clip(x, None, V)), (X,)),
    ("reductions", lambda n: lambda x: (n.sum(x, axis=(0, 2)), n.prod(x, axis=-1), n.min(x)), (T,)),
    (
        "keepdims",
        lambda n: lambda x: (n.mean(x, axis=1, keepdims=True), n.std(x), n.var(x, axis=0)),
        (T,),
    ),
    ("any", lambda n: lambda b: (n.any(b, axis=0), n.all(b, axis=1), n.sum(b), n.max(b)), (B,)),
    (
        "arg",
        lambda n: lambda x: (n.argmax(x, axis=1), n.argmin(x), n.argmax(x, axis=0, keepdims=True)),
        (X,),
    ),
    ("integer sums", lambda n: lambda i: (n.sum(i), n.prod(i, axis=0), n.mean(i * 1.0)), (J,)),
    ("matmul", lambda n: lambda t, x, v: (n.matmul(t, x.T), t @ v, v @ x.T, v @ v), (T, X, V)),
    ("batched", lambda n: lambda t: n.matmul(t, n.swapaxes(t, 1, 2)), (T,)),
    (
        "tensordot",
        lambda n: lambda t, x: (n.tensordot(t, x), n.tensordot(t, x, axes=((2,), (1,)))),
        (T, X),
    ),
    ("einsum", lambda n: lambda t, x: (n.einsum("bij,ij->b", t, x), n.einsum("ij->ji", x)), (T, X)),
    ("einsum3", lambda n: lambda t, x, v: n.einsum("bij,ij,j->ib", t, x, v), (T, X, V)),
    ("outer", lambda n: lambda v: (n.outer(v, v), n.trace(n.outer(v, v))), (V,)),
    (
        "shapes",
        lambda n: lambda t: (n.reshape(t, (4, -1)), n.moveaxis(t, 0, 2), n.squeeze(t[:1])),
        (T,),
    ),
    (
        "join",
        lambda n: (
            lambda x, y: (n.stack([x, y]), n.stack([x, y], axis=-1), n.concatenate([x, y], axis=1))
        ),
        (X, Y),
    ),
    ("split", lambda n: lambda x: (*n.split(x, 2, axis=1), *n.split(x, [1], axis=0)), (X,)),
    (
        "turn",
        lambda n: (
            lambda x: (n.flip(x), n.flip(x, axis=0), n.roll(x, 2, axis=1), n.roll(x, -1, axis=0))
        ),
        (X,),
    ),
    (
        "roll",
        lambda n: (
            lambda x: (n.roll(x, 5), n.roll(x, (1, -2), axis=(0, 1)), n.roll(x, 1, axis=(1, 0)))
        ),
        (X,),
    ),
    (
        "repeat",
        lambda n: lambda x: (n.tile(x, (2, 3)), n.repeat(x, 2, axis=1), n.repeat(x, 3)),
        (X,),
    ),
    ("pad", lambda n: lambda x: (n.pad(x, ((1, 0), (2, 3))), n.pad(x, 1, constant_values=7)), (X,)),
    ("broadcast", lambda n: lambda v: n.broadcast_to(v, (2, 3, 4)), (V,)),
    ("triangles", lambda n: lambda x: (n.tril(x), n.triu(x, k=1), n.eye(3) + x[:, :3]), (X,)),
    ("diff", lambda n: lambda x: n.diff(x, axis=0), (X,)),
    ("take", lambda n: lambda x: (n.take(x, [0, -1], axis=1), n.take(x, 5)), (X,)),
    ("grid", lambda n: lambda v: n.meshgrid(v, v[:2]), (V,)),
    (
        "index",
        lambda n: lambda x: (x[1], x[-1, 2], x[:, 1:3], x[::-1, ::2], x[None, ..., 0], x[3:]),
        (X,),
    ),
    (
        "fancy",
        lambda n: lambda t: (t[[1, 0]], t[:, [2, 0], 1], t[0, :, [1, 3]], t[[[0], [1]], [0, 2]]),
        (T,),
    ),
    (
        "transposed",
        lambda n: lambda x: (x.T, n.transpose(x), n.permute_dims(x, (1, 0)) if n is snp else x.T),
        (X,),
    ),
    ("rows", lambda n: lambda x: sum(row * i for i, row in enumerate(x)), (X,)),
    ("closure", lambda n: lambda x: x + Y + np.arange(4, dtype=np.float32), (X,)),
    (
        "arange",
        lambda n: (
            lambda x: x + n.arange(4, dtype=np.float32) + n.arange(0.0, 2.0, 0.5, dtype="float32")
        ),
        (X,),
    ),
    (
        "creation",
        lambda n: (
            lambda x: (n.zeros((2, 3)), n.ones_like(x), n.full((2,), 7.0), n.linspace(0, 1, 5))
        ),
        (X,),
    ),
    ("nothing left", lambda n: lambda x: (n.sum(x[:0]), n.concatenate([x[:0], x])), (X,)),
]


@pytest.mark.parametrize("make, args", [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_like_numpy(make: Callable[[Any], Any], args: tuple[Any, ...]) -> None:
    same(interpreted(make(snp), *args), make(np)(*args))


def test_cumulative() -> None:
    got = interpreted(lambda x: (snp.cumulative_sum(x, axis=1), x.cumprod(axis=0)), X)
    same(got, (np.cumsum(X, axis=1), np.cumprod(X, axis=0)))
    (got,) = interpreted(lambda v: (snp.cumulative_sum(v, include_initial=True),), V)
    same(got, np.concatenate([[0], np.cumsum(V)]))


def test_take_along_axis() -> None:
    order = np.argsort(X, axis=1)
    got = interpreted(lambda x, i: snp.take_along_axis(x, i, axis=1), X, order)
    same(got, np.take_along_axis(X, order, 1))


def test_at_returns_changed_copies() -> None:
    def f(x: Any) -> Any:
        return x.at[1, ::2].set(9.0), x.at[[0, 0]].add(1.0), x.at[:, 0].multiply(V[:3])

    a, b, c = X.copy(), X.copy(), X.copy()
    a[1, ::2] = 9
    np.add.at(b, [0, 0], 1)
    c[:, 0] *= V[:3]
    same(interpreted(f, X), (a, b, c))


@pytest.mark.parametrize(
    "a, b, want",
    [
        (np.int8, np.int32, np.int32),
        (np.int32, np.float32, np.float64),
        (np.uint8, np.int8, np.int16),
        (np.float16, np.float64, np.float64),
        (np.bool_, np.int8, np.int8),
        (np.int64, np.float16, np.float64),
        (np.int8, np.float16, np.float16),
        (np.uint64, np.int64, np.float64),
    ],
)
def test_promotion(a: Any, b: Any, want: Any) -> None:
    got = interpreted(lambda x, y: x + y, np.ones(2, a), np.ones(2, b))
    assert got.dtype == want


def test_python_numbers_take_the_arrays_dtype() -> None:
    for kind in (np.float16, np.float32, np.float64, np.int8, np.uint8):
        got = interpreted(lambda x: 2 * x + 1, np.ones(2, kind))
        assert got.dtype == kind
    assert interpreted(lambda x: x * 0.5, np.ones(2, np.int32)).dtype == np.float64


def test_integers_to_powers() -> None:
    i, j = np.array([-1001, -1, 0, 3, 10007]), np.array([5, 7, 0, 2, 4])
    for f in (lambda i, j: i**j, lambda i, _: i**5, lambda _, j: 3**j, lambda i, _: (i + 0) ** 2):
        got = interpreted(f, i, j)
        np.testing.assert_array_equal(got, f(i, j))
        assert got.dtype == np.int64
    assert interpreted(lambda i: i**2.0, i).dtype == np.float64
    with pytest.raises(ValueError, match="Integers to negative integer powers are not allowed"):
        interpreted(lambda j: j**-1, j[:2])


def test_arithmetic_of_booleans() -> None:
    b, c = np.array([True, True, False, False]), np.array([True, False, True, False])
    for f in (lambda b, c: b + c, lambda b, c: b * c, lambda b, _: b + 1):
        got = interpreted(f, b, c)
        np.testing.assert_array_equal(got, f(b, c))
        assert got.dtype == f(b, c).dtype


def test_numbers_too_large_for_a_dtype_are_infinite() -> None:
    h = np.array([1, -1], np.float16)
    got = interpreted(lambda h: (h + 1e5, snp.where(h > 0, h, -1e9), h + 65519.0), h)
    same(got, ([np.inf, np.inf], [1, -np.inf], [65504, 65504]))
    same(interpreted(lambda x: x + 1e39, np.ones(1, np.float32)), [np.inf])


def test_a_variance_may_be_of_more_than_halves_count() -> None:
    h = np.tile(np.array([-1000, 1000], np.float16), 40000)
    assert interpreted(lambda h: h.std(), h) == 1000
    got = interpreted(lambda h: snp.var(h, correction=1.0), h / np.float16(100))
    assert got.dtype == np.float16 and got == 100


@pytest.mark.parametrize(
    "name, arguments",
    [
        ("zeros", ((2, 3), np.int32)),
        ("ones", ((2, 3), np.bool_)),
        ("full", (4, 7, np.int8)),
        ("zeros_like", (X, np.int32)),
        ("ones_like", (X, np.float16)),
        ("full_like", (X, 2, np.uint8)),
        ("arange", (2, 11, 3, np.float32)),
        ("eye", (3, 4, 1, np.float32)),
        ("tril", (X, 1)),
        ("triu", (X, -1)),
        ("asarray", (X, np.float64)),
        ("linspace", (0.0, 1.0, 5, False)),
        ("max", (X, 0)),
        ("argmax", (X, 1)),
        ("expand_dims", (X, 1)),
        ("roll", (X, 1, 0)),
        ("take", (X, np.array([1, 0]), 1)),
    ],
)
def test_arguments_by_position_as_in_numpy(name: str, arguments: Any) -> None:
    got = interpreted(lambda _: getattr(snp, name)(*arguments), X)
    want = np.asarray(getattr(np, name)(*arguments))
    np.testing.assert_allclose(got, want, rtol=1e-6)
    assert got.dtype == want.dtype or name == "linspace"


def test_only_what_is_meant_for_users_is_listed() -> None:
    assert dir(snp) == sorted(snp.__all__) and "annotations" not in dir(snp)
    assert dir(sw.nn) == sorted([*sw.nn.__all__, "initializers"])
    assert dir(sw.lax) == sorted(sw.lax.__all__)
    assert set(dir(sw)) == {*sw.__all__, "numpy", "__version__"} and sw.numpy is snp


@pytest.mark.parametrize(
    "function, message",
    [
        (np.packbits, "numpy.packbits of a traced value is not known to Stepwell"),
        (np.histogramdd, "numpy.histogramdd .* the nearest is numpy.histogram"),
        (np.linalg.inv, "numpy.linalg.inv of a traced value is not known to Stepwell"),
        (np.isnat, "numpy.isnat of a traced value is not known"),
        (lambda x: np.add(x, x, where=x > 0), "numpy.add: where= without out= leaves elements"),
        (lambda x: np.add(x, x, out=next(iter(HELD))), "out= is an array that is not part"),
    ],
)
def test_what_to_write_for_numpys(function: Any, message: str) -> None:
    with pytest.raises(sw.TraceError, match=message):
        sw.jit(lambda x: function(x)).trace(X)


def test_functions_of_numpy_themselves() -> None:
    """NumPy's functions hand on what was not passed, as an object of their own."""
    x = np.array([3.0, 1.0, 2.0])
    for function in (np.max, np.std, np.prod):
        assert sw.jit(function)(x) == function(x)
    assert sw.grad(np.sum)(x).tolist() == [1, 1, 1]
