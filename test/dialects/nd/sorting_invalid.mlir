// RUN: %stepwell-opt %s --verify-diagnostics --split-input-file

// Each case breaks one numbered constraint of an op of the family sorting.

// order_c1
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{axis must lie in 0..0, got 1}}
  %y = nd.sort %x {axis = 1} : tensor<4xf32>
  func.return
}

// -----

// order_c1
func.func @f(%x: tensor<f32>) {
  // expected-error@+1 {{axis}}
  %y = nd.argsort %x {axis = 0} : tensor<f32> -> tensor<i64>
  func.return
}

// -----

// argsort_c2
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{result must have elements i32 or i64, got i16}}
  %y = nd.argsort %x {axis = 0} : tensor<4xf32> -> tensor<4xi16>
  func.return
}

// -----

// order_statistics_c1
func.func @f(%x: tensor<4xf32>, %r: tensor<1xi64>) {
  // expected-error@+1 {{axis must lie in 0..0, got 1}}
  %y = nd.order_statistics %x, %r {axis = 1} : (tensor<4xf32>, tensor<1xi64>) -> tensor<1xf32>
  func.return
}

// -----

// order_statistics_c2
func.func @f(%x: tensor<4xf32>, %r: tensor<1xi32>) {
  // expected-error@+1 {{ranks must be i64, got i32}}
  %y = nd.order_statistics %x, %r {axis = 0} : (tensor<4xf32>, tensor<1xi32>) -> tensor<1xf32>
  func.return
}

// -----

// order_statistics_c3
func.func @f(%x: tensor<3x4xf32>, %r: tensor<2x1xi64>) {
  // expected-error@+1 {{ranks must have the sizes of x along all other axes}}
  %y = nd.order_statistics %x, %r {axis = 1} : (tensor<3x4xf32>, tensor<2x1xi64>) -> tensor<2x1xf32>
  func.return
}

// -----

// order_statistics_c4
func.func @f(%x: tensor<0xf32>, %r: tensor<1xi64>) {
  // expected-error@+1 {{axis 0 has no element, but some are asked for}}
  %y = nd.order_statistics %x, %r {axis = 0} : (tensor<0xf32>, tensor<1xi64>) -> tensor<1xf32>
  func.return
}
