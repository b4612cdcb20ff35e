// RUN: %stepwell-opt %s --verify-diagnostics --split-input-file

// Each case breaks one numbered constraint of an op of the family reduction.

// reduce_c1
func.func @f(%x: tensor<4x3xf32>) {
  // expected-error@+1 {{axes must rise and name no axis twice, got [1, 0]}}
  %y = nd.reduce_sum %x {axes = [1, 0]} : tensor<4x3xf32> -> tensor<f32>
  func.return
}

// -----

// reduce_c1
func.func @f(%x: tensor<4x3xf32>) {
  // expected-error@+1 {{axes must lie in 0..1, got [2]}}
  %y = nd.reduce_max %x {axes = [2]} : tensor<4x3xf32> -> tensor<f32>
  func.return
}

// -----

// reduce_c2
func.func @f(%x: tensor<4xi1>) {
  // expected-error@+1 {{sums and products of i1 are not defined; cast to integers first}}
  %y = nd.reduce_sum %x {axes = [0]} : tensor<4xi1> -> tensor<i1>
  func.return
}

// -----

// reduce_c2
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{'and' and 'or' combine integers and i1, got f32}}
  %y = nd.reduce_and %x {axes = [0]} : tensor<4xf32> -> tensor<f32>
  func.return
}

// -----

// arg_reduce_c1
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{axis must lie in 0..0, got 1}}
  %y = nd.argmax %x {axis = 1} : tensor<4xf32> -> tensor<i64>
  func.return
}

// -----

// arg_reduce_c1
func.func @f(%x: tensor<0x3xf32>) {
  // expected-error@+1 {{nothing to choose from along axis 0 of 0x3}}
  %y = nd.argmin %x {axis = 0} : tensor<0x3xf32> -> tensor<3xi64>
  func.return
}

// -----

// arg_reduce_c2
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{result must have elements i32 or i64, got i8}}
  %y = nd.argmax %x {axis = 0} : tensor<4xf32> -> tensor<i8>
  func.return
}

// -----

// cumulative_c1
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{axis must lie in 0..0, got 1}}
  %y = nd.cumulative_sum %x {axis = 1} : tensor<4xf32>
  func.return
}

// -----

// cumulative_c2
func.func @f(%x: tensor<4xi1>) {
  // expected-error@+1 {{sums and products of i1 are not defined; cast to integers first}}
  %y = nd.cumulative_prod %x {axis = 0} : tensor<4xi1>
  func.return
}

// -----

// window_c1
func.func @f(%x: tensor<4x3xf32>) {
  // expected-error@+1 {{window, strides, low, high and dilation must have 2 entries each}}
  %y = nd.window_sum %x {window = [2]} : tensor<4x3xf32> -> tensor<3x3xf32>
  func.return
}

// -----

// window_c2
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{window, strides and dilation must be positive}}
  %y = nd.window_max %x {window = [2], strides = [0]} : tensor<4xf32> -> tensor<3xf32>
  func.return
}

// -----

// window_c2
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{low and high must not be negative}}
  %y = nd.window_max %x {window = [2], low = [-1]} : tensor<4xf32> -> tensor<3xf32>
  func.return
}

// -----

// window_c3
func.func @f(%x: tensor<4xi1>) {
  // expected-error@+1 {{sums and products of i1 are not defined; cast to integers first}}
  %y = nd.window_sum %x {window = [2]} : tensor<4xi1> -> tensor<3xi1>
  func.return
}
