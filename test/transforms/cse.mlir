// RUN: %stepwell-opt %s -p cse | filecheck %s
// RUN: %stepwell-opt %s -p cse --print-debuginfo | filecheck %s --check-prefix=LOC
// RUN: %stepwell-opt %s -p dce | filecheck %s --check-prefix=DCE

// Equal ops are one, in either order of operands where that does not matter.
func.func @equal(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %a = nd.add %x, %y : tensor<4xf32> loc("a.py":1:1)
  %b = nd.add %y, %x : tensor<4xf32> loc("a.py":2:1)
  %c = nd.sub %a, %b : tensor<4xf32>
  func.return %c : tensor<4xf32>
}
// CHECK-LABEL: @equal(
//  CHECK-NEXT:   %a = nd.add %x, %y
//  CHECK-NEXT:   %c = nd.sub %a, %a
//   LOC-LABEL: @equal(
//         LOC:   %a = nd.add %x, %y : tensor<4xf32> loc(fused["a.py":1:1, "a.py":2:1])

// The order of a difference matters, and so does an attribute.
func.func @different(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> (tensor<4x4xf32>, index, index) {
  %a = nd.sub %x, %y : tensor<4x4xf32>
  %b = nd.sub %y, %x : tensor<4x4xf32>
  %c = nd.mul %a, %b : tensor<4x4xf32>
  %m = nd.dim %x {axis = 0} : tensor<4x4xf32>
  %n = nd.dim %x {axis = 1} : tensor<4x4xf32>
  func.return %c, %m, %n : tensor<4x4xf32>, index, index
}
// CHECK-LABEL: @different(
//       CHECK:   %a = nd.sub %x, %y
//       CHECK:   %b = nd.sub %y, %x
//       CHECK:   %m = nd.dim
//       CHECK:   %n = nd.dim

// An op inside a region may be one from before it, not one of another region.
func.func @regions(%c: i1, %i: index) -> index {
  %a = arith.addi %i, %i : index
  %y = scf.if %c -> (index) {
    %b = arith.addi %i, %i : index
    %d = arith.muli %i, %b : index
    scf.yield %d : index
  } else {
    %e = arith.muli %i, %a : index
    scf.yield %e : index
  }
  func.return %y : index
}
// CHECK-LABEL: @regions(
//       CHECK:   %a = arith.addi
//   CHECK-NOT:   arith.addi
//       CHECK:   %d = arith.muli %i, %a
//       CHECK:   %e = arith.muli %i, %a

// Fresh tensors stay apart; computations into equal fresh tensors are one.
func.func @generics(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  %a = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%s: f32, %t: f32):
    %u = arith.negf %s : f32
    linalg.yield %u : f32
  } -> tensor<4xf32>
  %f = tensor.empty() : tensor<4xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%f : tensor<4xf32>) {
  ^bb0(%s: f32, %t: f32):
    %u = arith.negf %s : f32
    linalg.yield %u : f32
  } -> tensor<4xf32>
  func.return %a, %b : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: @generics(
//       CHECK:   tensor.empty
//       CHECK:   %a = linalg.generic
//       CHECK:   tensor.empty
//   CHECK-NOT:   linalg.generic
//       CHECK:   func.return %a, %a

// Reads of memory are not merged, nor dropped where they are used; writes stay.
func.func @memory(%m: memref<4xf32>, %i: index) -> f32 {
  %a = memref.load %m[%i] : memref<4xf32>
  memref.store %a, %m[%i] : memref<4xf32>
  %b = memref.load %m[%i] : memref<4xf32>
  %unused = memref.load %m[%i] : memref<4xf32>
  %n = arith.negf %unused : f32
  func.return %b : f32
}
// CHECK-LABEL: @memory(
//       CHECK:   %a = memref.load
//       CHECK:   memref.store
//       CHECK:   %b = memref.load
//   DCE-LABEL: @memory(
//         DCE:   %a = memref.load
//         DCE:   memref.store
//         DCE:   %b = memref.load
//    DCE-NEXT:   func.return %b
