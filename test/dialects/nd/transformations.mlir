// RUN: %stepwell-opt %s | %stepwell-opt | filecheck %s
// RUN: %stepwell-opt %s --print-op-generic | %stepwell-opt | filecheck %s

// CHECK-LABEL: @vjp
// CHECK: nd.vjp (%v = %x, %n = %k) cotangents(%x : tensor<4xf32>) {wrt = [0], of = [0]} : (tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>) {
func.func @vjp(%x: tensor<4xf32>, %k: tensor<4xi32>) -> tensor<4xf32> {
  %y, %d = nd.vjp (%v = %x, %n = %k) cotangents(%x : tensor<4xf32>) {wrt = [0], of = [0]} : (tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %s = nd.sin %v : tensor<4xf32>
    nd.yield %s : tensor<4xf32>
  }
  func.return %d : tensor<4xf32>
}

// CHECK-LABEL: @jvp
// CHECK: nd.jvp (%v = %x) tangents(%x : tensor<?xf64>) {wrt = [0], of = [0], note = "kept"} : (tensor<?xf64>) -> (tensor<?xf64>, tensor<?xf64>) {
func.func @jvp(%x: tensor<?xf64>) -> tensor<?xf64> {
  %y, %d = nd.jvp (%v = %x) tangents(%x : tensor<?xf64>) {wrt = [0], of = [0], note = "kept"} : (tensor<?xf64>) -> (tensor<?xf64>, tensor<?xf64>) {
    nd.yield %v : tensor<?xf64>
  }
  func.return %d : tensor<?xf64>
}

// CHECK-LABEL: @vmap
// CHECK: nd.vmap (%v = %x, %w = %x) {in_axes = [0, -1], out_axes = [1, -1], size = 4} : (tensor<4x3xf32>, tensor<4x3xf32>) -> (tensor<3x4xf32>, tensor<4x3xf32>) {
// CHECK: nd.vmap (%{{.*}} = %u) count(%n : index) {in_axes = [0], out_axes = [0]} : (tensor<?xf32>) -> tensor<?xf32> {
func.func @vmap(%x: tensor<4x3xf32>, %u: tensor<?xf32>) -> tensor<3x4xf32> {
  %y, %z = nd.vmap (%v = %x, %w = %x) {in_axes = [0, -1], out_axes = [1, -1], size = 4} : (tensor<4x3xf32>, tensor<4x3xf32>) -> (tensor<3x4xf32>, tensor<4x3xf32>) {
    nd.yield %v, %w : tensor<3xf32>, tensor<4x3xf32>
  }
  %n = nd.dim %u {axis = 0} : tensor<?xf32>
  %a = nd.vmap (%v = %u) count(%n : index) {in_axes = [0], out_axes = [0]} : (tensor<?xf32>) -> tensor<?xf32> {
    nd.yield %v : tensor<f32>
  }
  func.return %y : tensor<3x4xf32>
}
