// RUN: %stepwell-opt %s -p canonicalize | filecheck %s

// A product with one is what was multiplied, and what fed only that is gone.
func.func @mul_one(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %n = nd.dim %x {axis = 0} : tensor<?x4xf32>
  %one = nd.full 1.0, sizes(%n) : tensor<?x4xf32>
  %y = nd.mul %x, %one : tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}
// CHECK-LABEL: @mul_one(
//  CHECK-NEXT:   func.return %x

// x + 0.0 changes -0.0 and stays; x + -0.0 and x - 0.0 change nothing.
func.func @add_zero(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %zero = nd.full 0.0 : tensor<4xf32>
  %minus = nd.full -0.0 : tensor<4xf32>
  %a = nd.add %x, %zero : tensor<4xf32>
  %b = nd.add %x, %minus : tensor<4xf32>
  %c = nd.sub %x, %zero : tensor<4xf32>
  func.return %a, %b, %c : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: @add_zero(
//       CHECK:   %zero = nd.full 0.000000e+00
//  CHECK-NEXT:   %a = nd.add %x, %zero
//  CHECK-NEXT:   func.return %a, %x, %x

// Dividing by a power of two is exact as a product, by anything else it is not.
func.func @divide(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %four = nd.full 4.0 : tensor<4xf32>
  %three = nd.full 3.0 : tensor<4xf32>
  %a = nd.div %x, %four : tensor<4xf32>
  %b = nd.div %x, %three : tensor<4xf32>
  func.return %a, %b : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: @divide(
//       CHECK:   %[[QUARTER:.*]] = nd.full 2.500000e-01
//       CHECK:   %a = nd.mul %x, %[[QUARTER]]
//       CHECK:   %b = nd.div %x, %three

// Ops of constants are constants; one value throughout is a full.
func.func @fold() -> (tensor<3xi32>, tensor<2x2xf32>, index) {
  %a = nd.constant dense<[1, 2, 3]> : tensor<3xi32>
  %s = nd.square %a : tensor<3xi32>
  %b = nd.constant dense<2.0> : tensor<2x2xf32>
  %c = nd.sqrt %b : tensor<2x2xf32>
  %n = nd.dim %a {axis = 0} : tensor<3xi32>
  %m = arith.muli %n, %n : index
  func.return %s, %c, %m : tensor<3xi32>, tensor<2x2xf32>, index
}
// CHECK-LABEL: @fold(
//   CHECK-DAG:   %s = nd.constant dense<[1, 4, 9]> : tensor<3xi32>
//   CHECK-DAG:   %c = nd.full 1.41421354 : tensor<2x2xf32>
//   CHECK-DAG:   %m = arith.constant 9 : index
//       CHECK:   func.return %s, %c, %m

// On the structured floor sizes lead back to where they come from.
func.func @sizes(%x: tensor<?x4xf32>) -> (index, index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = tensor.dim %x, %zero : tensor<?x4xf32>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %v = arith.constant 1.0 : f32
  %f = linalg.fill ins(%v : f32) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  %m = tensor.dim %f, %zero : tensor<?x4xf32>
  %four = tensor.dim %f, %one : tensor<?x4xf32>
  func.return %m, %four : index, index
}
// CHECK-LABEL: @sizes(
//       CHECK:   %[[N:.*]] = tensor.dim %x
//       CHECK:   %four = arith.constant 4 : index
//       CHECK:   func.return %[[N]], %four

// Scalars in bodies and on the host fold where upstream defines the result, divisions by 0 do not.
func.func @scalars(%i: index, %x: f32) -> (index, f32, i32) {
  %zero = arith.constant 0 : index
  %a = arith.addi %i, %zero : index
  %one = arith.constant 1.0 : f32
  %b = arith.mulf %x, %one : f32
  %c0 = arith.constant 0 : i32
  %c7 = arith.constant 7 : i32
  %c = arith.divsi %c7, %c0 : i32
  func.return %a, %b, %c : index, f32, i32
}
// CHECK-LABEL: @scalars(
//       CHECK:   %c = arith.divsi
//  CHECK-NEXT:   func.return %i, %x, %c

// What stands for two ops has the locations of both.
func.func @locations(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = nd.neg %x : tensor<4xf32> loc("a.py":1:1)
  %b = nd.neg %a : tensor<4xf32> loc("a.py":2:1)
  %c = nd.exp %b : tensor<4xf32> loc("a.py":3:1)
  func.return %c : tensor<4xf32>
}
// CHECK-LABEL: @locations(
//  CHECK-NEXT:   %c = nd.exp %x
