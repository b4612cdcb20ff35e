"""Gradients of windows and pooling, of every form, against differences; ties."""

from __future__ import annotations

import numpy as np
import pytest
from differences import check, tensor
from reading import parsed

from stepwell.core.shapes.reduction import window_reduce as windows
from stepwell.dialects.interpreter import Interpreter


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(24))
def test_windows(seed: int) -> None:
    """Few places are written out, windows side by side are axes, all others slices."""
    random = np.random.default_rng(seed)
    rank = int(random.integers(1, 3 if seed % 4 == 3 else 4))
    window = [int(n) for n in random.integers(1, (6, 4, 3)[rank - 1], rank)]
    ones, zeros = [1] * rank, [0] * rank
    form = seed % 4
    strides = window if form == 1 else [int(n) for n in random.integers(1, 4, rank)]
    low, high = (
        zeros if form == 1 else [int(random.integers(0, w + 1)) for w in window] for _ in range(2)
    )
    dilation = [int(n) for n in random.integers(1, 3, rank)] if form == 2 else ones
    if form == 3:  # many places
        window[0], strides[0] = 18, int(random.integers(1, 20))
    if form == 1:
        window[-1] = strides[-1] = 17
    reach = [(w - 1) * d + 1 for w, d in zip(window, dilation, strict=True)]
    least = [max(r - a - b, 1) for r, a, b in zip(reach, low, high, strict=True)]
    shape = [n + int(random.integers(0, 6)) for n in least]
    x = random.permutation(int(np.prod(shape))).reshape(shape) / 7.0
    y = windows(tuple(shape), window, strides, low, high, dilation)
    fields = {"window": window, "strides": strides, "low": low, "high": high}
    spelled = ", ".join(f"{k} = {v}" for k, v in (fields | {"dilation": dilation}).items())
    kind = ("sum", "max", "min")[seed % 3]
    if kind != "sum" and any(  # a window in padding alone has no finite greatest
        a >= r or (o - 1) * s >= n + a
        for a, r, o, s, n in zip(low, reach, y, strides, shape, strict=True)
    ):
        kind = "sum"
    result = tensor(np.zeros(y))
    op = f"nd.window_{kind} %x {{{spelled}}} : $x -> {result}"
    check(op, {"x": x}, ["x"], seed)
    if 0 not in y:
        unknown = tensor(np.zeros(y), range(rank))
        op = f"nd.window_{kind} %x {{{spelled}}} : $x -> {unknown}"
        check(op, {"x": x}, ["x"], seed, {"x": range(rank)}, second=False)


POOLS = (
    "max_pool %x {window = [3, 2], strides = [2, 1], low = [1, 0], high = [1, 1]}",
    "avg_pool %x {window = [3, 2], strides = [2, 1], low = [1, 0], high = [1, 1]}",
    "avg_pool %x {window = [2, 2], low = [0, 1], high = [0, 0], count_include_pad}",
    "max_pool %x {window = [5, 5]}",
    "avg_pool %x {window = [5, 6]}",
)


@pytest.mark.parametrize("pool", POOLS)
def test_pools(pool: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 5, 6))
    window = {"[3, 2]": (3, 6), "[2, 2]": (2, 3), "[5, 5]": (1, 1), "[5, 6]": (1, 1)}
    y = next(n for w, n in window.items() if f"window = {w}" in pool)
    check(f"nd.{pool} : $x -> {tensor(np.zeros((2, 3, *y)))}", {"x": x}, ["x"], 1)
    unknown = tensor(np.zeros((2, 3, *y)), [0])
    check(f"nd.{pool} : $x -> {unknown}", {"x": x}, ["x"], 1, {"x": [0]}, second=False)


@pytest.mark.parametrize("strides", [1, 2, 3])
def test_the_first_of_equals_has_it(strides: int) -> None:
    y = (6 - 3) // strides + 1
    text = f"""
    func.func @main(%x_0: tensor<6xf32>, %g: tensor<{y}xf32>) -> tensor<6xf32> {{
      %y, %d = nd.vjp (%x = %x_0) cotangents(%g : tensor<{y}xf32>) {{wrt = [0], of = [0]}} : (tensor<6xf32>) -> (tensor<{y}xf32>, tensor<6xf32>) {{
        %y = nd.window_max %x {{window = [3], strides = [{strides}]}} : tensor<6xf32> -> tensor<{y}xf32>
        nd.yield %y : tensor<{y}xf32>
      }}
      func.return %d : tensor<6xf32>
    }}"""
    x = np.array([1, 2, 2, 2, 1, 1], np.float32)
    g = np.arange(1, y + 1, dtype=np.float32)
    (d,) = Interpreter(parsed(text)[1]).call("main", [x, g])
    want = np.zeros(6, np.float32)
    for i in range(y):
        want[i * strides + int(np.argmax(x[i * strides : i * strides + 3]))] += g[i]
    np.testing.assert_array_equal(d, want)
