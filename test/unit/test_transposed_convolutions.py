"""Transposed convolutions: any sizes, steps, padding, groups and dtypes, beside a scatter in NumPy."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.dialects.calling import call
from stepwell.dialects.interpreter import Interpreter
from stepwell.testing.op_rows.run import parsed


def _scattered(x: Any, w: Any, steps: tuple[int, ...], pad: tuple[int, ...], groups: int) -> Any:
    """Add to the result what each element of the window makes of ``x``."""
    inputs, outputs, *window = w.shape
    sizes = [(n - 1) * s + k for n, s, k in zip(x.shape[2:], steps, window, strict=True)]
    y = np.zeros((x.shape[0], groups * outputs, *sizes))
    each = inputs // groups
    for group, spot in product(range(groups), np.ndindex(*window)):
        part = x[:, group * each : (group + 1) * each].astype(float)
        made = np.einsum(
            "ni...,io->no...",
            part,
            w[(slice(group * each, (group + 1) * each), slice(None), *spot)].astype(float),
        )
        at = tuple(
            slice(k, k + (n - 1) * s + 1, s)
            for k, n, s in zip(spot, x.shape[2:], steps, strict=True)
        )
        y[(slice(None), slice(group * outputs, (group + 1) * outputs), *at)] += made
    return y[
        (slice(None), slice(None), *(slice(p, n - p) for p, n in zip(pad, sizes, strict=True)))
    ]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(24))
def test_beside_a_scatter(seed: int) -> None:
    random = np.random.default_rng(seed)
    axes = 1 + seed % 3
    steps = tuple(int(n) for n in random.integers(1, 4, axes))
    window = tuple(int(n) for n in random.integers(1, 6, axes))
    sizes = tuple(int(n) for n in random.integers(1, 7, axes))
    pad = tuple(
        int(random.integers(0, min(k, (n - 1) * s // 2 + (k + 1) // 2)))
        for k, n, s in zip(window, sizes, steps, strict=True)
    )
    groups, dtype = int(random.choice([1, 1, 2])), random.choice(["f4", "f8", "f2", "i4"])
    inputs, outputs = groups * int(random.integers(1, 4)), int(random.integers(1, 19))
    x = random.integers(-8, 8, (int(random.integers(1, 3)), inputs, *sizes)).astype(dtype)
    w = random.integers(-8, 8, (inputs, outputs, *window)).astype(dtype)
    got = sw.jit(lambda x, w: sw.nn.conv_transpose(x, w, steps, pad, groups))(x, w)
    want = _scattered(x, w, steps, pad, groups)
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(got, want.astype(dtype))


def test_infinities_stay_where_they_are() -> None:
    x = np.ones((1, 1, 5), np.float32)
    x[0, 0, 2] = np.inf
    w = np.array([[[1.0, 2.0, 3.0]]], np.float32)
    y = sw.jit(lambda x, w: sw.nn.conv_transpose(x, w, stride=2))(x, w)
    np.testing.assert_array_equal(y[0, 0], [1, 2, 4, 2, np.inf, np.inf, np.inf, 2, 4, 2, 3])


@pytest.mark.parametrize("dilation", [[2, 2], [1, 3], [2, 1]])
@pytest.mark.parametrize("strides", [[1, 1], [2, 1]])
@pytest.mark.parametrize("groups", [1, 2])
def test_what_is_not_finite_in_an_image(
    dilation: list[int], strides: list[int], groups: int
) -> None:
    """By phases or not, every place whose finite window has it sees it, and no other."""
    random = np.random.default_rng(3)
    x = random.integers(-8, 8, (1, 4, 5, 4)).astype(np.float32)
    x[0, 0, 2, 2], x[0, 3, 0, 1] = np.inf, np.nan
    w = random.integers(-8, 8, (6, 4 // groups, 3, 2)).astype(np.float32)
    high, wide = (
        ((n - 1) * d + 3 - k) // s + 1
        for n, d, s, k in zip((5, 4), dilation, strides, (3, 2), strict=True)
    )
    y = f"tensor<1x6x{high}x{wide}xf32>"
    types = f"(tensor<1x4x5x4xf32>, tensor<6x{4 // groups}x3x2xf32>) -> {y}"
    how = f"groups = {groups}, lhs_dilation = {dilation}, strides = {strides}"
    text = f"""func.func @main(%x: tensor<1x4x5x4xf32>, %w: tensor<6x{4 // groups}x3x2xf32>) -> {y} {{
      %y = nd.convolution %x, %w {{{how}, low = [1, 1], high = [1, 1]}} : {types}
      func.return %y : {y}
    }}"""
    (want,) = call(Interpreter(parsed(text)), "main", [x, w])
    np.testing.assert_array_equal(sw.compile(text)(x, w), want)
