// RUN: %stepwell-opt %s | %stepwell-opt | filecheck %s
// RUN: %stepwell-opt %s --print-op-generic | %stepwell-opt | filecheck %s

// Upstream ops that xDSL only knows in generic form read and print as in MLIR.

memref.global "private" constant @table : memref<2xf32> = dense<[1.000000e+00, 2.000000e+00]>
// CHECK: memref.global "private" constant @table : memref<2xf32> = dense<[1.000000e+00, 2.000000e+00]>

func.func @copies(%a: memref<4xf32>, %b: memref<?xf32>) {
  %c = memref.cast %a : memref<4xf32> to memref<?xf32>
  memref.copy %c, %b : memref<?xf32> to memref<?xf32>
  func.return
}
// CHECK-LABEL: func.func @copies
// CHECK-NEXT:    %c = memref.cast %a : memref<4xf32> to memref<?xf32>
// CHECK-NEXT:    memref.copy %c, %b : memref<?xf32> to memref<?xf32>

func.func @parallel(%n: index, %x: memref<?xf32>) -> f32 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %start = arith.constant 0.0 : f32
  scf.parallel (%i) = (%zero) to (%n) step (%one) {
    memref.store %start, %x[%i] : memref<?xf32>
    scf.reduce
  } {kernel.grain = 4 : i64}
  %sum = scf.parallel (%i, %j) = (%zero, %zero) to (%n, %n) step (%one, %one) init (%start) -> f32 {
    %e = memref.load %x[%i] : memref<?xf32>
    scf.reduce(%e : f32) {
    ^bb0(%l: f32, %r: f32):
      %s = arith.addf %l, %r : f32
      scf.reduce.return %s : f32
    }
  }
  func.return %sum : f32
}
// CHECK-LABEL: func.func @parallel
// CHECK:         scf.parallel (%i) = (%zero) to (%n) step (%one) {
// CHECK-NEXT:      memref.store %start, %x[%i] : memref<?xf32>
// CHECK-NEXT:      scf.reduce
// CHECK-NEXT:    } {kernel.grain = 4 : i64}
// CHECK-NEXT:    %sum = scf.parallel (%i_1, %j) = (%zero, %zero) to (%n, %n) step (%one, %one) init (%start) -> f32 {

func.func @several(%x: tensor<4xf32>, %a: tensor<4xf32>, %b: tensor<f32>) -> (tensor<4xf32>, tensor<f32>) {
  %y, %z = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%x : tensor<4xf32>) outs(%a, %b : tensor<4xf32>, tensor<f32>) attrs = {kernel.within = 4 : i64} {
  ^bb0(%p: f32, %q: f32, %r: f32):
    %s = arith.addf %p, %r : f32
    linalg.yield %s, %s : f32, f32
  } -> (tensor<4xf32>, tensor<f32>)
  func.return %y, %z : tensor<4xf32>, tensor<f32>
}
// CHECK-LABEL: func.func @several
// CHECK:         linalg.generic
// CHECK-SAME:    attrs = {kernel.within = 4 : i64}
// CHECK:         } -> (tensor<4xf32>, tensor<f32>)
