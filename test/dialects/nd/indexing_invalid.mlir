// RUN: %stepwell-opt %s --verify-diagnostics --split-input-file

// Each case breaks one numbered constraint of an op of the family indexing.

// gather_c1
func.func @f(%x: tensor<4x3xf32>, %i: tensor<2xi32>) {
  // expected-error@+1 {{one index tensor is needed for each of axes, got 1}}
  %y = nd.gather %x, indices(%i) {axes = [0, 1]} : (tensor<4x3xf32>, tensor<2xi32>) -> tensor<2xf32>
  func.return
}

// -----

// gather_c1
func.func @f(%x: tensor<4x3xf32>, %i: tensor<2xi32>) {
  // expected-error@+1 {{axes must lie in 0..1, got [2]}}
  %y = nd.gather %x, indices(%i) {axes = [2]} : (tensor<4x3xf32>, tensor<2xi32>) -> tensor<2xf32>
  func.return
}

// -----

// gather_c2
func.func @f(%x: tensor<4x3xf32>, %i: tensor<2xi32>, %j: tensor<3xi32>) {
  // expected-error@+1 {{index tensors differ in shape: 2 and 3}}
  %y = nd.gather %x, indices(%i, %j) {axes = [0, 1]} : (tensor<4x3xf32>, tensor<2xi32>, tensor<3xi32>) -> tensor<2xf32>
  func.return
}

// -----

// gather_c3
func.func @f(%x: tensor<4xf32>, %i: tensor<2xf32>) {
  // expected-error@+1 {{indices must be integers, got tensor<2xf32>}}
  %y = nd.gather %x, indices(%i) {axes = [0]} : (tensor<4xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

// gather_c4
func.func @f(%x: tensor<0x3xf32>, %i: tensor<2xi32>) {
  // expected-error@+1 {{cannot read from an axis of size 0: 0x3 along [0]}}
  %y = nd.gather %x, indices(%i) {axes = [0]} : (tensor<0x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
  func.return
}

// -----

// scatter_c1
func.func @f(%x: tensor<4xf32>, %u: tensor<2xf32>, %i: tensor<2xi32>) {
  // expected-error@+1 {{axes must lie in 0..0, got [1]}}
  %y = nd.scatter %x, %u, indices(%i) {axes = [1]} : (tensor<4xf32>, tensor<2xf32>, tensor<2xi32>) -> tensor<4xf32>
  func.return
}

// -----

// scatter_c2
func.func @f(%x: tensor<4x3xf32>, %u: tensor<2xf32>, %i: tensor<2xi32>) {
  // expected-error@+1 {{updates must be 2x3, got 2}}
  %y = nd.scatter_add %x, %u, indices(%i) {axes = [0]} : (tensor<4x3xf32>, tensor<2xf32>, tensor<2xi32>) -> tensor<4x3xf32>
  func.return
}

// -----

// scatter_c3
func.func @f(%x: tensor<4xf32>, %u: tensor<2xf32>, %i: tensor<2xi1>) {
  // expected-error@+1 {{indices must be integers, got tensor<2xi1>}}
  %y = nd.scatter %x, %u, indices(%i) {axes = [0]} : (tensor<4xf32>, tensor<2xf32>, tensor<2xi1>) -> tensor<4xf32>
  func.return
}

// -----

// scatter_c4
func.func @f(%x: tensor<4xf32>, %u: tensor<2xf64>, %i: tensor<2xi32>) {
  // expected-error@+1 {{updates must have elements f32, got f64}}
  %y = nd.scatter %x, %u, indices(%i) {axes = [0]} : (tensor<4xf32>, tensor<2xf64>, tensor<2xi32>) -> tensor<4xf32>
  func.return
}

// -----

// scatter_c5
func.func @f(%x: tensor<4xi1>, %u: tensor<2xi1>, %i: tensor<2xi32>) {
  // expected-error@+1 {{sums and products of i1 are not defined; cast to integers first}}
  %y = nd.scatter_add %x, %u, indices(%i) {axes = [0]} : (tensor<4xi1>, tensor<2xi1>, tensor<2xi32>) -> tensor<4xi1>
  func.return
}

// -----

// dynamic_slice_c1
func.func @f(%x: tensor<4x3xf32>, %i: tensor<i32>) {
  // expected-error@+1 {{one size and one start are needed for each of 1 axes}}
  %y = nd.dynamic_slice %x, starts(%i) {axes = [0], sizes = [1, 1]} : (tensor<4x3xf32>, tensor<i32>) -> tensor<1x3xf32>
  func.return
}

// -----

// dynamic_slice_c2
func.func @f(%x: tensor<4x3xf32>, %i: tensor<i32>) {
  // expected-error@+1 {{cannot take 5 elements along axis 0 of 4x3}}
  %y = nd.dynamic_slice %x, starts(%i) {axes = [0], sizes = [5]} : (tensor<4x3xf32>, tensor<i32>) -> tensor<5x3xf32>
  func.return
}

// -----

// dynamic_slice_c3
func.func @f(%x: tensor<4xf32>, %i: tensor<1xi32>) {
  // expected-error@+1 {{starts must be 0-d tensors, got tensor<1xi32>}}
  %y = nd.dynamic_slice %x, starts(%i) {axes = [0], sizes = [2]} : (tensor<4xf32>, tensor<1xi32>) -> tensor<2xf32>
  func.return
}

// -----

// dynamic_slice_c3
func.func @f(%x: tensor<4xf32>, %i: tensor<f32>) {
  // expected-error@+1 {{starts must be integers, got tensor<f32>}}
  %y = nd.dynamic_slice %x, starts(%i) {axes = [0], sizes = [2]} : (tensor<4xf32>, tensor<f32>) -> tensor<2xf32>
  func.return
}

// -----

// dynamic_update_slice_c1
func.func @f(%x: tensor<4x3xf32>, %u: tensor<1x3xf32>, %i: tensor<i32>) {
  // expected-error@+1 {{one start is needed for each of 2 axes, got 1}}
  %y = nd.dynamic_update_slice %x, %u, starts(%i) {axes = [0, 1]} : (tensor<4x3xf32>, tensor<1x3xf32>, tensor<i32>) -> tensor<4x3xf32>
  func.return
}

// -----

// dynamic_update_slice_c2
func.func @f(%x: tensor<4x3xf32>, %u: tensor<1x2xf32>, %i: tensor<i32>) {
  // expected-error@+1 {{update 1x2 does not fit into 4x3 along axis 1}}
  %y = nd.dynamic_update_slice %x, %u, starts(%i) {axes = [0]} : (tensor<4x3xf32>, tensor<1x2xf32>, tensor<i32>) -> tensor<4x3xf32>
  func.return
}

// -----

// dynamic_update_slice_c2
func.func @f(%x: tensor<4xf32>, %u: tensor<1xf64>, %i: tensor<i32>) {
  // expected-error@+1 {{update must have elements f32, got f64}}
  %y = nd.dynamic_update_slice %x, %u, starts(%i) {axes = [0]} : (tensor<4xf32>, tensor<1xf64>, tensor<i32>) -> tensor<4xf32>
  func.return
}

// -----

// dynamic_update_slice_c4
func.func @f(%x: tensor<4xf32>, %u: tensor<2xf32>, %i: tensor<i32>) {
  // expected-error@+1 {{strides are 1 or more, one for each of 1 axes}}
  %y = nd.dynamic_update_slice %x, %u, starts(%i) {axes = [0], strides = [0]} : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> tensor<4xf32>
  func.return
}

// -----

// dynamic_update_slice_c2
func.func @f(%x: tensor<4xf32>, %u: tensor<2xf32>, %i: tensor<i32>) {
  // expected-error@+1 {{update 2 does not fit into 4 along axis 0}}
  %y = nd.dynamic_update_slice %x, %u, starts(%i) {axes = [0], strides = [4]} : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> tensor<4xf32>
  func.return
}

// -----

// dynamic_update_slice_c3
func.func @f(%x: tensor<4xf32>, %u: tensor<1xf32>, %i: tensor<i1>) {
  // expected-error@+1 {{starts must be integers, got tensor<i1>}}
  %y = nd.dynamic_update_slice %x, %u, starts(%i) {axes = [0]} : (tensor<4xf32>, tensor<1xf32>, tensor<i1>) -> tensor<4xf32>
  func.return
}

// -----

// dynamic_slice_c1
func.func @f(%x: tensor<?xf32>, %i: tensor<i32>, %n: index) {
  // expected-error@+1 {{result must be tensor<?xf32>, got tensor<4xf32>}}
  %y = nd.dynamic_slice %x, starts(%i), sizes(%n) {axes = [0]} : (tensor<?xf32>, tensor<i32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<?xf32>, %i: tensor<i32>, %n: index) {
  // expected-error@+1 {{sizes holds numbers, not values; sizes that a call tells are written sizes(4, %n), before the braces}}
  %y = nd.dynamic_slice %x, starts(%i) {axes = [0], sizes = [%n]} : (tensor<?xf32>, tensor<i32>) -> tensor<?xf32>
  func.return
}
