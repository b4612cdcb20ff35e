// RUN: %stepwell-opt %s | %stepwell-opt --print-op-generic | %stepwell-opt | filecheck %s

// Activations are spelled like other elementwise ops.
func.func @activations(%x: tensor<?x4xf32>, %i: tensor<4xi8>) {
  %relu = nd.relu %i : tensor<4xi8>
  %relu6 = nd.relu6 %x : tensor<?x4xf32>
  %sigmoid = nd.sigmoid %x : tensor<?x4xf32>
  %silu = nd.silu %x : tensor<?x4xf32>
  %softplus = nd.softplus %x : tensor<?x4xf32>
  %gelu = nd.gelu %x : tensor<?x4xf32>
  %gelu2 = nd.gelu %x {approximate = "tanh"} : tensor<?x4xf32>
  func.return
}
// CHECK-LABEL: @activations
// CHECK-NEXT: %relu = nd.relu %i : tensor<4xi8>
// CHECK-NEXT: %relu6 = nd.relu6 %x : tensor<?x4xf32>
// CHECK-NEXT: %sigmoid = nd.sigmoid %x : tensor<?x4xf32>
// CHECK-NEXT: %silu = nd.silu %x : tensor<?x4xf32>
// CHECK-NEXT: %softplus = nd.softplus %x : tensor<?x4xf32>
// CHECK-NEXT: %gelu = nd.gelu %x : tensor<?x4xf32>
// CHECK-NEXT: %gelu2 = nd.gelu %x {approximate = "tanh"} : tensor<?x4xf32>

func.func @along_axes(%x: tensor<?x4xf32>) {
  %softmax = nd.softmax %x {axis = 1} : tensor<?x4xf32>
  %log_softmax = nd.log_softmax %x {axis = 0} : tensor<?x4xf32>
  %mean = nd.mean %x {axes = [0, 1]} : tensor<?x4xf32> -> tensor<f32>
  %logsumexp = nd.logsumexp %x {axes = [1]} : tensor<?x4xf32> -> tensor<?xf32>
  func.return
}
// CHECK-LABEL: @along_axes
// CHECK-NEXT: %softmax = nd.softmax %x {axis = 1} : tensor<?x4xf32>
// CHECK-NEXT: %log_softmax = nd.log_softmax %x {axis = 0} : tensor<?x4xf32>
// CHECK-NEXT: %mean = nd.mean %x {axes = [0, 1]} : tensor<?x4xf32> -> tensor<f32>
// CHECK-NEXT: %logsumexp = nd.logsumexp %x {axes = [1]} : tensor<?x4xf32> -> tensor<?xf32>

// Parameters may be absent where the op says so; eps is always written.
func.func @normalization(%x: tensor<?x4xf32>, %p: tensor<4xf32>) {
  %bare = nd.layer_norm %x {axis = 1, eps = 1.0e-05} : tensor<?x4xf32>
  %y = nd.layer_norm %x, %p, %p {axis = 1, eps = 0.001} : (tensor<?x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %r = nd.rms_norm %x, %p {axis = 1, eps = 0.001} : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %b = nd.batch_norm %x, %p, %p, %p, %p {axis = 1, eps = 0.001} : (tensor<?x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  func.return
}
// CHECK-LABEL: @normalization
// CHECK-NEXT: %bare = nd.layer_norm %x {axis = 1, eps = 1.0e-05} : tensor<?x4xf32>
// CHECK-NEXT: %y = nd.layer_norm %x, %p, %p {axis = 1, eps = 0.001} : (tensor<?x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
// CHECK-NEXT: %r = nd.rms_norm %x, %p {axis = 1, eps = 0.001} : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
// CHECK-NEXT: %b = nd.batch_norm %x, %p, %p, %p, %p {axis = 1, eps = 0.001} : (tensor<?x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<?x4xf32>

// A window over the last axes, as many as it has numbers.
func.func @pooling(%x: tensor<?x3x9x8xf32>) {
  %max = nd.max_pool %x {window = [3, 2], strides = [2, 2], low = [1, 0], high = [0, 1]} : tensor<?x3x9x8xf32> -> tensor<?x3x4x4xf32>
  %avg = nd.avg_pool %x {window = [2], count_include_pad} : tensor<?x3x9x8xf32> -> tensor<?x3x9x4xf32>
  func.return
}
// CHECK-LABEL: @pooling
// CHECK-NEXT: %max = nd.max_pool %x {window = [3, 2], strides = [2, 2], low = [1, 0], high = [0, 1]} : tensor<?x3x9x8xf32> -> tensor<?x3x4x4xf32>
// CHECK-NEXT: %avg = nd.avg_pool %x {window = [2], count_include_pad} : tensor<?x3x9x8xf32> -> tensor<?x3x9x4xf32>
