"""A module of a lower floor is compiled from there: the same results, whatever is edited in it."""

from __future__ import annotations

import re
from hashlib import sha256

import numpy as np
import pytest
from op_rows import ROWS

import stepwell as sw
from stepwell.core.source import Source
from stepwell.core.targets import machine_for
from stepwell.dialects.parsing import parse_module
from stepwell.driver.lowering import stage_text
from stepwell.driver.registry import registry
from stepwell.transforms.graph.check_accesses import CheckAccesses

PRODUCT = """\
func.func @main(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %c: tensor<?xf32>) -> tensor<?x?xf32> {
  %0 = nd.matmul %a, %b : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %1 = nd.tanh %0 : tensor<?x?xf32>
  func.return %1 : tensor<?x?xf32>
}
"""
WEIGHTS = """\
func.func @main(%a: tensor<8x700xf32>) -> tensor<8x640xf32> {
  %w = nd.constant #nd.resource<"w", "HASH"> : tensor<700x640xf32>
  %0 = nd.matmul %a, %w : (tensor<8x700xf32>, tensor<700x640xf32>) -> tensor<8x640xf32>
  func.return %0 : tensor<8x640xf32>
}
"""
BYTES = """\
func.func @main(%a: tensor<?xui8>) -> tensor<?xf32> {
  %0 = nd.cast %a : tensor<?xui8> -> tensor<?xf32>
  func.return %0 : tensor<?xf32>
}
"""
FLOORS = ("structured", "kernels")
RANDOM = np.random.default_rng(5)
ORDERING = ("nd.sort", "nd.argsort", "nd.order_statistics")
"""Where they write is right by what they counted, which nothing proves: their text on lower floors
is refused (note 054)."""


def at(text: str, stage: str) -> str:
    return stage_text(Source(text, "text", "main", machine_for("c")), stage)


@pytest.mark.parametrize("floor", FLOORS)
def test_sizes_are_checked_from_every_floor(floor: str) -> None:
    a = RANDOM.standard_normal((37, 29)).astype(np.float32)
    b = RANDOM.standard_normal((29, 45)).astype(np.float32)
    c = np.zeros(3, np.float32)
    lower = sw.compile(at(PRODUCT, floor))
    np.testing.assert_array_equal(lower(a, b, c), sw.compile(PRODUCT)(a, b, c))
    with pytest.raises(ValueError, match="do not fit together"):
        lower(a, b[:7], c)


@pytest.mark.parametrize("floor", FLOORS)
def test_weights_and_dtypes_go_on_from_every_floor(floor: str) -> None:
    w = RANDOM.standard_normal((700, 640)).astype(np.float32)
    a = RANDOM.standard_normal((8, 700)).astype(np.float32)
    text = WEIGHTS.replace("HASH", sha256(w.tobytes()).hexdigest())
    want = sw.compile(text, resources={"w": w})(a)
    np.testing.assert_array_equal(sw.compile(at(text, floor), resources={"w": w})(a), want)
    x = np.arange(250, 256, dtype=np.uint8)
    np.testing.assert_array_equal(sw.compile(at(BYTES, floor))(x), x.astype(np.float32))


def test_kernels_are_left_as_they_are() -> None:
    kernels = at(PRODUCT, "kernels")
    assert at(kernels, "kernels") == kernels


def test_an_edited_tile_holds() -> None:
    kernels = at(PRODUCT, "kernels")
    found = re.search(r"#kernel\.schedule<.*?\]>", kernels)
    assert found is not None
    by_hand = (
        "#kernel.schedule<[for d0 by 2, for d1 by 8], op 0 [for d2, unroll d0, vector d1 by 8]"
    )
    by_hand += ", op 1 [unroll d0, vector d1 by 8]>"
    edited = kernels.replace(found.group(), by_hand, 1)
    assert by_hand != found.group() and by_hand in at(edited, "kernels")
    a = RANDOM.standard_normal((37, 29)).astype(np.float32)
    b = RANDOM.standard_normal((29, 45)).astype(np.float32)
    c = np.zeros(3, np.float32)
    compiled = sw.compile(edited)
    np.testing.assert_allclose(compiled(a, b, c), np.tanh(a @ b), rtol=1e-5, atol=1e-5)


LOOPS = """\
func.func @main(%x: memref<4xf32> {kernel.role = "input"}, %y: memref<4xf32> {kernel.role = "output"}) {
  %i = arith.constant PLACE : index
  %f = arith.constant 1.0 : f32
  memref.store %f, %y[%i] : memref<4xf32>
  func.return
}
"""


@pytest.mark.parametrize("place", [-1, 4, 100000000])
def test_buffers_have_no_place_beyond_their_ends(place: int) -> None:
    with pytest.raises(sw.CompileError, match=f"axis 0 of memref<4xf32> has no place {place}"):
        sw.compile(LOOPS.replace("PLACE", str(place)))


def test_a_module_of_two_floors_is_refused() -> None:
    mixed = at(BYTES, "kernels").replace(
        "    func.return", "    %z = nd.constant dense<1.0> : tensor<2xf32>\n    func.return"
    )
    with pytest.raises(sw.CompileError, match=r"stands beside nd\.constant"):
        sw.compile(mixed)


SHIFTED = """\
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %z = linalg.generic {indexing_maps = [affine_map<(i) -> (i * 2 + 1)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%y : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<?xf32>
  %s = tensor.extract_slice %x[2] [3] [1] : tensor<?xf32> to tensor<3xf32>
  %t = tensor.insert_slice %s into %z[0] [3] [1] : tensor<3xf32> into tensor<?xf32>
  func.return %t : tensor<?xf32>
}
"""


def test_what_structured_text_reads_is_there() -> None:
    program = sw.compile(SHIFTED, name="shifted.mlir")
    x = np.arange(9, dtype=np.float32)
    np.testing.assert_array_equal(program(x, x[:4]), [2, 3, 4, 7])
    with pytest.raises(
        ValueError, match=r"shifted\.mlir:2:3: linalg\.generic: axis 0 of %x has size 9"
    ):
        program(x, x)
    with pytest.raises(ValueError, match=r"shifted\.mlir:7:3: tensor\.extract_slice: .* to 4"):
        program(x[:4], x[:2])
    with pytest.raises(ValueError, match=r"shifted\.mlir:8:3: tensor\.insert_slice: .* to 2"):
        program(x[:5], x[:2])


@pytest.mark.parametrize("floor", FLOORS)
def test_rows_of_ops_are_proved_on_lower_floors(floor: str) -> None:
    """What `nd` becomes is seen to lie within its tensors, without an error."""
    known = registry()
    programs = [row for row in ROWS if "index" not in (*row.arguments.values(), row.results)]
    programs = [row for row in programs if row.op not in ORDERING]
    for row in programs[::7]:
        module = parse_module(known.context(), at(row.module(row.dtypes[0]), floor), "row")
        CheckAccesses().apply(known.context(), module)
