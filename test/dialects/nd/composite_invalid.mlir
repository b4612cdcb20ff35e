// RUN: %stepwell-opt %s --split-input-file --verify-diagnostics

func.func @integers(%x: tensor<4xi32>) {
  // expected-error@+1 {{elements must be floating point, got tensor<4xi32>}}
  %y = nd.softmax %x {axis = 0} : tensor<4xi32>
  func.return
}

// -----

// gelu_c1
func.func @gelu(%x: tensor<4xf32>) {
  // expected-error@+1 {{approximate must be "none" or "tanh", got "fast"}}
  %y = nd.gelu %x {approximate = "fast"} : tensor<4xf32>
  func.return
}

// -----

// along_axis_c1
func.func @axis(%x: tensor<4xf32>) {
  // expected-error@+1 {{axis must be one of the 1 axes of 4, got 1}}
  %y = nd.softmax %x {axis = 1} : tensor<4xf32>
  func.return
}

// -----

// over_axes_c1
func.func @axes(%x: tensor<4x5xf32>) {
  // expected-error@+1 {{axes must differ, got [1, 1]}}
  %y = nd.mean %x {axes = [1, 1]} : tensor<4x5xf32> -> tensor<4xf32>
  func.return
}

// -----

// norm_c1
func.func @sizes(%x: tensor<4x5xf32>, %s: tensor<4xf32>) {
  // expected-error@+1 {{parameters must be 5, got 4}}
  %y = nd.layer_norm %x, %s {axis = 1, eps = 0.1} : (tensor<4x5xf32>, tensor<4xf32>) -> tensor<4x5xf32>
  func.return
}

// -----

// norm_c1
func.func @elements(%x: tensor<4x5xf32>, %s: tensor<5xf16>) {
  // expected-error@+1 {{parameters must have elements f32, got f16}}
  %y = nd.rms_norm %x, %s {axis = 1, eps = 0.1} : (tensor<4x5xf32>, tensor<5xf16>) -> tensor<4x5xf32>
  func.return
}

// -----

// norm_c1
func.func @number(%x: tensor<5xf32>) {
  // expected-error@+1 {{expected at most 1 parameters, got 2}}
  %y = nd.rms_norm %x, %x, %x {axis = 0, eps = 0.1} : (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  func.return
}

// -----

// pool_c1
func.func @window(%x: tensor<5xf32>) {
  // expected-error@+1 {{window must have 1 to 1 numbers, got [2, 2]}}
  %y = nd.max_pool %x {window = [2, 2]} : tensor<5xf32> -> tensor<2xf32>
  func.return
}

// -----

// pool_c1
func.func @nothing(%x: tensor<5xf32>) {
  // expected-error@+1 {{window must be at least 1, got [0]}}
  %y = nd.avg_pool %x {window = [0]} : tensor<5xf32> -> tensor<2xf32>
  func.return
}

// -----

// pool_c2
func.func @strides(%x: tensor<5xf32>) {
  // expected-error@+1 {{strides must have one number per spatial axis (1), got [1, 1]}}
  %y = nd.max_pool %x {window = [2], strides = [1, 1]} : tensor<5xf32> -> tensor<4xf32>
  func.return
}
