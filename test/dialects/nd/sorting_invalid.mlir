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
