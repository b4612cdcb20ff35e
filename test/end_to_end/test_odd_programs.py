"""Programs that look harmless and were compiled wrong once, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stepwell as sw
import stepwell.numpy as snp
from stepwell.dialects.calling import call
from stepwell.dialects.interpreter import Interpreter
from stepwell.testing.op_rows.run import parsed

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
    "siblings that one after the other would join": (
        """
        func.func @main(%a: tensor<35xf16>, %b: tensor<35xf16>, %k: tensor<35xf16>) -> (tensor<35xf16>, tensor<7x5xf16>, tensor<35xf16>) {
          %p = nd.cast %a : tensor<35xf16> -> tensor<35xf32>
          %q = nd.cast %b : tensor<35xf16> -> tensor<35xf32>
          %m = nd.mul %p, %q : tensor<35xf32>
          %r = nd.cast %m : tensor<35xf32> -> tensor<35xf16>
          %y = nd.reshape %r : tensor<35xf16> -> tensor<7x5xf16>
          %c = nd.cast %r : tensor<35xf16> -> tensor<35xf32>
          %s = nd.reduce_max %c {axes = [0]} : tensor<35xf32> -> tensor<f32>
          %t = nd.broadcast %s {dims = []} : tensor<f32> -> tensor<35xf32>
          %u = nd.mul %c, %t : tensor<35xf32>
          %v = nd.cast %k : tensor<35xf16> -> tensor<35xf32>
          %w = nd.mul %u, %v : tensor<35xf32>
          %z = nd.cast %w : tensor<35xf32> -> tensor<35xf16>
          %d = nd.sub %r, %k : tensor<35xf16>
          func.return %d, %y, %z : tensor<35xf16>, tensor<7x5xf16>, tensor<35xf16>
        }
        """,
        [array(35, dtype="float16") for _ in range(3)],
    ),
    "results that one branch gives the same": (
        """
        func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
          %zero = nd.full 9.0 : tensor<4xf32>
          %all = nd.lt %x, %zero : tensor<4xf32> -> tensor<4xi1>
          %go = nd.reduce_and %all {axes = [0]} : tensor<4xi1> -> tensor<i1>
          %a, %b = nd.if %go -> tensor<4xf32>, tensor<4xf32> {
            nd.yield %x, %y : tensor<4xf32>, tensor<4xf32>
          } else {
            %t = nd.neg %y : tensor<4xf32>
            nd.yield %t, %t : tensor<4xf32>, tensor<4xf32>
          }
          func.return %a, %b : tensor<4xf32>, tensor<4xf32>
        }
        """,
        [array(4), array(4)],
    ),
    "carried, and handed to its neighbour": (
        """
        func.func @main(%xs: tensor<2x8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
          %t = nd.neg %y : tensor<8xf32>
          %a, %b = nd.scan (%c = %t, %d = %t) over (%x = %xs) : (tensor<8xf32>, tensor<8xf32>, tensor<2x8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
            nd.yield %x, %c : tensor<8xf32>, tensor<8xf32>
          }
          func.return %b : tensor<8xf32>
        }
        """,
        [array(2, 8), array(8)],
    ),
    "sums of what is filled": (
        """
        func.func @main(%x: tensor<?x5xf32>) -> tensor<f32> {
          %n = nd.dim %x {axis = 0} : tensor<?x5xf32>
          %y = nd.full 1.0, sizes(%n) : tensor<?x5xf32>
          %z = nd.reduce_sum %y {axes = [0, 1]} : tensor<?x5xf32> -> tensor<f32>
          func.return %z : tensor<f32>
        }
        """,
        [array(3, 5)],
    ),
    "carried twice out of a loop inside": (
        """
        func.func @main(%x: tensor<3x3xf32>, %y: tensor<3x3xf32>) -> tensor<3x3xf32> {
          %a, %b = nd.scan (%c = %x, %d = %y) {length = 3} : (tensor<3x3xf32>, tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xf32>) {
            %e = nd.scan (%f = %d) {length = 2} : (tensor<3x3xf32>) -> (tensor<3x3xf32>) {
              %r = nd.reverse %c {axes = [0]} : tensor<3x3xf32>
              nd.yield %r : tensor<3x3xf32>
            }
            nd.yield %e, %e : tensor<3x3xf32>, tensor<3x3xf32>
          }
          func.return %a : tensor<3x3xf32>
        }
        """,
        [array(3, 3), array(3, 3)],
    ),
    "written when a loop inside ended there": (
        """
        func.func @main(%x: tensor<9xf32>, %y: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>) {
          %d, %e, %h = nd.scan (%p = %x, %q = %y, %r = %y) {length = 3} : (tensor<9xf32>, tensor<9xf32>, tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>, tensor<9xf32>) {
            %s = nd.scan (%f = %p) {length = 2} : (tensor<9xf32>) -> tensor<9xf32> {
              %u = nd.reverse %f {axes = [0]} : tensor<9xf32>
              %v = nd.add %u, %f : tensor<9xf32>
              nd.yield %v : tensor<9xf32>
            }
            nd.yield %q, %q, %s : tensor<9xf32>, tensor<9xf32>, tensor<9xf32>
          }
          func.return %h, %e : tensor<9xf32>, tensor<9xf32>
        }
        """,
        [array(9), array(9)],
    ),
    "written when a loop inside may have ended there": (
        """
        func.func @main(%x: tensor<9xf32>, %y: tensor<9xf32>, %n: tensor<i32>) -> (tensor<9xf32>, tensor<9xf32>) {
          %d, %e, %h = nd.scan (%p = %x, %q = %y, %r = %y) {length = 3} : (tensor<9xf32>, tensor<9xf32>, tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>, tensor<9xf32>) {
            %zero = nd.full 0 : tensor<i32>
            %i, %s = nd.while (%k = %zero, %f = %p) : tensor<i32>, tensor<9xf32> {
              %go = nd.lt %k, %n : tensor<i32> -> tensor<i1>
              nd.condition %go
            } do (%l, %g) {
              %one = nd.full 1 : tensor<i32>
              %next = nd.add %l, %one : tensor<i32>
              %u = nd.reverse %g {axes = [0]} : tensor<9xf32>
              %v = nd.add %u, %g : tensor<9xf32>
              nd.yield %next, %v : tensor<i32>, tensor<9xf32>
            }
            nd.yield %q, %q, %s : tensor<9xf32>, tensor<9xf32>, tensor<9xf32>
          }
          func.return %h, %e : tensor<9xf32>, tensor<9xf32>
        }
        """,
        [array(9), array(9), np.asarray(2, "int32")],
    ),
}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", TEXTS)
def test_text(name: str, machine: str) -> None:
    text, inputs = TEXTS[name]
    wanted = call(Interpreter(parsed(text)), "main", inputs)
    got = sw.compile(text, machine=machine)(*inputs)
    for have, want in zip(got if isinstance(got, tuple) else (got,), wanted, strict=True):
        np.testing.assert_array_equal(have, want)


SCALE = array(16, 1, 1)


def scaled(x: Any, w: Any) -> Any:
    """A table that is written out in full lies as the image beside it lies."""
    return sw.nn.conv(x, w, stride=2, groups=16) * SCALE


def spread(x: Any) -> Any:
    """Two loops of sums, the outer one in vectors."""
    flat = snp.permute_dims(x, (1, 0))
    return snp.sum((flat - snp.sum(flat)) * 2)


def reshaped(x: Any, i: Any) -> Any:
    """What does not lie in order is copied, wherever the result lies."""
    taken = snp.reshape(sw.lax.dynamic_slice(x, (0, i), (5, 8)), 40)
    return snp.concat([taken[:1], taken])


def nothing(x: Any, w: Any) -> Any:
    """An image without columns, of which a kernel reads what nobody has written."""
    return snp.triu(sw.nn.conv(x, w, padding=((1, 0), (1, 0)), dilation=2) * 3, k=2)


def turned(x: Any, w: Any) -> Any:
    """Features last on both sides of an image that is read beyond its edges."""
    rows = sw.nn.conv(snp.moveaxis(x, -1, 1), w, padding=((6, 0), (0, 0)), groups=40)
    return snp.moveaxis(rows, 1, -1)


def paired(x: Any, y: Any) -> Any:
    """Operands whose indices are spelled alike."""
    return snp.einsum("ij,ij->ij", x, y) + snp.einsum("ij,ij->", x, y)


TRACED: dict[str, tuple[Callable[..., Any], list[Any], Any]] = {}


def _expect(function: Callable[..., Any], inputs: list[Any], want: Any) -> None:
    TRACED[function.__name__] = function, inputs, want


def _depthwise(x: Any, w: Any) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))[:, :, ::2, ::2]
    return np.einsum("nchwij,cij->nchw", windows, w[:, 0])


IMAGE, FILTERS = array(1, 16, 15, 15), array(16, 1, 3, 3)
_expect(scaled, [IMAGE, FILTERS], _depthwise(IMAGE, FILTERS) * SCALE)
_expect(nothing, [array(7, 3, 7, 1), array(2, 3, 2, 3)], np.zeros((7, 2, 6, 0), np.float32))
LINES, SQUARE = array(3, 31, 12, 40), array(120, 1, 7, 7)
PADDED = np.pad(LINES, [(0, 0), (6, 0), (0, 0), (0, 0)])
SLID = np.lib.stride_tricks.sliding_window_view(PADDED, (7, 7), (1, 2))
WIDE = np.einsum("nhwcij,cmij->nhwcm", SLID, SQUARE.reshape(40, 3, 7, 7), optimize=True)
_expect(turned, [LINES, SQUARE], WIDE.reshape(3, 31, 6, 120))
LEFT, RIGHT = array(3, 5), array(3, 5)
_expect(paired, [LEFT, RIGHT], LEFT * RIGHT + (LEFT * RIGHT).sum())
ROWS = array(63, 31)
_expect(spread, [ROWS], ((ROWS - ROWS.sum()) * 2).sum())
PART = ROWS[:5, 2:10].ravel()
_expect(reshaped, [ROWS, np.int32(2)], np.concatenate([PART[:1], PART]))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", TRACED)
def test_traced(name: str, machine: str) -> None:
    function, inputs, want = TRACED[name]
    got = sw.jit(function).trace(*inputs).compile(machine=machine)(*inputs)
    np.testing.assert_array_equal(np.asarray(got), want)
