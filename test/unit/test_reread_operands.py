"""Arguments that loops read in each iteration: copied before, wherever they begin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.testing.machines import kernels_for

RANDOM = np.random.default_rng(6)
NAMES = {"f64": "float64", "f32": "float32", "f16": "float16", "i32": "int32"}
CLOSE = {"f64": 1e-12, "f32": 1e-5, "f16": 2e-2}


def numbers(shape: tuple[int, ...], dtype: str) -> Any:
    """Return small numbers that begin where no line of a cache does."""
    kind = np.dtype(NAMES[dtype])
    room = np.empty(int(np.prod(shape)) * kind.itemsize + 128, np.uint8)
    start = -room.ctypes.data % 64 + kind.itemsize
    found = room[start : start + int(np.prod(shape)) * kind.itemsize].view(kind).reshape(shape)
    if dtype[0] == "f":
        found[...] = RANDOM.standard_normal(shape) / shape[-1] ** 0.5
    else:
        found[...] = RANDOM.integers(-2, 3, shape)
    return found


def loop(n: int, turned: bool, dtype: str, times: str) -> str:
    v, m = f"tensor<{n}x{dtype}>", f"tensor<{n}x{n}x{dtype}>"
    how = f"contract [0] x [{1 if turned else 0}]"
    return f"""
    func.func @main(%xs: tensor<{times}x{n}x{dtype}>, %w: {m}, %h: {v}) -> {v} {{
      %r = nd.scan (%c = %h) over (%x = %xs) : ({v}, tensor<{times}x{n}x{dtype}>) -> ({v}) {{
        %y = nd.dot_general %c, %w {how} : ({v}, {m}) -> {v}
        %s = nd.add %x, %y : {v}
        nd.yield %s : {v}
      }}
      func.return %r : {v}
    }}"""


@pytest.mark.parametrize(
    "n, turned, dtype, times, known",
    [
        (97, False, "f32", 17, True),
        (97, True, "f32", 17, True),
        (131, False, "f64", 19, False),
        (256, True, "f64", 16, True),
        (211, False, "f16", 3, False),
        (101, False, "i32", 16, True),
        (128, True, "i32", 0, False),
        (300, False, "f32", 1, False),
    ],
)
def test_steps(n: int, turned: bool, dtype: str, times: int, known: bool) -> None:
    text = loop(n, turned, dtype, str(times) if known else "?")
    made = sw.compile(text)
    assert "_reread" in kernels_for(text)
    xs, w, h = numbers((times, n), dtype), numbers((n, n), dtype), numbers((n,), dtype)
    if dtype == "i32":
        w //= 2
    sum = np.float64 if dtype[0] == "f" else np.int32
    want = h.astype(sum)
    for x in xs:
        with np.errstate(over="ignore"):
            want = x.astype(sum) + want @ (w.T if turned else w).astype(sum)
    got = made(xs, w, h)
    if dtype == "i32":
        np.testing.assert_array_equal(got, want)
    else:
        close = CLOSE[dtype] * max(float(np.abs(want).max()), 1)
        np.testing.assert_allclose(got, want, rtol=0, atol=close)


def test_weights_of_layers() -> None:
    """A slice of an argument is copied once for the loop inside, not for the one outside."""
    ws, x = numbers((3, 128, 128), "f32"), numbers((128,), "f32")

    def layer(h: Any, w: Any) -> Any:
        return sw.lax.fori_loop(0, 16, lambda _, c: sw.numpy.tanh(sw.numpy.matmul(c, w)), h), h

    made = sw.jit(lambda x, ws: sw.lax.scan(layer, x, ws)[0])
    want = x.astype(np.float64)
    for w in ws:
        for _ in range(16):
            want = np.tanh(want @ w)
    np.testing.assert_allclose(made(x, ws), want, rtol=0, atol=1e-5)
    assert "_reread" in kernels_for(made.trace(x, ws))


def test_arguments_that_are_carried() -> None:
    """What a loop changes is never copied before it."""
    w, x = numbers((128, 128), "f32"), numbers((128,), "f32")

    def step(_: Any, both: Any) -> Any:
        h, w = both
        return sw.numpy.matmul(h, w), w * 0.5

    made = sw.jit(lambda x, w: sw.lax.fori_loop(0, 20, step, (x, w)))
    want, scale = x.astype(np.float64), w.astype(np.float64)
    for _ in range(20):
        want, scale = want @ scale, scale * 0.5
    for got, wanted in zip(made(x, w), (want, scale), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-12)
