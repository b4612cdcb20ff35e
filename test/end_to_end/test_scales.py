"""Batch norms and their like after products: folded into the weights, and right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stepwell import jit, nn

RANDOM = np.random.default_rng(7)
Array = np.ndarray[Any, Any]


def array(*shape: int, dtype: str = "float32") -> Array:
    return RANDOM.standard_normal(shape).astype(dtype)


def statistics(features: int, dtype: str = "float32") -> tuple[Array, ...]:
    """Return mean, variance, scale and bias."""
    mean, scale, bias = (array(features, dtype=dtype) for _ in range(3))
    return mean, RANDOM.random(features).astype(dtype) + np.asarray(0.1, dtype), scale, bias


def convolved(x: Array, w: Array, stride: int, pad: int, groups: int) -> Array:
    """Return the convolution of images in f64."""
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    seen = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    seen = seen[:, :, ::stride, ::stride]
    n, c, rows, columns = seen.shape[:4]
    seen = seen.reshape(n, groups, c // groups, rows, columns, *w.shape[2:])
    filters = w.astype(np.float64).reshape(groups, -1, *w.shape[1:])
    y = np.einsum("ngcijkl,gockl->ngoij", seen, filters)
    return y.reshape(n, len(w), rows, columns)


def normal(y: Array, s: tuple[Array, ...]) -> Array:
    """Return the batch norm of axis 1 in f64."""
    mean, variance, scale, bias = (v.astype(np.float64).reshape(-1, 1, 1) for v in s)
    return (y - mean) / np.sqrt(variance + 1e-5) * scale + bias


CASES = {
    "dense": ((2, 5, 9, 11), (7, 5, 3, 3), 2, 1, 1),
    "one by one": ((1, 33, 8, 8), (17, 33, 1, 1), 1, 0, 1),
    "groups": ((1, 6, 9, 7), (8, 3, 3, 3), 1, 1, 2),
    "depthwise": ((1, 19, 12, 12), (19, 1, 3, 3), 1, 1, 19),
    "doubled depthwise": ((1, 5, 12, 12), (10, 1, 3, 3), 1, 1, 5),
    "one feature": ((1, 4, 9, 9), (1, 4, 3, 3), 1, 1, 1),
    "no image": ((0, 4, 9, 9), (3, 4, 3, 3), 1, 1, 1),
    "large": ((1, 8, 64, 64), (16, 8, 3, 3), 1, 1, 1),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("closed", [True, False], ids=["constants", "arguments"])
@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, "float32") for name in CASES), ("groups", "float64")]
)
def test_batch_norm_of_a_convolution(name: str, dtype: str, closed: bool) -> None:
    image, filters, stride, pad, groups = CASES[name]
    x, w = array(*image, dtype=dtype), array(*filters, dtype=dtype)
    s = statistics(filters[0], dtype)

    def net(x: Any, w: Any, mean: Any, variance: Any, scale: Any, bias: Any) -> Any:
        y = nn.conv(x, w, stride, pad, groups=groups)
        return nn.relu(nn.batch_norm(y, mean, variance, scale, bias))

    def of_image(x: Any) -> Any:
        return net(x, w, *s)

    got = jit(of_image)(x) if closed else jit(net)(x, w, *s)
    want = np.maximum(normal(convolved(x, w, stride, pad, groups), s), 0)
    close = 1e-4 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(got, want, rtol=close, atol=close)


def columns(x: Any, w: Any, b: Any, s: Any) -> Any:
    return ((x @ w + b) * s - b) / s + 1.0


def rows(x: Any, w: Any, b: Any, s: Any) -> Any:
    return (w @ x - b[:, None]) * s[:, None]


MATRICES: dict[str, tuple[Callable[..., Any], int, int, int]] = {
    "columns": (columns, 33, 20, 17),
    "many rows": (columns, 700, 9, 30),
    "rows of the left one": (rows, 20, 33, 17),
}


@pytest.mark.parametrize("closed", [True, False], ids=["constants", "arguments"])
@pytest.mark.parametrize("name", MATRICES)
def test_scaled_products(name: str, closed: bool) -> None:
    function, m, k, n = MATRICES[name]
    x, w = array(m, k), array(k, n)
    features = n
    if function is rows:
        x, w, features = array(m, n), array(k, m), k
    b, s = array(features), RANDOM.random(features).astype(np.float32) + np.float32(0.5)

    def of_rows(x: Any) -> Any:
        return function(x, w, b, s)

    got = jit(of_rows)(x) if closed else jit(function)(x, w, b, s)
    want = function(*(v.astype(np.float64) for v in (x, w, b, s)))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_an_unfortunate_variance_keeps_other_features() -> None:
    """A feature that is scaled by 0 or by infinity has no influence on others."""
    x, w = array(1, 4, 6, 6), array(3, 4, 3, 3)
    mean, variance, scale, bias = statistics(3)
    variance[0], scale[2] = np.inf, np.inf
    got = np.asarray(jit(lambda x: nn.batch_norm(nn.conv(x, w), mean, variance, scale, bias))(x))
    want = normal(convolved(x, w, 1, 0, 1), (mean, variance, scale, bias))
    np.testing.assert_allclose(got[:, :2], want[:, :2], rtol=1e-4, atol=1e-4)
    assert not np.isfinite(got[:, 2]).any()


@pytest.mark.machine("halved")
def test_nothing_of_constants_is_computed_in_a_call() -> None:
    """Of convolution, batch norm and relu, the call runs products, one sum and the relu."""
    x, w = array(1, 16, 20, 20), array(16, 16, 3, 3)
    mean, variance, scale, bias = statistics(16)
    net = jit(lambda x: nn.relu(nn.batch_norm(nn.conv(x, w), mean, variance, scale, bias)))
    text = str(net.trace(x).lower("kernels"))
    entry = text[text.index("func.func @") :].partition(".constants(")[0]
    assert "kernel.computed_constant = 0" in entry
    launched = [line.split("@")[1].split()[0] for line in entry.splitlines() if "launch" in line]
    body = "".join(
        part for part in text.split("kernel.func @") if part.partition("(")[0] in launched
    )
    assert body.count("arith.mulf") == 1  # of the convolution
    assert body.count("arith.addf") == 2
    assert "math." not in body and "arith.subf" not in body and "arith.divf" not in body
