// RUN: %stepwell-opt %s --split-input-file --verify-diagnostics

// derivative_c1
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{body must have arguments (tensor<4xf32>), got (tensor<f32>)}}
  %y, %d = "nd.vjp"(%x, %x) <{wrt = array<i64: 0>, of = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%v: tensor<f32>):
    nd.yield %v : tensor<f32>
  }) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  func.return
}

// -----

// derivative_c2
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{wrt must name some of 1 values, rising, got [1]}}
  %y, %d = nd.vjp (%v = %x) cotangents(%x : tensor<4xf32>) {wrt = [1], of = [0]} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    nd.yield %v : tensor<4xf32>
  }
  func.return
}

// -----

// derivative_c2
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{of names value 0, which is no float: tensor<4xi1>}}
  %y, %d = nd.jvp (%v = %x) tangents(%x : tensor<4xf32>) {wrt = [0], of = [0]} : (tensor<4xf32>) -> (tensor<4xi1>, tensor<4xi1>) {
    %c = nd.isnan %v : tensor<4xf32> -> tensor<4xi1>
    nd.yield %c : tensor<4xi1>
  }
  func.return
}

// -----

// vjp_c3
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{cotangents must be (tensor<4xf32>), got ()}}
  %y, %d = nd.vjp (%v = %x) {wrt = [0], of = [0]} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    nd.yield %v : tensor<4xf32>
  }
  func.return
}

// -----

// vjp_c4
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{results must be (tensor<4xf32>, tensor<4xf32>), got (tensor<4xf32>)}}
  %y = nd.vjp (%v = %x) cotangents(%x : tensor<4xf32>) {wrt = [0], of = [0]} : (tensor<4xf32>) -> (tensor<4xf32>) {
    nd.yield %v : tensor<4xf32>
  }
  func.return
}

// -----

// jvp_c3
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{tangents must be (tensor<4xf32>), got ()}}
  %y, %d = nd.jvp (%v = %x) {wrt = [0], of = [0]} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    nd.yield %v : tensor<4xf32>
  }
  func.return
}

// -----

// jvp_c4
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{results must be (tensor<4xf32>, tensor<4xf32>), got (tensor<4xf32>)}}
  %y = nd.jvp (%v = %x) tangents(%x : tensor<4xf32>) {wrt = [0], of = [0]} : (tensor<4xf32>) -> (tensor<4xf32>) {
    nd.yield %v : tensor<4xf32>
  }
  func.return
}

// -----

// vmap_c1
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{body must have arguments (tensor<f32>), got (tensor<4xf32>)}}
  %y = "nd.vmap"(%x) <{in_axes = array<i64: 0>, out_axes = array<i64: 0>, size = 4 : i64, operandSegmentSizes = array<i32: 1, 0>}> ({
  ^bb0(%v: tensor<4xf32>):
    nd.yield %v : tensor<4xf32>
  }) : (tensor<4xf32>) -> tensor<4x4xf32>
  func.return
}

// -----

// vmap_c2
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{axis 1 is none of tensor<4xf32>}}
  %y = "nd.vmap"(%x) <{in_axes = array<i64: 1>, out_axes = array<i64: 0>, size = 4 : i64, operandSegmentSizes = array<i32: 1, 0>}> ({
  ^bb0(%v: tensor<f32>):
    nd.yield %v : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

// vmap_c3
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{the batch has 5 elements, got tensor<4xf32>}}
  %y = nd.vmap (%v = %x) {in_axes = [0], out_axes = [0], size = 5} : (tensor<4xf32>) -> (tensor<5xf32>) {
    nd.yield %v : tensor<f32>
  }
  func.return
}

// -----

// vmap_c3
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{the size of the batch must be given once: size or count}}
  %y = nd.vmap (%v = %x) {in_axes = [0], out_axes = [0]} : (tensor<4xf32>) -> (tensor<4xf32>) {
    nd.yield %v : tensor<f32>
  }
  func.return
}

// -----

// vmap_c4
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{results must be (tensor<4xf32>), got (tensor<f32>)}}
  %y = nd.vmap (%v = %x) {in_axes = [0], out_axes = [0], size = 4} : (tensor<4xf32>) -> (tensor<f32>) {
    nd.yield %v : tensor<f32>
  }
  func.return
}
