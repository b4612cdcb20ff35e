// RUN: %stepwell-opt %s | %stepwell-opt | filecheck %s
// RUN: %stepwell-opt %s --print-op-generic | %stepwell-opt | filecheck %s

// Every op of the family indexing round-trips.

// CHECK-LABEL: func.func @gather
func.func @gather(%x: tensor<5x?x7xf32>, %i: tensor<2x3xi64>, %j: tensor<2x3xui8>) {
  // CHECK: %{{.*}} = nd.gather %x, indices(%i) {axes = [1]} : (tensor<5x?x7xf32>, tensor<2x3xi64>) -> tensor<5x2x3x7xf32>
  %0 = nd.gather %x, indices(%i) {axes = [1]} : (tensor<5x?x7xf32>, tensor<2x3xi64>) -> tensor<5x2x3x7xf32>
  // CHECK: %{{.*}} = nd.gather %x, indices(%i, %j) {axes = [0, 2]} : {{.*}} -> tensor<2x3x?xf32>
  %1 = nd.gather %x, indices(%i, %j) {axes = [0, 2]} : (tensor<5x?x7xf32>, tensor<2x3xi64>, tensor<2x3xui8>) -> tensor<2x3x?xf32>
  func.return
}

// CHECK-LABEL: func.func @scatter
func.func @scatter(%x: tensor<5x7xf32>, %i: tensor<3xi32>, %u: tensor<3x7xf32>) {
  // CHECK: %{{.*}} = nd.scatter %x, %u, indices(%i) {axes = [0]} : (tensor<5x7xf32>, tensor<3x7xf32>, tensor<3xi32>) -> tensor<5x7xf32>
  %0 = nd.scatter %x, %u, indices(%i) {axes = [0]} : (tensor<5x7xf32>, tensor<3x7xf32>, tensor<3xi32>) -> tensor<5x7xf32>
  // CHECK: nd.scatter_add %x
  %1 = nd.scatter_add %x, %u, indices(%i) {axes = [0]} : (tensor<5x7xf32>, tensor<3x7xf32>, tensor<3xi32>) -> tensor<5x7xf32>
  // CHECK: nd.scatter_mul %x
  %2 = nd.scatter_mul %x, %u, indices(%i) {axes = [0]} : (tensor<5x7xf32>, tensor<3x7xf32>, tensor<3xi32>) -> tensor<5x7xf32>
  // CHECK: nd.scatter_min %x
  %3 = nd.scatter_min %x, %u, indices(%i) {axes = [0]} : (tensor<5x7xf32>, tensor<3x7xf32>, tensor<3xi32>) -> tensor<5x7xf32>
  // CHECK: nd.scatter_max %x
  %4 = nd.scatter_max %x, %u, indices(%i) {axes = [0]} : (tensor<5x7xf32>, tensor<3x7xf32>, tensor<3xi32>) -> tensor<5x7xf32>
  func.return
}

// CHECK-LABEL: func.func @dynamic
func.func @dynamic(%x: tensor<?x4xf32>, %u: tensor<1x4xf32>, %i: tensor<i32>, %n: index) {
  // CHECK: %{{.*}} = nd.dynamic_slice %x, starts(%i) {axes = [0], sizes = [1]} : (tensor<?x4xf32>, tensor<i32>) -> tensor<1x4xf32>
  %0 = nd.dynamic_slice %x, starts(%i) {axes = [0], sizes = [1]} : (tensor<?x4xf32>, tensor<i32>) -> tensor<1x4xf32>
  // CHECK: %{{.*}} = nd.dynamic_slice %x, starts(%n, %i), sizes(%n, 3) {axes = [0, 1]} : (tensor<?x4xf32>, index, tensor<i32>) -> tensor<?x3xf32>
  %2 = nd.dynamic_slice %x, starts(%n, %i), sizes(%n, 3) {axes = [0, 1]} : (tensor<?x4xf32>, index, tensor<i32>) -> tensor<?x3xf32>
  // CHECK: %{{.*}} = nd.dynamic_update_slice %x, %u, starts(%n) {axes = [0]} : (tensor<?x4xf32>, tensor<1x4xf32>, index) -> tensor<?x4xf32>
  %1 = nd.dynamic_update_slice %x, %u, starts(%n) {axes = [0]} : (tensor<?x4xf32>, tensor<1x4xf32>, index) -> tensor<?x4xf32>
  func.return
}
