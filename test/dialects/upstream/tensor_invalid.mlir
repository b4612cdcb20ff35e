// RUN: %stepwell-opt %s --split-input-file --verify-diagnostics

// Out of bounds, as far as types and constants tell.

func.func @f(%t: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'tensor.extract_slice': a slice that begins at 100000000 does not lie within axis 0 of tensor<4xf32>}}
  %s = tensor.extract_slice %t[100000000] [4] [1] : tensor<4xf32> to tensor<4xf32>
  func.return %s : tensor<4xf32>
}

// -----

func.func @f(%t: tensor<4xf32>) {
  // expected-error@+1 {{'tensor.extract_slice': a slice up to element 4 does not lie within axis 0 of tensor<4xf32>}}
  %s = tensor.extract_slice %t[2] [2] [2] : tensor<4xf32> to tensor<2xf32>
  func.return
}

// -----

func.func @f(%t: tensor<4xf32>, %n: index) {
  // expected-error@+1 {{'tensor.extract_slice': 5 elements do not lie within axis 0 of tensor<4xf32>}}
  %s = tensor.extract_slice %t[%n] [5] [1] : tensor<4xf32> to tensor<5xf32>
  func.return
}

// -----

func.func @f(%t: tensor<4xf32>) {
  // expected-error@+1 {{'tensor.extract_slice': a slice cannot begin at -1 of axis 0}}
  %s = tensor.extract_slice %t[-1] [2] [1] : tensor<4xf32> to tensor<2xf32>
  func.return
}

// -----

func.func @f(%t: tensor<4xf32>) {
  // expected-error@+1 {{'tensor.extract_slice': a slice cannot have -2 elements along axis 0}}
  %s = tensor.extract_slice %t[0] [-2] [1] : tensor<4xf32> to tensor<2xf32>
  func.return
}

// -----

func.func @f(%t: tensor<4x4xf32>) {
  // expected-error@+1 {{'tensor.extract_slice': tensor<4x4xf32> takes 2 offsets, one for each axis, not 1}}
  %s = tensor.extract_slice %t[0] [2] [1] : tensor<4x4xf32> to tensor<2xf32>
  func.return
}

// -----

func.func @f(%t: tensor<4x4xf32>) {
  // expected-error@+1 {{'tensor.extract_slice': a slice of tensor<4x4xf32> is 2x1, or without axes of size 1, not tensor<3xf32>}}
  %s = tensor.extract_slice %t[0, 0] [2, 1] [1, 1] : tensor<4x4xf32> to tensor<3xf32>
  func.return
}

// -----

func.func @f(%t: tensor<4xf32>) {
  // expected-error@+1 {{'tensor.extract_slice': a slice of tensor<4xf32> has elements of type f32, not f64}}
  %s = tensor.extract_slice %t[0] [2] [1] : tensor<4xf32> to tensor<2xf64>
  func.return
}

// -----

func.func @f(%t: tensor<4xf32>, %d: tensor<8xf32>) {
  // expected-error@+1 {{'tensor.insert_slice': a slice up to element 8 does not lie within axis 0 of tensor<8xf32>}}
  %s = tensor.insert_slice %t into %d[5] [4] [1] : tensor<4xf32> into tensor<8xf32>
  func.return
}

// -----

func.func @f(%t: tensor<4xf32>, %d: tensor<8xf32>) {
  // expected-error@+1 {{'tensor.insert_slice': what is put into tensor<8xf32> is 5, or without axes of size 1, not tensor<4xf32>}}
  %s = tensor.insert_slice %t into %d[0] [5] [1] : tensor<4xf32> into tensor<8xf32>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{'tensor.empty': tensor<?xf32> takes 1 sizes, one for each `?`, not 0}}
  %e = tensor.empty() : tensor<?xf32>
  func.return
}

// -----

func.func @f(%t: tensor<4x2xf32>) {
  // expected-error@+1 {{'tensor.collapse_shape': there are 1 groups of axes for tensor<4x2xf32>, which has 2 axes}}
  %c = tensor.collapse_shape %t [[0, 1]] : tensor<4x2xf32> into tensor<4x2xf32>
  func.return
}

// -----

func.func @f(%t: tensor<4x2xf32>) {
  // expected-error@+1 {{'tensor.collapse_shape': axes of 4x2 elements are one of 8, not tensor<9xf32>}}
  %c = tensor.collapse_shape %t [[0, 1]] : tensor<4x2xf32> into tensor<9xf32>
  func.return
}

// -----

func.func @f(%t: tensor<4x2xf32>) {
  // expected-error@+1 {{'tensor.collapse_shape': the groups must name every axis of tensor<4x2xf32> once and in order}}
  %c = tensor.collapse_shape %t [[0]] : tensor<4x2xf32> into tensor<4xf32>
  func.return
}

// -----

func.func @f(%t: tensor<8xf32>) {
  // expected-error@+1 {{'tensor.expand_shape': output_shape says 4x3, the result is 4x2}}
  %c = tensor.expand_shape %t [[0, 1]] output_shape [4, 3] : tensor<8xf32> into tensor<4x2xf32>
  func.return
}

// -----

func.func @f(%t: tensor<4xf32>) {
  // expected-error@+1 {{'tensor.extract': a tensor with 1 axes takes as many indices, not 0: tensor<4xf32>}}
  %e = tensor.extract %t[] : tensor<4xf32>
  func.return
}

// -----

func.func @f(%t: tensor<4xf32>, %n: index, %f: f32) {
  // expected-error@+1 {{'tensor.insert': a tensor with 1 axes takes as many indices, not 2: tensor<4xf32>}}
  %e = tensor.insert %f into %t[%n, %n] : tensor<4xf32>
  func.return
}

// -----

func.func @f(%f: f32) {
  // expected-error@+1 {{'tensor.from_elements': tensor<3xf32> has 3 elements, 2 are given}}
  %e = tensor.from_elements %f, %f : tensor<3xf32>
  func.return
}

// -----

func.func @f(%t: tensor<4xf32>) {
  %two = arith.constant 2 : index
  // expected-error@+1 {{'tensor.dim': tensor<4xf32> has no axis 2: there are 1, counted from 0}}
  %n = tensor.dim %t, %two : tensor<4xf32>
  func.return
}

// -----

func.func @f(%t: tensor<4xf32>) {
  // expected-error@+1 {{'tensor.cast': a cast leaves the elements as they are: tensor<4xf32> is not tensor<?xi32>}}
  %c = tensor.cast %t : tensor<4xf32> to tensor<?xi32>
  func.return
}

// -----

func.func @f(%t: tensor<4xf32>, %f: f64) {
  // expected-error@+1 {{'tensor.pad': the region must yield one f32}}
  %p = tensor.pad %t low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %f : f64
  } : tensor<4xf32> to tensor<6xf32>
  func.return
}
