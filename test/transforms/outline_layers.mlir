// RUN: %stepwell-opt %s -p 'outline-layers{min_saved=4}' --split-input-file --verify-diagnostics | filecheck %s

// Two layers are calls of one function. A constant is copied into it, and so is a cheap mask.
func.func @layers(%x: tensor<64x64xf32>, %v: tensor<64x64xf32>, %w: tensor<64x64xf32>, %m: tensor<64xf32>) -> tensor<64x64xf32> {
  %one = nd.full 1.0 : tensor<64x64xf32>
  %n = nd.neg %m : tensor<64xf32>
  %b = nd.broadcast %n {dims = [1]} : tensor<64xf32> -> tensor<64x64xf32>
  %q = nd.dot_general %x, %v contract [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %s = nd.dot_general %q, %x contract [1] x [1] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %t = nd.add %s, %b : tensor<64x64xf32>
  %y = nd.mul %t, %one : tensor<64x64xf32>
  %q2 = nd.dot_general %y, %w contract [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %s2 = nd.dot_general %q2, %y contract [1] x [1] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %t2 = nd.add %s2, %b : tensor<64x64xf32>
  %y2 = nd.mul %t2, %one : tensor<64x64xf32>
  func.return %y2 : tensor<64x64xf32>
}
// CHECK:      func.func private @layers.layer(%x: tensor<64x64xf32>, %v: tensor<64x64xf32>, %m: tensor<64xf32>) -> tensor<64x64xf32> attributes {nd.layer_of = "layers"} {
// CHECK-NEXT:   %q = nd.dot_general %x, %v contract [1] x [0]
// CHECK-NEXT:   %s = nd.dot_general %q, %x contract [1] x [1]
// CHECK-NEXT:   %n = nd.neg %m : tensor<64xf32>
// CHECK-NEXT:   %b = nd.broadcast %n
// CHECK-NEXT:   %t = nd.add %s, %b : tensor<64x64xf32>
// CHECK-NEXT:   %one = nd.full 1.000000e+00
// CHECK-NEXT:   %y = nd.mul %t, %one : tensor<64x64xf32>
// CHECK-NEXT:   func.return %y : tensor<64x64xf32>
// CHECK-NEXT: }
// CHECK-NEXT: func.func @layers
// CHECK-NEXT:   %y = nd.call @layers.layer(%x, %v, %m)
// CHECK-NEXT:   %y2 = nd.call @layers.layer(%y, %w, %m)
// CHECK-NEXT:   func.return %y2 : tensor<64x64xf32>

// -----

// A sum of what crosses could move to its producer's kernel: nothing is outlined.
func.func @sum_across(%x: tensor<64x64xf32>, %v: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64xf32>) {
  %q = nd.dot_general %x, %v contract [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %s = nd.dot_general %q, %x contract [1] x [1] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %t = nd.exp %s : tensor<64x64xf32>
  %y = nd.tanh %t : tensor<64x64xf32>
  %q2 = nd.dot_general %y, %w contract [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %s2 = nd.dot_general %q2, %y contract [1] x [1] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %t2 = nd.exp %s2 : tensor<64x64xf32>
  %y2 = nd.tanh %t2 : tensor<64x64xf32>
  %z = nd.reduce_sum %y2 {axes = [1]} : tensor<64x64xf32> -> tensor<64xf32>
  func.return %y2, %z : tensor<64x64xf32>, tensor<64xf32>
}
// CHECK-NOT:  call
// CHECK:      func.func @sum_across

// -----

// Neither are products so small that they would share a kernel with what they read.
func.func @small(%x: tensor<8x8xf32>, %v: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %q = nd.dot_general %x, %v contract [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = nd.dot_general %q, %x contract [1] x [1] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t = nd.exp %s : tensor<8x8xf32>
  %y = nd.tanh %t : tensor<8x8xf32>
  %q2 = nd.dot_general %y, %w contract [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %s2 = nd.dot_general %q2, %y contract [1] x [1] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %t2 = nd.exp %s2 : tensor<8x8xf32>
  %y2 = nd.tanh %t2 : tensor<8x8xf32>
  func.return %y2 : tensor<8x8xf32>
}
// CHECK-NOT:  call
// CHECK:      func.func @small
// CHECK-NOT:  call
