"""Windows that slide along rows prefetch those of later images; the results stay what they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.diagnostics import CompileError
from stepwell.testing.machines import kernels_for

SLOW = "vector_bits=512,vector_registers=32,fma=1,l2=16K,l3=512K,l3_latency=400,threads=1"
QUICK = SLOW.replace("l3_latency=400", "l3_latency=20")


def _text(size: int, features: int, out: int, window: int, stride: int, pad: int) -> str:
    image = f"tensor<1x{features}x{size}x{size}xf32>"
    filters = f"tensor<{out}x{features}x{window}x{window}xf32>"
    to = (size + 2 * pad - window) // stride + 1
    result = f"tensor<1x{out}x{to}x{to}xf32>"
    return f"""
    func.func @main(%x: {image}, %w: {filters}) -> {result} {{
      %y = nd.convolution %x, %w
          {{strides = [{stride}, {stride}], low = [{pad}, {pad}], high = [{pad}, {pad}]}}
          : ({image}, {filters}) -> {result}
      func.return %y : {result}
    }}"""


def _reference(x: Any, w: Any, stride: int, pad: int) -> Any:
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
    return np.einsum("bcijrs,ocrs->boij", windows[:, :, ::stride, ::stride], w)


@pytest.mark.parametrize(
    "size, features, out, window, stride, pad",
    [(41, 19, 14, 3, 2, 1), (57, 24, 10, 3, 2, 0), (53, 21, 13, 3, 2, 1), (28, 40, 12, 3, 1, 1)],
)
def test_results(size: int, features: int, out: int, window: int, stride: int, pad: int) -> None:
    text = _text(size, features, out, window, stride, pad)
    random = np.random.default_rng(size)
    x = random.standard_normal((1, features, size, size)).astype(np.float32)
    w = random.standard_normal((out, features, window, window)).astype(np.float32)
    assert "{prefetch" in kernels_for(text, SLOW)
    want = _reference(x, w, stride, pad)
    for threads in (1, 2):
        machine = SLOW.replace("threads=1", f"threads={threads}")
        np.testing.assert_allclose(sw.compile(text, machine=machine)(x, w), want, atol=1e-3)


def test_latencies_that_instructions_hide() -> None:
    """Nothing is prefetched where a core computes on while it waits."""
    assert "{prefetch" not in kernels_for(_text(41, 19, 14, 3, 2, 1), QUICK)


def test_a_prefetch_without_effect_is_refused() -> None:
    """The loops along a row read what hardware prefetches."""
    text = str(kernels_for(_text(41, 19, 14, 3, 2, 1), SLOW))
    assert "for d4 {prefetch 2}, for d5, " in text
    moved = text.replace("for d4 {prefetch 2}, for d5, ", "for d4, for d5 {prefetch 2}, ")
    with pytest.raises(CompileError, match=r"the nearest are .*for d4 \{prefetch 2\}, for d5, "):
        sw.compile(moved)


def test_rows_that_are_read_once_are_not_prefetched() -> None:
    """Each row of the result reads rows of its own: no tile would prefetch them."""
    text = str(
        kernels_for(
            """
    func.func @main(%x: tensor<24x40x64xf32>) -> tensor<24x64xf32> {
      %y = nd.reduce_sum %x {axes = [1]} : tensor<24x40x64xf32> -> tensor<24x64xf32>
      func.return %y : tensor<24x64xf32>
    }""",
            SLOW,
        )
    )
    assert "for d2, " in text
    with pytest.raises(CompileError, match=r"no loops can be made so; the nearest are .*for d2, "):
        sw.compile(text.replace("for d2, ", "for d2 {prefetch 2}, "))
