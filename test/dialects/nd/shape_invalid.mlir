// RUN: %stepwell-opt %s --verify-diagnostics --split-input-file

// Each case breaks one numbered constraint of an op of the family shape.

// dim_c1
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{axis must lie in 0..0, got 1}}
  %y = nd.dim %x {axis = 1} : tensor<4xf32>
  func.return
}

// -----

// broadcast_c1
func.func @f(%x: tensor<4x3xf32>) {
  // expected-error@+1 {{dims must name one result axis for each of 2 axes, got 1}}
  %y = nd.broadcast %x {dims = [0]} : tensor<4x3xf32> -> tensor<4x3xf32>
  func.return
}

// -----

// broadcast_c1
func.func @f(%x: tensor<4x3xf32>) {
  // expected-error@+1 {{dims must rise and name no axis twice, got [1, 0]}}
  %y = nd.broadcast %x {dims = [1, 0]} : tensor<4x3xf32> -> tensor<3x4xf32>
  func.return
}

// -----

// broadcast_c2
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{axis 0 of 4 cannot become axis 1 of 2x8: its size must be 1 or the same}}
  %y = nd.broadcast %x {dims = [1]} : tensor<4xf32> -> tensor<2x8xf32>
  func.return
}

// -----

// broadcast_c3
func.func @f(%x: tensor<?xf32>, %n: index) {
  // expected-error@+1 {{sizes must tell axes [0] of tensor<?x?xf32>, got 2 of them}}
  %y = nd.broadcast %x, sizes(%n, %n) {dims = [1]} : tensor<?xf32> -> tensor<?x?xf32>
  func.return
}

// -----

// broadcast_c4
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{result must have elements f32, got i32}}
  %y = nd.broadcast %x {dims = [0]} : tensor<4xf32> -> tensor<4xi32>
  func.return
}

// -----

// reshape_c1
func.func @f(%x: tensor<4x3xf32>) {
  // expected-error@+1 {{cannot reshape 4x3 to 5x2: the elements do not add up}}
  %y = nd.reshape %x : tensor<4x3xf32> -> tensor<5x2xf32>
  func.return
}

// -----

// reshape_c1
func.func @f(%x: tensor<7xf32>, %n: index) {
  // expected-error@+1 {{cannot reshape 7 to ?x2: the elements do not add up}}
  %y = nd.reshape %x, sizes(%n) : tensor<7xf32> -> tensor<?x2xf32>
  func.return
}

// -----

// reshape_c2
func.func @f(%x: tensor<?x?xf32>) {
  // expected-error@+1 {{sizes must tell axes [0] of tensor<?xf32>, got 0 of them}}
  %y = nd.reshape %x : tensor<?x?xf32> -> tensor<?xf32>
  func.return
}

// -----

// reshape_c3
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{result must have elements f32, got f16}}
  %y = nd.reshape %x : tensor<4xf32> -> tensor<2x2xf16>
  func.return
}

// -----

// transpose_c1
func.func @f(%x: tensor<4x3xf32>) {
  // expected-error@+1 {{permutation must name each of 2 axes once, got [1, 1]}}
  %y = nd.transpose %x {permutation = [1, 1]} : tensor<4x3xf32> -> tensor<3x3xf32>
  func.return
}

// -----

// The result type follows from the operand.
func.func @f(%x: tensor<4x3xf32>) {
  // expected-error@+1 {{result must be tensor<3x4xf32>, got tensor<3x5xf32>}}
  %y = nd.transpose %x {permutation = [1, 0]} : tensor<4x3xf32> -> tensor<3x5xf32>
  func.return
}

// -----

// slice_c1
func.func @f(%x: tensor<4x3xf32>) {
  // expected-error@+1 {{slice must say a range for each of 2 axes, got 1}}
  %y = nd.slice %x[1:] : tensor<4x3xf32> -> tensor<3x3xf32>
  func.return
}

// -----

// slice_c2
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{strides must be positive, got [-1]}}
  %y = nd.slice %x[::-1] : tensor<4xf32>
  func.return
}

// -----

// pad_c1
func.func @f(%x: tensor<4xf32>, %v: tensor<f32>) {
  // expected-error@+1 {{low, high and interior must have 1 entries each}}
  %y = nd.pad %x, %v {low = [1, 0], high = [0]} : (tensor<4xf32>, tensor<f32>) -> tensor<5xf32>
  func.return
}

// -----

// pad_c1
func.func @f(%x: tensor<4xf32>, %v: tensor<f32>) {
  // expected-error@+1 {{low, high and interior must not be negative}}
  %y = nd.pad %x, %v {low = [-1], high = [0]} : (tensor<4xf32>, tensor<f32>) -> tensor<3xf32>
  func.return
}

// -----

// pad_c2
func.func @f(%x: tensor<4xf32>, %v: tensor<f64>) {
  // expected-error@+1 {{value must be tensor<f32>, got tensor<f64>}}
  %y = nd.pad %x, %v {low = [1], high = [0]} : (tensor<4xf32>, tensor<f64>) -> tensor<5xf32>
  func.return
}

// -----

// concat_c1
func.func @f(%x: tensor<4xf32>, %y: tensor<4xi32>) {
  // expected-error@+1 {{operands differ in dtype: f32, i32}}
  %z = nd.concat %x, %y {axis = 0} : (tensor<4xf32>, tensor<4xi32>) -> tensor<8xf32>
  func.return
}

// -----

// concat_c1
func.func @f(%x: tensor<4xf32>, %y: tensor<4x1xf32>) {
  // expected-error@+1 {{concat wants operands of one rank, got 4 and 4x1}}
  %z = nd.concat %x, %y {axis = 0} : (tensor<4xf32>, tensor<4x1xf32>) -> tensor<8xf32>
  func.return
}

// -----

// concat_c1
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{axis must lie in 0..0, got 1}}
  %z = nd.concat %x, %x {axis = 1} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  func.return
}

// -----

// concat_c2
func.func @f(%x: tensor<4x2xf32>, %y: tensor<4x3xf32>) {
  // expected-error@+1 {{sizes of axis 1 differ: 4x2 and 4x3}}
  %z = nd.concat %x, %y {axis = 0} : (tensor<4x2xf32>, tensor<4x3xf32>) -> tensor<8x2xf32>
  func.return
}

// -----

// reverse_c1
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{axes must lie in 0..0, got [1]}}
  %y = nd.reverse %x {axes = [1]} : tensor<4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<?xf32>, %n: index) {
  // expected-error@+1 {{bounds of nd.slice are numbers; nd.dynamic_slice takes starts and sizes that a call tells: starts(%i), sizes(%n)}}
  %y = nd.slice %x[:%n] : tensor<?xf32> -> tensor<?xf32>
  func.return
}

// -----

func.func @f(%x: tensor<?xf32>, %v: tensor<f32>, %n: index) {
  // expected-error@+1 {{low holds numbers, not values; nd.dynamic_update_slice puts x into an nd.full whose sizes a call tells}}
  %y = nd.pad %x, %v {low = [%n], high = [0]} : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  func.return
}

// -----

func.func @elements_of_moves(%x: tensor<4x6xcomplex<f32>>) -> tensor<6x4xcomplex<f32>> {
  // expected-error@+1 {{complex<f32> is no element type of nd}}
  %y = nd.transpose %x {permutation = [1, 0]} : tensor<4x6xcomplex<f32>> -> tensor<6x4xcomplex<f32>>
  func.return %y : tensor<6x4xcomplex<f32>>
}

// -----

func.func @elements_of_sums(%x: tensor<4x6xindex>) -> tensor<6xindex> {
  // expected-error@+1 {{index is no element type of nd}}
  %y = nd.reduce_sum %x {axes = [0]} : tensor<4x6xindex> -> tensor<6xindex>
  func.return %y : tensor<6xindex>
}
