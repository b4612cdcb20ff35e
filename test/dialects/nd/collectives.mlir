// RUN: %stepwell-opt %s | %stepwell-opt | filecheck %s
// RUN: %stepwell-opt %s --print-op-generic | %stepwell-opt | filecheck %s
// RUN: %stepwell-opt %s -p expand-transformations | filecheck %s --check-prefix OUT

// CHECK: nd.vmap (%v = %x) {in_axes = [0], out_axes = [-1], size = 3, axis_name = "b"} : (tensor<3x4xf32>) -> tensor<4xf32> {
// CHECK: nd.all_sum %v {over = "b"} : tensor<4xf32>
// OUT-LABEL: @sums
// OUT-NEXT: %y = nd.reduce_sum %x {axes = [0]} : tensor<3x4xf32> -> tensor<4xf32>
func.func @sums(%x: tensor<3x4xf32>) -> tensor<4xf32> {
  %y = nd.vmap (%v = %x) {in_axes = [0], out_axes = [-1], size = 3, axis_name = "b"} : (tensor<3x4xf32>) -> tensor<4xf32> {
    %s = nd.all_sum %v {over = "b"} : tensor<4xf32>
    nd.yield %s : tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}

// The outer batch, seen from within another: rows of it behind the axis of the inner one.
// CHECK: nd.all_gather %{{.*}} {over = "b"} : tensor<f32> -> tensor<3xf32>
// OUT-LABEL: @rows
// OUT-NEXT: %{{.*}} = nd.transpose %x {permutation = [1, 0]} : tensor<3x4xf32> -> tensor<4x3xf32>
func.func @rows(%x: tensor<3x4xf32>) -> tensor<4x3xf32> {
  %y = nd.vmap (%v = %x) {in_axes = [0], out_axes = [-1], size = 3, axis_name = "b"} : (tensor<3x4xf32>) -> tensor<4x3xf32> {
    %z = nd.vmap (%u = %v) {in_axes = [0], out_axes = [0], size = 4} : (tensor<4xf32>) -> tensor<4x3xf32> {
      %g = nd.all_gather %u {over = "b"} : tensor<f32> -> tensor<3xf32>
      nd.yield %g : tensor<3xf32>
    }
    nd.yield %z : tensor<4x3xf32>
  }
  func.return %y : tensor<4x3xf32>
}

// The derivative of rows of all is a part of the sum, and back.
// OUT-LABEL: @derivative
// OUT-NEXT: %[[SUM:.*]] = nd.reduce_sum %g {axes = [0]} : tensor<3x3xf32> -> tensor<3xf32>
// OUT-NEXT: func.return %[[SUM]] : tensor<3xf32>
func.func @derivative(%x: tensor<3xf32>, %g: tensor<3x3xf32>) -> tensor<3xf32> {
  %y = nd.vmap (%v = %x, %c = %g) {in_axes = [0, 0], out_axes = [0], size = 3, axis_name = "b"} : (tensor<3xf32>, tensor<3x3xf32>) -> tensor<3xf32> {
    %r, %d = nd.vjp (%u = %v) cotangents(%c : tensor<3xf32>) {wrt = [0], of = [0]} : (tensor<f32>) -> (tensor<3xf32>, tensor<f32>) {
      %a = nd.all_gather %u {over = "b"} : tensor<f32> -> tensor<3xf32>
      nd.yield %a : tensor<3xf32>
    }
    nd.yield %d : tensor<f32>
  }
  func.return %y : tensor<3xf32>
}
