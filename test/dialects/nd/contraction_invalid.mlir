// RUN: %stepwell-opt %s --split-input-file --verify-diagnostics

// contraction_c1
func.func @types(%x: tensor<3xf32>, %w: tensor<3xf64>) {
  // expected-error@+1 {{operands must be numbers of one type, got f32 and f64}}
  %y = nd.matmul %x, %w : (tensor<3xf32>, tensor<3xf64>) -> tensor<f32>
  func.return
}

// -----

// contraction_c1
func.func @truth(%x: tensor<3xi1>) {
  // expected-error@+1 {{operands must be numbers of one type, got i1 and i1}}
  %y = nd.matmul %x, %x : (tensor<3xi1>, tensor<3xi1>) -> tensor<i1>
  func.return
}

// -----

// contraction_c2
func.func @narrower(%x: tensor<3xi32>) {
  // expected-error@+1 {{dtype must be signed, at least as wide as i32, got i8}}
  %y = nd.matmul %x, %x {dtype = i8} : (tensor<3xi32>, tensor<3xi32>) -> tensor<i8>
  func.return
}

// -----

// contraction_c2
func.func @kind(%x: tensor<3xi32>) {
  // expected-error@+1 {{dtype must be signed, at least as wide as i32, got f32}}
  %y = nd.matmul %x, %x {dtype = f32} : (tensor<3xi32>, tensor<3xi32>) -> tensor<f32>
  func.return
}

// -----

// contraction_c2
func.func @no_dtype(%x: tensor<3xi32>) {
  // expected-error@+1 {{index is no element type of nd}}
  %y = nd.matmul %x, %x {dtype = index} : (tensor<3xi32>, tensor<3xi32>) -> tensor<index>
  func.return
}

// -----

// dot_general_c3
func.func @twice(%x: tensor<3x3xf32>) {
  // expected-error@+1 {{batch and contract must name axes of the left operand once each, from 0 to 1, got [0, 0]}}
  %y = nd.dot_general %x, %x batch [0] x [0] contract [0] x [1] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3xf32>
  func.return
}

// -----

// dot_general_c3
func.func @no_axis(%x: tensor<3x3xf32>) {
  // expected-error@+1 {{batch and contract must name axes of the right operand once each, from 0 to 1, got [2]}}
  %y = nd.dot_general %x, %x contract [1] x [2] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  func.return
}

// -----

// dot_general_c3
func.func @pairs(%x: tensor<3x3xf32>) {
  // expected-error@+1 {{contract must pair axes, got 2 of the left and 1 of the right}}
  %y = nd.dot_general %x, %x contract [0, 1] x [1] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3xf32>
  func.return
}

// -----

// dot_general_c3
func.func @sizes(%x: tensor<3x4xf32>) {
  // expected-error@+1 {{contract axes 1 and 0 must have one size, got 4 and 3}}
  %y = nd.dot_general %x, %x contract [1] x [0] : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  func.return
}

// -----

func.func @result(%x: tensor<3x4xf32>, %w: tensor<4x5xf32>) {
  // expected-error@+1 {{result must be tensor<3x5xf32>, got tensor<5x3xf32>}}
  %y = nd.dot_general %x, %w contract [1] x [0] : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<5x3xf32>
  func.return
}

// -----

// matmul_c3
func.func @inner(%x: tensor<64x784xf32>, %w: tensor<256x784xf32>) {
  // expected-error@+1 {{inner sizes must match: 64x784 by 256x784 has 784 against 256}}
  %y = nd.matmul %x, %w : (tensor<64x784xf32>, tensor<256x784xf32>) -> tensor<64x784xf32>
  func.return
}

// -----

// matmul_c3
func.func @batch(%x: tensor<2x3x4xf32>, %w: tensor<1x4x5xf32>) {
  // expected-error@+1 {{batch axes must agree, got 2x3x4 by 1x4x5; broadcast one of them first}}
  %y = nd.matmul %x, %w : (tensor<2x3x4xf32>, tensor<1x4x5xf32>) -> tensor<2x3x5xf32>
  func.return
}

// -----

// matmul_c3
func.func @scalar(%x: tensor<f32>) {
  // expected-error@+1 {{operands of a matrix product must have at least one axis}}
  %y = nd.matmul %x, %x : tensor<f32>
  func.return
}

// -----

// convolution_c3
func.func @ranks(%x: tensor<1x2x8x8xf32>, %w: tensor<4x2x3xf32>) {
  // expected-error@+1 {{operands must have one rank of at least 2, got 1x2x8x8 and 4x2x3}}
  %y = nd.convolution %x, %w : (tensor<1x2x8x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6x6xf32>
  func.return
}

// -----

// convolution_c3
func.func @layout(%x: tensor<1x2x8xf32>, %w: tensor<4x2x3xf32>) {
  // expected-error@+1 {{w_layout must name each of 3 axes once, got [0, 1, 5]}}
  %y = nd.convolution %x, %w {w_layout = [0, 1, 5]} : (tensor<1x2x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>
  func.return
}

// -----

// convolution_c4
func.func @strides(%x: tensor<1x2x8xf32>, %w: tensor<4x2x3xf32>) {
  // expected-error@+1 {{strides must be at least 1, got [0]}}
  %y = nd.convolution %x, %w {strides = [0]} : (tensor<1x2x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>
  func.return
}

// -----

// convolution_c4
func.func @padding(%x: tensor<1x2x8xf32>, %w: tensor<4x2x3xf32>) {
  // expected-error@+1 {{low must have one number per spatial axis (1), got [1, 1]}}
  %y = nd.convolution %x, %w {low = [1, 1]} : (tensor<1x2x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>
  func.return
}

// -----

// convolution_c5
func.func @groups(%x: tensor<1x4x8xf32>, %w: tensor<4x2x3xf32>) {
  // expected-error@+1 {{groups (3) must divide the 4 output features}}
  %y = nd.convolution %x, %w {groups = 3} : (tensor<1x4x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>
  func.return
}

// -----

// convolution_c5
func.func @features(%x: tensor<1x3x8xf32>, %w: tensor<4x2x3xf32>) {
  // expected-error@+1 {{3 input features must be 1 groups of the window's 2 features}}
  %y = nd.convolution %x, %w : (tensor<1x3x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>
  func.return
}

// -----

func.func @empty_window(%x: tensor<1x2x8xf32>, %w: tensor<4x2x0xf32>) {
  // expected-error@+1 {{window must have at least one element, got 4x2x0}}
  %y = nd.convolution %x, %w : (tensor<1x2x8xf32>, tensor<4x2x0xf32>) -> tensor<1x4x9xf32>
  func.return
}

// -----

// convolution_c6
func.func @batch_groups(%x: tensor<3x2x8xf32>, %w: tensor<4x2x3xf32>) {
  // expected-error@+1 {{batch_groups (2) must divide the 3 images of the batch}}
  %y = nd.convolution %x, %w {batch_groups = 2} : (tensor<3x2x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>
  func.return
}

// -----

// convolution_c6
func.func @both_groups(%x: tensor<4x4x8xf32>, %w: tensor<4x2x3xf32>) {
  // expected-error@+1 {{groups are of features or of the batch, got 2 and 2 of them}}
  %y = nd.convolution %x, %w {groups = 2, batch_groups = 2} : (tensor<4x4x8xf32>, tensor<4x2x3xf32>) -> tensor<2x4x6xf32>
  func.return
}
