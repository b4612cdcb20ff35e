// RUN: %stepwell-opt %s --split-input-file --verify-diagnostics

// collective_c1
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{no nd.vmap around it has the axis_name "b"}}
  %y = nd.all_sum %x {over = "b"} : tensor<4xf32>
  func.return
}

// -----

// all_sum_c2
func.func @f(%x: tensor<4xi1>) {
  %y = nd.vmap (%v = %x) {in_axes = [0], out_axes = [-1], size = 4, axis_name = "b"} : (tensor<4xi1>) -> tensor<i1> {
    // expected-error@+1 {{elements must be floating point or integer, got tensor<i1>}}
    %s = nd.all_sum %v {over = "b"} : tensor<i1>
    nd.yield %s : tensor<i1>
  }
  func.return
}

// -----

// all_gather_c2
func.func @f(%x: tensor<4xf32>) {
  %y = nd.vmap (%v = %x) {in_axes = [0], out_axes = [-1], size = 4, axis_name = "b"} : (tensor<4xf32>) -> tensor<f32> {
    // expected-error@+1 {{the result must have an axis for the examples}}
    %s = nd.all_gather %v {over = "b"} : tensor<f32>
    nd.yield %s : tensor<f32>
  }
  func.return
}

// -----

// reduce_scatter_c2
func.func @f(%x: tensor<4xf32>) {
  %y = nd.vmap (%v = %x) {in_axes = [0], out_axes = [0], size = 4, axis_name = "b"} : (tensor<4xf32>) -> tensor<4xf32> {
    // expected-error@+1 {{the operand must have an axis for the examples}}
    %s = nd.reduce_scatter %v {over = "b"} : tensor<f32>
    nd.yield %s : tensor<f32>
  }
  func.return
}

// -----

// reduce_scatter_c3
func.func @f(%x: tensor<4x4xi1>) {
  %y = nd.vmap (%v = %x) {in_axes = [0], out_axes = [0], size = 4, axis_name = "b"} : (tensor<4x4xi1>) -> tensor<4xi1> {
    // expected-error@+1 {{elements must be floating point or integer, got tensor<4xi1>}}
    %s = nd.reduce_scatter %v {over = "b"} : tensor<4xi1> -> tensor<i1>
    nd.yield %s : tensor<i1>
  }
  func.return
}
