"""Formulas written out as in NumPy become as few kernels as the functions of `nn`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp
from stepwell.core.machine import thread_count
from stepwell.runtime.extension import load_extension

RANDOM = np.random.default_rng(0)


def array(*shape: int) -> np.ndarray[Any, Any]:
    return RANDOM.standard_normal(shape, np.float32)


def rms_norm(np: Any, x: Any, g: Any) -> Any:
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5) * g


def layer_norm(np: Any, x: Any, g: Any, b: Any) -> Any:
    d = x - np.mean(x, axis=-1, keepdims=True)
    return d / np.sqrt(np.mean(d * d, axis=-1, keepdims=True) + 1e-5) * g + b


def layer_norm_by_var(np: Any, x: Any, g: Any, b: Any) -> Any:
    mean, var = np.mean(x, axis=-1, keepdims=True), np.var(x, axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(var + 1e-5) * g + b


def softmax(np: Any, x: Any, axis: int = -1) -> Any:
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def log_softmax(np: Any, x: Any) -> Any:
    s = x - np.max(x, axis=-1, keepdims=True)
    return s - np.log(np.sum(np.exp(s), axis=-1, keepdims=True))


def logsumexp(np: Any, x: Any) -> Any:
    m = np.max(x, axis=-1, keepdims=True)
    return np.log(np.sum(np.exp(x - m), axis=-1, keepdims=True)) + m


def logsumexp_squeezed(np: Any, x: Any) -> Any:
    m = np.max(x, axis=-1, keepdims=True)
    return np.log(np.sum(np.exp(x - m), axis=-1)) + np.squeeze(m, axis=-1)


def batch_norm(np: Any, x: Any, g: Any, b: Any) -> Any:
    mean, var = (f(x, axis=(0, 2, 3), keepdims=True) for f in (np.mean, np.var))
    return (x - mean) / np.sqrt(var + 1e-5) * g[None, :, None, None] + np.reshape(b, (1, -1, 1, 1))


def group_norm(np: Any, x: Any, g: Any, b: Any) -> Any:
    n, c, h, w = x.shape
    y = np.reshape(x, (n, 2, c // 2, h, w))
    mean, var = (f(y, axis=(2, 3, 4), keepdims=True) for f in (np.mean, np.var))
    y = np.reshape((y - mean) / np.sqrt(var + 1e-5), x.shape)
    return y * g[None, :, None, None] + np.reshape(b, (1, c, 1, 1))


def group_norm_silu(np: Any, x: Any, g: Any, b: Any) -> Any:
    y = group_norm(np, x, g, b)
    return y / (1 + np.exp(-y))


def standardized(np: Any, x: Any) -> Any:
    mean, deviation = np.mean(x, axis=0, keepdims=True), np.std(x, axis=0, keepdims=True)
    return (x - mean) / (deviation + 1e-6)


def unit_length(np: Any, x: Any) -> Any:
    return x / np.maximum(np.sqrt(np.sum(x * x, axis=-1, keepdims=True)), 1e-12)


def cosine(np: Any, x: Any, y: Any) -> Any:
    return np.sum(unit_length(np, x) * unit_length(np, y), axis=-1)


def ranged(np: Any, x: Any) -> Any:
    least, most = np.min(x, axis=-1, keepdims=True), np.max(x, axis=-1, keepdims=True)
    return (x - least) / (most - least)


def squared_error(np: Any, x: Any, y: Any) -> Any:
    return np.mean((x - y) ** 2)


def gelu(np: Any, x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def swiglu(np: Any, x: Any) -> Any:
    a, b = x[:, :24], x[:, 24:]
    return a / (1 + np.exp(-a)) * b


def rope(np: Any, x: Any, c: Any, s: Any) -> Any:
    a, b = x[..., :24], x[..., 24:]
    return np.concatenate([a * c - b * s, b * c + a * s], axis=-1)


X, Y, G, B = array(37, 48), array(37, 48), array(48), array(48)
IMAGE = array(3, 5, 7, 6)
FORMULAS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "rms norm": (rms_norm, (X, G)),
    "rms norm of heads": (rms_norm, (array(3, 5, 48), G)),
    "layer norm": (layer_norm, (X, G, B)),
    "layer norm by var": (layer_norm_by_var, (X, G, B)),
    "softmax": (softmax, (X,)),
    "softmax of columns": (lambda np, x: softmax(np, x, 0), (X,)),
    "log softmax": (log_softmax, (X,)),
    "logsumexp": (logsumexp, (X,)),
    "logsumexp, squeezed": (logsumexp_squeezed, (X,)),
    "batch norm": (batch_norm, (IMAGE, array(5), array(5))),
    "group norm": (group_norm, (array(3, 6, 7, 5), array(6), array(6))),
    "group norm and silu": (group_norm_silu, (array(3, 6, 7, 5), array(6), array(6))),
    "standardized columns": (standardized, (X,)),
    "unit length": (unit_length, (X,)),
    "cosine": (cosine, (X, Y)),
    "from 0 to 1": (ranged, (X,)),
    "squared error": (squared_error, (X, Y)),
    "gelu": (gelu, (X,)),
    "swiglu": (swiglu, (X,)),
    "rope": (rope, (array(3, 37, 48), array(37, 24), array(37, 24))),
}


@pytest.mark.sampled(2)
@pytest.mark.machine("halved")
@pytest.mark.parametrize("name", FORMULAS)
def test_one_kernel(name: str) -> None:
    formula, arguments = FORMULAS[name]
    traced = sw.jit(lambda *each: formula(snp, *each)).trace(*arguments)
    assert len(re.findall(r"kernel\.func @", str(traced.lower("kernels")))) == 1


@pytest.mark.parametrize("name", FORMULAS)
def test_as_numpy_computes_it(name: str) -> None:
    formula, arguments = FORMULAS[name]
    want = formula(np, *(each.astype(np.float64) for each in arguments))
    got = sw.jit(lambda *each: formula(snp, *each))(*arguments)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", [(3, 6, 7, 5), (2, 4), (1, 2, 1), (2, 6, 37, 3, 5), (0, 4, 3)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_group_norm_of_nn(shape: tuple[int, ...], dtype: str) -> None:
    """It is one kernel too, and rounds to the dtype once."""
    x, g, b = (array(*each).astype(dtype) for each in (shape, shape[1:2], shape[1:2]))
    function = sw.jit(lambda x, g, b: sw.nn.group_norm(x, 2, g, b))
    got = function(x, g, b)
    assert got.dtype == dtype and got.shape == shape
    if x.size > 2:
        text = str(function.trace(x, g, b).lower("kernels"))
        assert len(re.findall(r"kernel\.func @", text)) == 1
    wide = np.float64(x).reshape(shape[0], 2, -1 if x.size else 6)
    distance = wide - wide.mean(-1, keepdims=True)
    normal = distance / np.sqrt((distance**2).mean(-1, keepdims=True) + 1e-5)
    along = (-1, *(1,) * (len(shape) - 2))
    want = normal.reshape(shape) * g.reshape(along) + b.reshape(along)
    np.testing.assert_allclose(got, want, rtol=1e-3 if dtype == "float16" else 1e-5, atol=1e-3)


def test_as_many_threads_as_there_are() -> None:
    """No result depends on their number by a bit."""
    extension = load_extension()
    if extension is None:
        pytest.skip("no extension")
    x, g, b = array(4, 6, 70, 50), array(6), array(6)
    rows = array(200, 300)
    programs: list[tuple[Any, tuple[Any, ...]]] = [
        (sw.jit(lambda *each: group_norm(snp, *each)), (x, g, b)),
        (sw.jit(lambda x, g, b: sw.nn.group_norm(x, 2, g, b)), (x, g, b)),
        (sw.jit(lambda *each: batch_norm(snp, *each)), (x, g, b)),
        (sw.jit(lambda *each: log_softmax(snp, *each)), (rows,)),
        (sw.jit(lambda *each: standardized(snp, *each)), (rows,)),
    ]
    try:
        for function, arguments in programs:
            found: list[bytes] = []
            for threads in (1, 2, 3, 7):
                extension.set_threads(threads)
                found.append(function(*arguments).tobytes())
            assert len(set(found)) == 1
    finally:
        extension.set_threads(thread_count())
