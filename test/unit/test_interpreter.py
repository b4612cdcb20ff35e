"""The interpreter on upstream ops, against NumPy."""

import numpy as np
import pytest
from reading import parsed

from stepwell.dialects import upstream
from stepwell.dialects.interpreter import Interpreter

assert upstream


def run(text: str, *arguments: object, entry: str = "f") -> tuple[object, ...]:
    _, module = parsed(text)
    return Interpreter(module).call(entry, arguments)


MATMUL = """
func.func @f(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %c: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %zero = arith.constant 0.0 : f32
  %i = linalg.fill ins(%zero : f32) outs(%c : tensor<?x?xf32>) -> tensor<?x?xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
                       affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%i : tensor<?x?xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %z, %p : f32
    linalg.yield %s : f32
  } -> tensor<?x?xf32>
  func.return %r : tensor<?x?xf32>
}
"""


@pytest.mark.parametrize("m, k, n", [(3, 4, 5), (1, 7, 1), (2, 0, 3), (0, 2, 2)])
def test_generic_contracts(m: int, k: int, n: int) -> None:
    random = np.random.default_rng(0)
    a, b = random.random((m, k), np.float32), random.random((k, n), np.float32)
    (r,) = run(MATMUL, a, b, np.full((m, n), np.nan, np.float32))
    np.testing.assert_allclose(r, a @ b, rtol=1e-6)  # pyright: ignore


def test_cumulative_generic_runs_in_order() -> None:
    text = """
    func.func @f(%x: tensor<5xi32>, %y: tensor<5xi32>, %a: tensor<i32>) -> (tensor<5xi32>, tensor<i32>) {
      %r, %s = linalg.generic {
          indexing_maps = [affine_map<(i) -> (-i + 4)>, affine_map<(i) -> (i)>, affine_map<(i) -> ()>],
          iterator_types = ["reduction"]} ins(%x : tensor<5xi32>)
          outs(%y, %a : tensor<5xi32>, tensor<i32>) {
      ^bb0(%p: i32, %q: i32, %z: i32):
        %s = arith.addi %z, %p : i32
        linalg.yield %s, %s : i32, i32
      } -> (tensor<5xi32>, tensor<i32>)
      func.return %r, %s : tensor<5xi32>, tensor<i32>
    }"""
    x = np.arange(5, dtype=np.int32)
    r, s = run(text, x, np.zeros(5, np.int32), np.zeros((), np.int32))
    np.testing.assert_array_equal(r, np.cumsum(x[::-1]))  # pyright: ignore
    assert s == 10


def test_buffers_loops_and_views() -> None:
    """y = 2 x through a view of an arena, with a vector loop and its scalar tail."""
    text = """
    func.func @f(%x: memref<7xf32>, %y: memref<7xf32>, %arena: memref<?xi8>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c7 = arith.constant 7 : index
      %c64 = arith.constant 64 : index
      %two = arith.constant 2.0 : f32
      %twos = vector.broadcast %two : f32 to vector<4xf32>
      %t = memref.view %arena[%c64][] : memref<?xi8> to memref<7xf32>
      scf.for %i = %c0 to %c4 step %c4 {
        %v = vector.load %x[%i] : memref<7xf32>, vector<4xf32>
        %w = arith.mulf %v, %twos : vector<4xf32>
        vector.store %w, %t[%i] : memref<7xf32>, vector<4xf32>
      }
      scf.parallel (%i) = (%c4) to (%c7) step (%c1) {
        %v = memref.load %x[%i] : memref<7xf32>
        %w = arith.mulf %v, %two : f32
        memref.store %w, %t[%i] : memref<7xf32>
        scf.reduce
      }
      memref.copy %t, %y : memref<7xf32> to memref<7xf32>
      func.return
    }"""
    x, y = np.arange(7, dtype=np.float32), np.zeros(7, np.float32)
    run(text, x, y, np.zeros(128, np.int8))
    np.testing.assert_array_equal(y, 2 * x)


def test_reading_outside_a_buffer_is_an_error() -> None:
    text = """
    func.func @f(%x: memref<3xf32>) -> vector<4xf32> {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0] : memref<3xf32>, vector<4xf32>
      func.return %v : vector<4xf32>
    }"""
    with pytest.raises(IndexError, match=r"has no places 0 and the 3 after it, its size is 3"):
        run(text, np.zeros(3, np.float32))


def test_bf16_is_rounded_after_each_op() -> None:
    text = """
    func.func @f(%x: bf16, %y: bf16) -> bf16 {
      %z = arith.addf %x, %y : bf16
      func.return %z : bf16
    }"""
    (z,) = run(text, np.float32(1), np.float32(2**-9))
    assert z == 1


def test_vectors_of_bf16_are_rounded_too() -> None:
    text = """
    func.func @f(%x: f32) -> f32 {
      %v = vector.broadcast %x : f32 to vector<4xf32>
      %half = arith.truncf %v : vector<4xf32> to vector<4xbf16>
      %whole = arith.extf %half : vector<4xbf16> to vector<4xf32>
      %y = vector.extract %whole[3] : f32 from vector<4xf32>
      func.return %y : f32
    }"""
    (y,) = run(text, np.float32(2 / 3))
    assert y == np.float32(0.66796875)


@pytest.mark.parametrize(
    "op, x, y, expected",
    [
        ("divsi", -7, 2, -3),
        ("remsi", -7, 2, -1),
        ("floordivsi", -7, 2, -4),
        ("ceildivsi", -7, 2, -3),
        ("divui", -7, 2, (2**32 - 7) // 2),
        ("shrui", -1, 31, 1),
        ("maxui", -1, 1, -1),
    ],
)
def test_integer_arithmetic(op: str, x: int, y: int, expected: int) -> None:
    text = f"""
    func.func @f(%x: i32, %y: i32) -> i32 {{
      %z = arith.{op} %x, %y : i32
      func.return %z : i32
    }}"""
    (z,) = run(text, np.int32(x), np.int32(y))
    assert z == expected


@pytest.mark.parametrize("predicate, expected", [("ult", True), ("slt", False), ("eq", False)])
def test_i1_compares_as_minus_one_when_signed(predicate: str, expected: bool) -> None:
    text = f"""
    func.func @f(%x: i1, %y: i1) -> i1 {{
      %z = arith.cmpi {predicate}, %x, %y : i1
      func.return %z : i1
    }}"""
    (z,) = run(text, np.bool_(False), np.bool_(True))
    assert z == expected


def test_a_cast_of_a_buffer_without_elements_has_any_strides() -> None:
    text = """
    func.func @main(%x: memref<?x2x8xi32>) -> memref<?x2x8xi32, strided<[16, 8, 1]>> {
      %y = "memref.cast"(%x) : (memref<?x2x8xi32>) -> memref<?x2x8xi32, strided<[16, 8, 1]>>
      func.return %y : memref<?x2x8xi32, strided<[16, 8, 1]>>
    }"""
    empty = np.lib.stride_tricks.as_strided(np.empty(0, np.int32), (0, 2, 8), (0, 0, 0))
    (found,) = Interpreter(parsed(text)[1]).call("main", [empty])
    assert found.shape == (0, 2, 8)
