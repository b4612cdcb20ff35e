"""Programs that look harmless and were compiled wrong once, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from op_rows.run import parsed

import stepwell as sw
import stepwell.numpy as snp
from stepwell.dialects.calling import call
from stepwell.dialects.interpreter import Interpreter

RANDOM = np.random.default_rng(29)
MACHINES = ["", "vector_bits=128", "threads=4,l1=4096,l2=16384,l3=65536"]


def array(*shape: int, dtype: str = "float32") -> Any:
    return RANDOM.integers(0 if dtype[0] == "u" else -4, 4, shape).astype(dtype)


TEXTS: dict[str, tuple[str, list[Any]]] = {
    "gathered by itself": (
        """
        func.func @main(%x: tensor<5xui8>, %w: tensor<5x3xui8>) -> tensor<3xui8> {
          %v = nd.matmul %x, %w : (tensor<5xui8>, tensor<5x3xui8>) -> tensor<3xui8>
          %y = nd.gather %v, indices(%v) {axes = [0]} : (tensor<3xui8>, tensor<3xui8>) -> tensor<3xui8>
          func.return %y : tensor<3xui8>
        }
        """,
        [array(5, dtype="uint8"), array(5, 3, dtype="uint8")],
    ),
    "columns of sums of unknown length": (
        """
        func.func @main(%x: tensor<?x3x4xf32>) -> tensor<4xf32> {
          %a = nd.reduce_sum %x {axes = [1]} : tensor<?x3x4xf32> -> tensor<?x4xf32>
          %y = nd.reduce_sum %a {axes = [0]} : tensor<?x4xf32> -> tensor<4xf32>
          func.return %y : tensor<4xf32>
        }
        """,
        [array(77, 3, 4)],
    ),
}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", TEXTS)
def test_text(name: str, machine: str) -> None:
    text, inputs = TEXTS[name]
    (want,) = call(Interpreter(parsed(text)), "main", inputs)
    np.testing.assert_array_equal(sw.compile(text, machine=machine)(*inputs), want)


SCALE = array(16, 1, 1)


def scaled(x: Any, w: Any) -> Any:
    """A table that is written out in full lies as the image beside it lies."""
    return sw.nn.conv(x, w, stride=2, groups=16) * SCALE


def spread(x: Any) -> Any:
    """Two loops of sums, the outer one in vectors."""
    flat = snp.permute_dims(x, (1, 0))
    return snp.sum((flat - snp.sum(flat)) * 2)


TRACED: dict[str, tuple[Callable[..., Any], list[Any], Any]] = {}


def _expect(function: Callable[..., Any], inputs: list[Any], want: Any) -> None:
    TRACED[function.__name__] = function, inputs, want


def _depthwise(x: Any, w: Any) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))[:, :, ::2, ::2]
    return np.einsum("nchwij,cij->nchw", windows, w[:, 0])


IMAGE, FILTERS = array(1, 16, 15, 15), array(16, 1, 3, 3)
_expect(scaled, [IMAGE, FILTERS], _depthwise(IMAGE, FILTERS) * SCALE)
ROWS = array(63, 31)
_expect(spread, [ROWS], ((ROWS - ROWS.sum()) * 2).sum())


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", TRACED)
def test_traced(name: str, machine: str) -> None:
    function, inputs, want = TRACED[name]
    got = sw.jit(function).trace(*inputs).compile(machine=machine)(*inputs)
    np.testing.assert_array_equal(np.asarray(got), want)
