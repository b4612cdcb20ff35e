// RUN: %stepwell-opt %s -p sum-after-loops --check | filecheck %s

// Slices that the loop runs over need no stack; what else is multiplied is stacked.
// CHECK-LABEL: @product
// CHECK: %t, %[[G:.*]] = nd.scan (%h = %h0) over (%x = %xs) : (tensor<2x3xf32>, tensor<?x2x4xf32>) -> (tensor<2x3xf32>, tensor<?x2x3xf32>) {
// CHECK-NOT: dot_general
// CHECK: nd.yield %e, %h
// CHECK: %p = nd.dot_general %[[G]], %xs contract [0, 1] x [0, 1]
// CHECK-NEXT: %w = nd.add %w0, %p
func.func @product(%xs: tensor<?x2x4xf32>, %h0: tensor<2x3xf32>, %w0: tensor<3x4xf32>) -> (tensor<2x3xf32>, tensor<3x4xf32>) {
  %t, %w = nd.scan (%h = %h0, %s = %w0) over (%x = %xs) : (tensor<2x3xf32>, tensor<3x4xf32>, tensor<?x2x4xf32>) -> (tensor<2x3xf32>, tensor<3x4xf32>) {
    %e = nd.cos %h : tensor<2x3xf32>
    %p = nd.dot_general %h, %x contract [0] x [0] : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
    %n = nd.add %p, %s : tensor<3x4xf32>
    nd.yield %e, %n : tensor<2x3xf32>, tensor<3x4xf32>
  }
  func.return %t, %w : tensor<2x3xf32>, tensor<3x4xf32>
}

// Two sums, one of rows, run backwards; nothing is left to carry.
// CHECK-LABEL: @rows
// CHECK: nd.reduce_sum %xs {axes = [0, 1]}
// CHECK: nd.dot_general %xs, %xs batch [1] x [1] contract [0, 2] x [0, 2]
func.func @rows(%xs: tensor<5x2x4xf64>, %a0: tensor<4xf64>, %b0: tensor<2xf64>) -> (tensor<4xf64>, tensor<2xf64>) {
  %a, %b = nd.scan (%s = %a0, %r = %b0) over (%x = %xs) {reverse} : (tensor<4xf64>, tensor<2xf64>, tensor<5x2x4xf64>) -> (tensor<4xf64>, tensor<2xf64>) {
    %p = nd.reduce_sum %x {axes = [0]} : tensor<2x4xf64> -> tensor<4xf64>
    %n = nd.add %s, %p : tensor<4xf64>
    %q = nd.dot_general %x, %x batch [0] x [0] contract [1] x [1] : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2xf64>
    %m = nd.add %r, %q : tensor<2xf64>
    nd.yield %n, %m : tensor<4xf64>, tensor<2xf64>
  }
  func.return %a, %b : tensor<4xf64>, tensor<2xf64>
}

// A sum that is looked at on the way, one with an operand from outside, and one whose operands
// would take more memory than it: they stay.
// CHECK-LABEL: @stays
// CHECK: nd.scan
// CHECK-COUNT-3: nd.add
// CHECK: nd.yield
// CHECK-NOT: nd.add
func.func @stays(%xs: tensor<5x4xf32>, %m: tensor<4x4xf32>, %a0: tensor<4x4xf32>, %b0: tensor<4xf32>, %c0: tensor<f32>) -> (tensor<4x4xf32>, tensor<4xf32>, tensor<f32>, tensor<5x4x4xf32>) {
  %a, %b, %c, %ys = nd.scan (%s = %a0, %r = %b0, %q = %c0) over (%x = %xs) : (tensor<4x4xf32>, tensor<4xf32>, tensor<f32>, tensor<5x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>, tensor<f32>, tensor<5x4x4xf32>) {
    %o = nd.dot_general %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
    %n = nd.add %s, %o : tensor<4x4xf32>
    %v = nd.dot_general %m, %x contract [1] x [0] : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %w = nd.add %r, %v : tensor<4xf32>
    %e = nd.exp %x : tensor<4xf32>
    %d = nd.dot_general %e, %x contract [0] x [0] : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
    %t = nd.add %q, %d : tensor<f32>
    nd.yield %n, %w, %t, %n : tensor<4x4xf32>, tensor<4xf32>, tensor<f32>, tensor<4x4xf32>
  }
  func.return %a, %b, %c, %ys : tensor<4x4xf32>, tensor<4xf32>, tensor<f32>, tensor<5x4x4xf32>
}
