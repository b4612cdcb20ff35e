"""Weights packed into panels: any size, layout and type gives what NumPy gives."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nestings import has

import stepwell as sw
from stepwell.testing.machines import kernels_for

RANDOM = np.random.default_rng(5)
NAMES = {"f64": "float64", "f32": "float32", "f16": "float16", "i8": "int8", "i32": "int32"}
CLOSE = {"f64": 1e-13, "f32": 1e-5, "f16": 5e-3}


def numbers(shape: tuple[int, ...], dtype: str) -> Any:
    if dtype[0] == "f":
        return RANDOM.standard_normal(shape).astype(NAMES[dtype])
    return RANDOM.integers(-100, 100, shape).astype(NAMES[dtype])


def program(x: Any, w: Any, turned: bool, dtype: str, wide: str, rows: str = "") -> sw.Compiled:
    """Compile relu(x @ w), or of w turned over, w being a constant."""
    return sw.compile(module(x, w, turned, dtype, wide, rows), resources={"w": w})


def module(x: Any, w: Any, turned: bool, dtype: str, wide: str, rows: str = "") -> str:
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
    return f"""
    func.func @main(%x: {kinds[0]}) -> {out} {{
      %w = nd.constant #nd.resource<"w", ""> : {kinds[1]}
      %h = nd.dot_general %x, %w {how} : ({kinds[0]}, {kinds[1]}) -> {out}
      %r = nd.relu %h : {out}
      func.return %r : {out}
    }}"""


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
    scheduled = kernels_for(module(x, w, turned, dtype, wide))
    assert has(scheduled, "dots") if dtype == "i8" else "_pack" in scheduled
    check(made, x, w, turned, dtype, wide)


@pytest.mark.machine("avx2, 8 cores")
def test_windows_in_parts() -> None:
    """Filters whose features a block splits lie in parts, the last of which is shorter."""
    features, results, size = 147, 37, 7
    x, w = numbers((1, features, size, size), "f32"), numbers((results, features, 5, 5), "f32")

    def convolved(x: Any) -> Any:
        return sw.nn.conv(x, w, padding=2)

    found = sw.jit(convolved).trace(x).compile()
    assert re.search(r"\(d6 floordiv \d+\), d4, d5", found.text("kernels"))
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (2, 2), (2, 2)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (5, 5), (2, 3))
    want = np.einsum("bfijmn,ofmn->boij", windows, w)
    np.testing.assert_allclose(found(x), want, rtol=0, atol=1e-5 * float(np.abs(want).max()))


def test_places_are_not_packed_in_parts() -> None:
    """Only the packed operand of a gradient of filters tells how many places there are."""
    x, g = numbers((1, 64, 112, 112), "f32"), numbers((1, 16, 112, 112), "f32")
    w = np.zeros((16, 64, 3, 3), np.float32)
    found = sw.jit(sw.grad(lambda w: (sw.nn.conv(x, w, padding=1) * g).sum()))(w)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    for row, column in ((0, 0), (1, 2)):
        part = padded[0, :, row : row + 112, column : column + 112].reshape(64, -1)
        want = g.reshape(16, -1) @ part.T
        np.testing.assert_allclose(np.array(found)[:, :, row, column], want, rtol=0, atol=1e-2)


@pytest.mark.parametrize(
    "m, n, k, batch, dtype, rows",
    [
        (333, 331, 1031, 0, "f32", ""),
        (200, 197, 257, 3, "f64", ""),
        (211, 600, 1001, 0, "f32", ""),
        (307, 350, 1030, 0, "f32", "?"),
        (301, 517, 661, 0, "i32", ""),
    ],
)
def test_panels_that_come_slowly(m: int, n: int, k: int, batch: int, dtype: str, rows: str) -> None:
    """Tiles prefetch the panel that is read next: one line in two steps of any sum."""
    head = (batch,) if batch else ()
    x, w = numbers((*head, m, k), dtype), numbers((*head, k, n), dtype)
    text = module(x, w, False, dtype, dtype, rows)
    machines = [f"l2=1M,l3_rate=100,threads={threads}" for threads in (1, 2)]
    assert "{prefetch 2}" in kernels_for(text, machines[0])
    for machine in machines:
        check(sw.compile(text, resources={"w": w}, machine=machine), x, w, False, dtype, dtype)


@pytest.mark.parametrize(
    "m, n, k, turned, dtype, wide",
    [
        (1, 4099, 33, False, "f32", "f32"),
        (1, 130, 1031, True, "f32", "f32"),
        (2, 40, 777, False, "f64", "f64"),
        (7, 1000, 61, True, "f16", "f16"),
        (8, 31, 5003, False, "f32", "f32"),
        (13, 517, 129, False, "i8", "i32"),
        (16, 257, 1025, True, "f32", "f32"),
    ],
)
def test_few_rows(m: int, n: int, k: int, turned: bool, dtype: str, wide: str) -> None:
    x, w = numbers((m, k), dtype), numbers((n, k) if turned else (k, n), dtype)
    made = program(x, w, turned, dtype, wide)
    scheduled = kernels_for(module(x, w, turned, dtype, wide))
    assert has(scheduled, "dots") if dtype == "i8" else "_pack" in scheduled
    check(made, x, w, turned, dtype, wide)
    if m == 7:
        with_any = program(x, w, turned, dtype, wide, rows="?")
        check(with_any, x, w, turned, dtype, wide)


@pytest.mark.parametrize(
    "m, n, k, batch, turned, dtype, wide",
    [
        (37, 131, 1031, 0, False, "f32", "f32"),
        (29, 700, 1030, 0, True, "f32", "f32"),
        (19, 250, 1113, 3, False, "f64", "f64"),
        (67, 190, 2057, 0, True, "f16", "f16"),
    ],
)
def test_tiles_prefetch_panels(
    m: int, n: int, k: int, batch: int, turned: bool, dtype: str, wide: str
) -> None:
    """Panels beyond L2 are prefetched where the last cache is slow, with the same results."""
    head = (batch,) if batch else ()
    x = numbers((*head, m, k), dtype)
    w = numbers((*head, n, k) if turned else (*head, k, n), dtype)
    text = module(x, w, turned, dtype, wide)
    sizes = "l1=16K,l2=64K,l3=1M,l3_rate={}"
    assert not has(kernels_for(text, sizes.format("800000")), "prefetch")
    slow = sizes.format("8000")
    assert has(kernels_for(text, slow), "prefetch")
    check(sw.compile(text, resources={"w": w}, machine=slow), x, w, turned, dtype, wide)


def test_a_saved_program_holds_packed_weights(tmp_path: Path) -> None:
    x, w = numbers((40, 300), "f32"), numbers((300, 200), "f32")
    made = program(x, w, False, "f32", "f32")
    (constant,) = made.signature.constants
    assert constant.made == 0 and len(constant.shape) == 3
    made.save(tmp_path / "saved")
    size = (tmp_path / "saved" / "constants.bin").stat().st_size
    assert size == 4 * int(np.prod(constant.shape))
    loaded = sw.load(tmp_path / "saved")
    np.testing.assert_array_equal(loaded(x), made(x))
    check(loaded, x, w, False, "f32", "f32")


def test_weights_may_change_after_compiling() -> None:
    x, w = numbers((40, 300), "f32"), numbers((300, 200), "f32")
    made = program(x, w.copy(), False, "f32", "f32")
    kept = w.copy()
    again = program(x, w, False, "f32", "f32")
    w[:] = 0
    np.testing.assert_array_equal(again(x), made(x))
    check(again, x, kept, False, "f32", "f32")


def test_closures_are_weights() -> None:
    w, b = numbers((300, 200), "f32"), numbers((200,), "f32")
    x = numbers((33, 300), "f32")

    @sw.jit
    def layer(x: Any) -> Any:
        return x @ w + b

    np.testing.assert_allclose(layer(x), x @ w + b, atol=1e-3)


def test_a_weight_of_two_layouts_is_packed_for_each() -> None:
    w = numbers((300, 300), "f32")
    x = numbers((64, 300), "f32")

    @sw.jit
    def both(x: Any) -> Any:
        return (x @ w) @ w.T

    want = (x.astype(float) @ w) @ w.T
    np.testing.assert_allclose(both(x), want, atol=1e-5 * float(np.abs(want).max()))


def test_weights_are_laid_out_for_a_loop_once() -> None:
    w = numbers((128, 256), "f32")
    made = sw.compile(
        """
    func.func @main(%x: tensor<64x128xf32>, %w: tensor<128x256xf32>, %n: tensor<i32>) -> tensor<64x256xf32> {
      %zero = nd.constant dense<0> : tensor<i32>
      %h0 = nd.constant dense<0.0> : tensor<64x256xf32>
      %i, %r = nd.while (%i = %zero, %h = %h0) : tensor<i32>, tensor<64x256xf32> {
        %go = nd.lt %i, %n : tensor<i32> -> tensor<i1>
        nd.condition %go
      } do (%j, %a) {
        %one = nd.constant dense<1> : tensor<i32>
        %next = nd.add %j, %one : tensor<i32>
        %y = nd.matmul %x, %w : (tensor<64x128xf32>, tensor<128x256xf32>) -> tensor<64x256xf32>
        %s = nd.add %a, %y : tensor<64x256xf32>
        nd.yield %next, %s : tensor<i32>, tensor<64x256xf32>
      }
      func.return %r : tensor<64x256xf32>
    }"""
    )
    x = numbers((64, 128), "f32")
    for n in (0, 3):
        np.testing.assert_allclose(made(x, w, np.int32(n)), n * (x @ w), atol=1e-3)


def test_two_blocks_pack_one_panel_each_for_itself() -> None:
    """One panel has whole rows: the threads of two blocks pack it at the same time."""
    x, w = (f"tensor<{a}x{b}xf32>" for a, b in ((51, 11161), (11161, 47)))
    text = f"""func.func @main(%x: {x}, %w: {w}) -> tensor<51x47xf32> {{
      %y = nd.matmul %x, %w : ({x}, {w}) -> tensor<51x47xf32>
      func.return %y : tensor<51x47xf32>
    }}"""
    assert "@main_pack" not in kernels_for(text, "sapphire-rapids,threads=2")
