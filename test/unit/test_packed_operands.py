"""Weights laid out in slivers: any size, layout and type gives what NumPy gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw

RANDOM = np.random.default_rng(5)
NAMES = {"f64": "float64", "f32": "float32", "f16": "float16", "i8": "int8", "i32": "int32"}
CLOSE = {"f64": 1e-13, "f32": 1e-5, "f16": 5e-3}


def numbers(shape: tuple[int, ...], dtype: str) -> Any:
    if dtype[0] == "f":
        return RANDOM.standard_normal(shape).astype(NAMES[dtype])
    return RANDOM.integers(-100, 100, shape).astype(NAMES[dtype])


def program(x: Any, w: Any, turned: bool, dtype: str, wide: str, rows: str = "") -> sw.Compiled:
    """Compile relu(x @ w), or of w turned over, w being a constant."""
    *batch, m, k = x.shape
    n = w.shape[-2] if turned else w.shape[-1]
    lead = "".join(f"{b}x" for b in batch)
    kinds = [
        f"tensor<{lead}{rows or m}x{k}x{dtype}>",
        f"tensor<{'x'.join(map(str, w.shape))}x{dtype}>",
    ]
    out = f"tensor<{lead}{rows or m}x{n}x{wide}>"
    b = len(batch)
    how = f"contract [{b + 1}] x [{b + 1 if turned else b}]"
    how = f"batch [0] x [0] {how}" if batch else how
    how += f" {{dtype = {wide}}}" if wide != dtype else ""
    text = f"""
    func.func @main(%x: {kinds[0]}) -> {out} {{
      %w = nd.constant #nd.resource<"w", ""> : {kinds[1]}
      %h = nd.dot_general %x, %w {how} : ({kinds[0]}, {kinds[1]}) -> {out}
      %r = nd.relu %h : {out}
      func.return %r : {out}
    }}"""
    return sw.compile(text, resources={"w": w})


def check(made: sw.Compiled, x: Any, w: Any, turned: bool, dtype: str, wide: str) -> None:
    sum = np.float64 if dtype[0] == "f" else np.int64
    right = w.swapaxes(-1, -2) if turned else w
    want = np.maximum(x.astype(sum) @ right.astype(sum), 0).astype(NAMES[wide])
    if dtype[0] != "f":
        np.testing.assert_array_equal(made(x), want)
        return
    close = CLOSE[dtype] * float(np.abs(want).max())
    np.testing.assert_allclose(made(x), want, rtol=0, atol=close)


@pytest.mark.parametrize(
    "m, n, k, batch, turned, dtype, wide",
    [
        (37, 131, 1031, 0, False, "f32", "f32"),
        (200, 64, 300, 0, True, "f32", "f32"),
        (97, 250, 113, 3, False, "f32", "f32"),
        (65, 101, 517, 2, True, "f64", "f64"),
        (67, 700, 1030, 0, False, "i8", "i32"),
        (66, 190, 257, 0, True, "f16", "f16"),
        (1031, 35, 600, 0, False, "f32", "f32"),
        (33, 2053, 40, 0, True, "i32", "i32"),
    ],
)
def test_weights(m: int, n: int, k: int, batch: int, turned: bool, dtype: str, wide: str) -> None:
    head = (batch,) if batch else ()
    x = numbers((*head, m, k), dtype)
    w = numbers((*head, n, k) if turned else (*head, k, n), dtype)
    made = program(x, w, turned, dtype, wide)
    assert "_pack" in made.text("kernels")
    check(made, x, w, turned, dtype, wide)
