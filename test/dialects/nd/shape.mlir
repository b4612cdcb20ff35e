// RUN: %stepwell-opt %s | %stepwell-opt | filecheck %s
// RUN: %stepwell-opt %s --print-op-generic | %stepwell-opt | filecheck %s

// Every op of the family shape round-trips, with known sizes and with `?`.

// CHECK-LABEL: func.func @sizes
func.func @sizes(%x: tensor<?x8xf32>) -> tensor<i64> {
  // CHECK: %n = nd.dim %x {axis = 0} : tensor<?x8xf32>
  %n = nd.dim %x {axis = 0} : tensor<?x8xf32>
  // CHECK: %s = nd.from_index %n : index -> tensor<i64>
  %s = nd.from_index %n : index -> tensor<i64>
  func.return %s : tensor<i64>
}

// CHECK-LABEL: func.func @broadcast
func.func @broadcast(%b: tensor<16xf32>, %u: tensor<?xf32>, %n: index) {
  // CHECK: %{{.*}} = nd.broadcast %b {dims = [1]} : tensor<16xf32> -> tensor<4x16xf32>
  %0 = nd.broadcast %b {dims = [1]} : tensor<16xf32> -> tensor<4x16xf32>
  // CHECK: %{{.*}} = nd.broadcast %b, sizes(%n) {dims = [1]} : tensor<16xf32> -> tensor<?x16xf32>
  %1 = nd.broadcast %b, sizes(%n) {dims = [1]} : tensor<16xf32> -> tensor<?x16xf32>
  // CHECK: %{{.*}} = nd.broadcast %u {dims = [0]} : tensor<?xf32> -> tensor<?x3xf32>
  %2 = nd.broadcast %u {dims = [0]} : tensor<?xf32> -> tensor<?x3xf32>
  func.return
}

// CHECK-LABEL: func.func @reshape
func.func @reshape(%x: tensor<6x?xf32>, %y: tensor<?x?xi8>, %n: index) {
  // CHECK: %{{.*}} = nd.reshape %x : tensor<6x?xf32> -> tensor<2x?x3xf32>
  %0 = nd.reshape %x : tensor<6x?xf32> -> tensor<2x?x3xf32>
  // CHECK: %{{.*}} = nd.reshape %y, sizes(%n, %n) : tensor<?x?xi8> -> tensor<?x1x?xi8>
  %1 = nd.reshape %y, sizes(%n, %n) : tensor<?x?xi8> -> tensor<?x1x?xi8>
  func.return
}

// CHECK-LABEL: func.func @moves
func.func @moves(%x: tensor<2x?x5xf32>, %v: tensor<f32>) {
  // CHECK: %{{.*}} = nd.transpose %x {permutation = [2, 0, 1]} : tensor<2x?x5xf32> -> tensor<5x2x?xf32>
  %0 = nd.transpose %x {permutation = [2, 0, 1]} : tensor<2x?x5xf32> -> tensor<5x2x?xf32>
  // CHECK: %{{.*}} = nd.slice %x[1:, :-1, -4:4:2] : tensor<2x?x5xf32> -> tensor<1x?x2xf32>
  %1 = nd.slice %x[1:, 0:-1, -4:4:2] : tensor<2x?x5xf32> -> tensor<1x?x2xf32>
  // CHECK: %{{.*}} = nd.pad %x, %v {low = [1, 0, 0], high = [0, 0, 2]} : (tensor<2x?x5xf32>, tensor<f32>) -> tensor<3x?x7xf32>
  %2 = nd.pad %x, %v {low = [1, 0, 0], high = [0, 0, 2]} : (tensor<2x?x5xf32>, tensor<f32>) -> tensor<3x?x7xf32>
  // CHECK: %{{.*}} = nd.pad %x, %v {{.*}}interior = [0, 1, 2]
  %3 = nd.pad %x, %v {low = [0, 0, 0], high = [0, 0, 0], interior = [0, 1, 2]} : (tensor<2x?x5xf32>, tensor<f32>) -> tensor<2x?x13xf32>
  // CHECK: %{{.*}} = nd.concat %x, %x {axis = 0} : (tensor<2x?x5xf32>, tensor<2x?x5xf32>) -> tensor<4x?x5xf32>
  %4 = nd.concat %x, %x {axis = 0} : (tensor<2x?x5xf32>, tensor<2x?x5xf32>) -> tensor<4x?x5xf32>
  // CHECK: %{{.*}} = nd.reverse %x {axes = [0, 2]} : tensor<2x?x5xf32>
  %5 = nd.reverse %x {axes = [0, 2]} : tensor<2x?x5xf32>
  func.return
}
