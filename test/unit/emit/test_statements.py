"""Loops, branches, buffers and vectors in C, beside the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

TEXT = """
func.func private @swap_sum(%a: f32, %b: f32) -> (f32, f32) {
  %s = arith.addf %a, %b : f32
  func.return %b, %s : f32, f32
}

// Carried values that change places need a temporary.
func.func @fibonacci(%x: memref<2xf32>, %y: memref<10xf32> {kernel.role = "output"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %a0 = memref.load %x[%c0] : memref<2xf32>
  %b0 = memref.load %x[%c1] : memref<2xf32>
  %r:2 = scf.for %i = %c0 to %c10 step %c1 iter_args(%a = %a0, %b = %b0) -> (f32, f32) {
    memref.store %a, %y[%i] : memref<10xf32>
    %n:2 = func.call @swap_sum(%a, %b) : (f32, f32) -> (f32, f32)
    scf.yield %n#0, %n#1 : f32, f32
  }
  memref.store %r#0, %y[%c0] : memref<10xf32>
  func.return
}

func.func @rotate(%x: memref<3xi32>, %y: memref<3xi32> {kernel.role = "output"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c5 = arith.constant 5 : index
  %a0 = memref.load %x[%c0] : memref<3xi32>
  %b0 = memref.load %x[%c1] : memref<3xi32>
  %d0 = memref.load %x[%c2] : memref<3xi32>
  %r:3 = scf.for %i = %c0 to %c5 step %c1 iter_args(%a = %a0, %b = %b0, %d = %d0) -> (i32, i32, i32) {
    scf.yield %b, %d, %a : i32, i32, i32
  }
  memref.store %r#0, %y[%c0] : memref<3xi32>
  memref.store %r#1, %y[%c1] : memref<3xi32>
  memref.store %r#2, %y[%c2] : memref<3xi32>
  func.return
}

// Names that C has taken.
func.func @collatz(%int: memref<1xi64>, %return: memref<1xi64> {kernel.role = "output"}) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %two = arith.constant 2 : i64
  %three = arith.constant 3 : i64
  %start = memref.load %int[%c0] : memref<1xi64>
  %last:2 = scf.while (%n = %start, %steps = %zero) : (i64, i64) -> (i64, i64) {
    %go = arith.cmpi ne, %n, %one : i64
    scf.condition(%go) %n, %steps : i64, i64
  } do {
  ^bb0(%n: i64, %steps: i64):
    %odd = arith.remsi %n, %two : i64
    %is = arith.cmpi eq, %odd, %zero : i64
    %next = scf.if %is -> (i64) {
      %half = arith.divsi %n, %two : i64
      scf.yield %half : i64
    } else {
      %t = arith.muli %n, %three : i64
      %u = arith.addi %t, %one : i64
      scf.yield %u : i64
    }
    %more = arith.addi %steps, %one : i64
    scf.yield %next, %more : i64, i64
  }
  memref.store %last#1, %return[%c0] : memref<1xi64>
  func.return
}

memref.global "private" constant @table : memref<4xf32> = dense<[1.0, -2.0, 0x7FC00000, 4.5]>

kernel.func @row_sums(%x: memref<?x?xf32>, %b: memref<?xi1>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = memref.dim %x, %c0 : memref<?x?xf32>
  %m = memref.dim %x, %c1 : memref<?x?xf32>
  %zero = arith.constant 0.0 : f32
  %t = memref.get_global @table : memref<4xf32>
  %t1 = memref.load %t[%c1] : memref<4xf32>
  "scf.parallel"(%c1, %n, %c2) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%i: index):
    %scratch = memref.alloca() : memref<1xf32>
    %s = scf.for %j = %c0 to %m step %c1 iter_args(%acc = %zero) -> (f32) {
      %v = memref.load %x[%i, %j] : memref<?x?xf32>
      %p = arith.mulf %v, %t1 : f32
      %q = arith.addf %acc, %p : f32
      scf.yield %q : f32
    }
    memref.store %s, %scratch[%c0] : memref<1xf32>
    %k = memref.load %scratch[%c0] : memref<1xf32>
    %keep = memref.load %b[%i] : memref<?xi1>
    scf.if %keep {
      memref.store %k, %y[%i] : memref<?xf32>
    }
    "scf.reduce"() : () -> ()
  }) {kernel.grain = 7 : i64} : (index, index, index) -> ()
  kernel.return
}
func.func @sums(%x: memref<?x?xf32> {kernel.role = "input"}, %b: memref<?xi1> {kernel.role = "input"}, %y: memref<?xf32> {kernel.role = "output"}, %arena: memref<?xi8> {kernel.role = "arena"}) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %n = memref.dim %x, %c0 : memref<?x?xf32>
  %t = memref.view %arena[%c64][%n] : memref<?xi8> to memref<?xf32>
  memref.copy %y, %t : memref<?xf32> to memref<?xf32>
  kernel.launch @row_sums ins(%x, %b : memref<?x?xf32>, memref<?xi1>) outs(%t : memref<?xf32>)
  memref.copy %t, %y : memref<?xf32> to memref<?xf32>
  func.return
}
func.func @sums.shapes(%n: index, %m: index, %k: index) -> index {
  func.return %n : index
}
func.func @sums.arena(%n: index, %m: index, %k: index) -> index {
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %a = arith.muli %n, %c4 : index
  %s = arith.addi %a, %c64 : index
  func.return %s : index
}

// Views: a strided subview, merged and split axes, rank reduction.
func.func @views(%x: memref<6x8xi32> {kernel.role = "input"}, %y: memref<3x4xi32> {kernel.role = "output"}, %z: memref<4x12xi32> {kernel.role = "output"}, %w: memref<8xi32> {kernel.role = "output"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c12 = arith.constant 12 : index
  %s = memref.subview %x[1, %c2] [3, 4] [2, 1] : memref<6x8xi32> to memref<3x4xi32, strided<[16, 1], offset: ?>>
  memref.copy %s, %y : memref<3x4xi32, strided<[16, 1], offset: ?>> to memref<3x4xi32>
  %f = memref.collapse_shape %x [[0, 1]] : memref<6x8xi32> into memref<48xi32>
  %g = memref.expand_shape %f [[0, 1]] output_shape [4, 12] : memref<48xi32> into memref<4x12xi32>
  memref.copy %g, %z : memref<4x12xi32> to memref<4x12xi32>
  %r = memref.subview %x[4, 0] [1, 8] [1, 1] : memref<6x8xi32> to memref<8xi32, strided<[1], offset: 32>>
  memref.copy %r, %w : memref<8xi32, strided<[1], offset: 32>> to memref<8xi32>
  func.return
}

func.func @lanes(%x: memref<16xf32> {kernel.role = "input"}, %n: memref<1xi64> {kernel.role = "input"}, %b: memref<16xi1> {kernel.role = "input"}, %y: memref<8x16xf32> {kernel.role = "output"}, %s: memref<8xf32> {kernel.role = "output"}, %c: memref<16xi1> {kernel.role = "output"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c6 = arith.constant 6 : index
  %v = vector.load %x[%c0] : memref<16xf32>, vector<16xf32>
  %ki = memref.load %n[%c0] : memref<1xi64>
  %k = arith.index_cast %ki : i64 to index
  %m = vector.create_mask %k : vector<16xi1>
  %h = arith.constant dense<0.5> : vector<16xf32>
  %p = arith.constant dense<[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0]> : vector<16xf32>
  %a = vector.maskedload %x[%c0], %m, %h : memref<16xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
  vector.store %a, %y[%c0, %c0] : memref<8x16xf32>, vector<16xf32>
  vector.maskedstore %y[%c1, %c0], %m, %v : memref<8x16xf32>, vector<16xi1>, vector<16xf32>
  %f = vector.fma %v, %h, %p : vector<16xf32>
  vector.store %f, %y[%c2, %c0] : memref<8x16xf32>, vector<16xf32>
  %sh = vector.shuffle %v, %p [15, 14, 13, 12, 11, 10, 9, 8, 16, 17, 18, 19, 20, 21, 22, 31] : vector<16xf32>, vector<16xf32>
  vector.store %sh, %y[%c3, %c0] : memref<8x16xf32>, vector<16xf32>
  %e = vector.extract %v[3] : f32 from vector<16xf32>
  %br = vector.broadcast %e : f32 to vector<16xf32>
  %in = vector.insert %e, %p[7] : f32 into vector<16xf32>
  vector.store %in, %y[%c4, %c0] : memref<8x16xf32>, vector<16xf32>
  vector.store %br, %y[%c5, %c0] : memref<8x16xf32>, vector<16xf32>
  %bits = vector.bitcast %v : vector<16xf32> to vector<16xi32>
  %three = arith.constant dense<3> : vector<16xi32>
  %moved = arith.shrui %bits, %three : vector<16xi32>
  %back = vector.bitcast %moved : vector<16xi32> to vector<16xf32>
  vector.store %back, %y[%c6, %c0] : memref<8x16xf32>, vector<16xf32>
  %q = vector.load %b[%c0] : memref<16xi1>, vector<16xi1>
  %lt = arith.cmpf olt, %v, %h : vector<16xf32>
  %both = arith.andi %q, %lt : vector<16xi1>
  %any = arith.ori %both, %m : vector<16xi1>
  vector.store %any, %c[%c0] : memref<16xi1>, vector<16xi1>
  %sum = vector.reduction <add>, %v : vector<16xf32> into f32
  %max = vector.reduction <maximumf>, %v, %sum : vector<16xf32> into f32
  %min = vector.reduction <minimumf>, %v : vector<16xf32> into f32
  memref.store %sum, %s[%c0] : memref<8xf32>
  memref.store %max, %s[%c1] : memref<8xf32>
  memref.store %min, %s[%c2] : memref<8xf32>
  %or = vector.reduction <or>, %q : vector<16xi1> into i1
  %one = arith.uitofp %or : i1 to f32
  memref.store %one, %s[%c3] : memref<8xf32>
  %isum = vector.reduction <maxui>, %bits : vector<16xi32> into i32
  %fsum = arith.bitcast %isum : i32 to f32
  memref.store %fsum, %s[%c4] : memref<8xf32>
  func.return
}
"""


@pytest.fixture(scope="module")
def program(compiled: Any) -> Any:
    return compiled(TEXT)


def _same(program: Any, entry: str, arrays: list[Any], dims: tuple[int, ...] = ()) -> None:
    got = program.c(entry, arrays, dims)
    want = program.interpreted(entry, arrays)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_carried_values(program: Any) -> None:
    _same(program, "fibonacci", [np.array([1, 1], np.float32), np.zeros(10, np.float32)])
    _same(program, "rotate", [np.array([1, 2, 3], np.int32), np.zeros(3, np.int32)])


@pytest.mark.parametrize("start", [1, 6, 27])
def test_while_and_if(program: Any, start: int) -> None:
    _same(program, "collatz", [np.array([start], np.int64), np.zeros(1, np.int64)])


@pytest.mark.parametrize(("n", "m"), [(0, 3), (1, 4), (7, 0), (8, 5), (33, 2)])
def test_kernel_with_a_parallel_loop_and_an_arena(program: Any, n: int, m: int) -> None:
    random = np.random.default_rng(n)
    x = random.normal(size=(n, m)).astype(np.float32)
    keep = random.integers(0, 2, n).astype(np.bool_)
    y = np.full(n, 9, np.float32)
    got = program.c("sums", [x, keep, y], (n, m, n))[2]
    want = np.where(keep & (np.arange(n) % 2 == 1), -2 * x.sum(1), y)
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_views(program: Any) -> None:
    x = np.arange(48, dtype=np.int32).reshape(6, 8)
    empty = [np.zeros(s, np.int32) for s in ((3, 4), (4, 12), (8,))]
    _same(program, "views", [x, *empty])


@pytest.mark.parametrize("n", [-3, 0, 1, 7, 16, 99])
def test_lanes(program: Any, n: int) -> None:
    random = np.random.default_rng(5)
    x = random.normal(size=16).astype(np.float32)
    keep = random.integers(0, 2, 16).astype(np.bool_)
    outputs = [np.zeros((8, 16), np.float32), np.zeros(8, np.float32), np.zeros(16, np.bool_)]
    _same(program, "lanes", [x, np.array([n], np.int64), keep, *outputs])
