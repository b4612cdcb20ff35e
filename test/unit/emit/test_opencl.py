"""OpenCL C and the host schedule, run by PoCL."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.opencl

TEXT = """
func.func private @scaled(%v: vector<8xf32>, %k: f32) -> vector<8xf32> {
  %s = vector.broadcast %k : f32 to vector<8xf32>
  %r = arith.mulf %v, %s : vector<8xf32>
  func.return %r : vector<8xf32>
}
memref.global "private" constant @table : memref<4xf32> = dense<[1.0, -2.0, 3.0, 4.5]>

// Parallel, serial, parallel again, with scratch memory between them.
kernel.func @normalised(%x: memref<?x8xf32>, %y: memref<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %x, %c0 : memref<?x8xf32>
  %sums = memref.alloc() : memref<64xf32>
  %total = memref.alloc() : memref<1xf32>
  %t = memref.get_global @table : memref<4xf32>
  "scf.parallel"(%c0, %n, %c1) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%i: index):
    %v = vector.load %x[%i, %c0] : memref<?x8xf32>, vector<8xf32>
    %s = vector.reduction <add>, %v : vector<8xf32> into f32
    memref.store %s, %sums[%i] : memref<64xf32>
    "scf.reduce"() : () -> ()
  }) : (index, index, index) -> ()
  %all = scf.for %j = %c0 to %n step %c1 iter_args(%a = %zero) -> (f32) {
    %s = memref.load %sums[%j] : memref<64xf32>
    %b = arith.addf %a, %s : f32
    scf.yield %b : f32
  }
  memref.store %all, %total[%c0] : memref<1xf32>
  "scf.parallel"(%c0, %n, %c1) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%i: index):
    %v = vector.load %x[%i, %c0] : memref<?x8xf32>, vector<8xf32>
    %s = memref.load %total[%c0] : memref<1xf32>
    %k = memref.load %t[%c1] : memref<4xf32>
    %q = arith.divf %k, %s : f32
    %r = func.call @scaled(%v, %q) : (vector<8xf32>, f32) -> vector<8xf32>
    vector.store %r, %y[%i, %c0] : memref<?x8xf32>, vector<8xf32>
    "scf.reduce"() : () -> ()
  }) : (index, index, index) -> ()
  kernel.return
}
func.func @main(%x: memref<?x8xf32> {kernel.role = "input"}, %y: memref<?x8xf32> {kernel.role = "output"}) {
  kernel.launch @normalised ins(%x : memref<?x8xf32>) outs(%y : memref<?x8xf32>)
  func.return
}
func.func @main.shapes(%n: index) -> index {
  func.return %n : index
}

kernel.func @double(%x: memref<4xf32, strided<[2], offset: ?>>, %y: memref<4xf32>, %big: memref<1xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %limit = arith.constant 1000.0 : f32
  "scf.parallel"(%c0, %c4, %c1) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%i: index):
    %v = memref.load %x[%i] : memref<4xf32, strided<[2], offset: ?>>
    %s = arith.addf %v, %v : f32
    memref.store %s, %y[%i] : memref<4xf32>
    "scf.reduce"() : () -> ()
  }) : (index, index, index) -> ()
  %v = memref.load %y[%c3] : memref<4xf32>
  %more = arith.cmpf olt, %v, %limit : f32
  memref.store %more, %big[%c0] : memref<1xi1>
  kernel.return
}
// Doubles every second number until the last is large, counts the rounds, copies with strides.
func.func @grow(%x: memref<8xf32> {kernel.role = "input"}, %y: memref<8xf32> {kernel.role = "output"}, %rounds: memref<1xi64> {kernel.role = "output"}, %square: memref<2x2xf32> {kernel.role = "output"}, %arena: memref<128xi8> {kernel.role = "arena"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %two = arith.constant 2 : i64
  %t = memref.view %arena[%c0][] : memref<128xi8> to memref<4xf32>
  %big = memref.view %arena[%c64][] : memref<128xi8> to memref<1xi1>
  memref.copy %x, %y : memref<8xf32> to memref<8xf32>
  %odd = memref.subview %y[1] [4] [2] : memref<8xf32> to memref<4xf32, strided<[2], offset: 1>>
  %o = memref.cast %odd : memref<4xf32, strided<[2], offset: 1>> to memref<4xf32, strided<[2], offset: ?>>
  %n = scf.while (%k = %zero) : (i64) -> (i64) {
    kernel.launch @double ins(%o : memref<4xf32, strided<[2], offset: ?>>) outs(%t, %big : memref<4xf32>, memref<1xi1>)
    memref.copy %t, %odd : memref<4xf32> to memref<4xf32, strided<[2], offset: 1>>
    %go = memref.load %big[%c0] : memref<1xi1>
    scf.condition(%go) %k : i64
  } do {
  ^bb0(%k: i64):
    %m = arith.addi %k, %one : i64
    scf.yield %m : i64
  }
  %half = arith.remsi %n, %two : i64
  %even = arith.cmpi eq, %half, %zero : i64
  %r = scf.if %even -> (i64) {
    scf.yield %n : i64
  } else {
    %neg = arith.subi %zero, %n : i64
    scf.yield %neg : i64
  }
  memref.store %r, %rounds[%c0] : memref<1xi64>
  %e = memref.expand_shape %t [[0, 1]] output_shape [2, 2] : memref<4xf32> into memref<2x2xf32>
  scf.for %i = %c0 to %c2 step %c1 {
    %from = memref.subview %e[%i, 0] [1, 2] [1, 1] : memref<2x2xf32> to memref<2xf32, strided<[1], offset: ?>>
    %to = memref.subview %square[0, %i] [2, 1] [1, 1] : memref<2x2xf32> to memref<2xf32, strided<[2], offset: ?>>
    memref.copy %from, %to : memref<2xf32, strided<[1], offset: ?>> to memref<2xf32, strided<[2], offset: ?>>
  }
  func.return
}
"""


@pytest.mark.parametrize("n", [0, 1, 7, 64])
def test_parallel_and_serial_parts(on_device: Any, n: int) -> None:
    x = np.random.default_rng(n).uniform(0.5, 1, (n, 8)).astype(np.float32)
    _, got = on_device(TEXT, "main")([x, np.zeros_like(x)], (n,))
    np.testing.assert_allclose(got, -2 * x / x.sum() if n else x, rtol=1e-5)


def test_the_host_schedule(on_device: Any, compiled: Any) -> None:
    x = 2 * np.arange(1, 9, dtype=np.float32)
    arrays = [x, np.zeros(8, np.float32), np.zeros(1, np.int64), np.zeros((2, 2), np.float32)]
    got = on_device(TEXT, "grow")(arrays)
    want = compiled(TEXT).c("grow", arrays)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)
    assert got[2][0] == -5
