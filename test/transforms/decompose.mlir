// RUN: %stepwell-opt %s -p decompose | filecheck %s

// A softmax is a maximum and a sum along the axis, and what lies between; sizes that are unknown
// are asked of its operand.
func.func @softmax(%x: tensor<4x?xf32>) -> tensor<4x?xf32> {
  %y = nd.softmax %x {axis = 0} : tensor<4x?xf32>
  func.return %y : tensor<4x?xf32>
}
// CHECK-LABEL: @softmax
// CHECK-NEXT:   %reduce_max = nd.reduce_max %x {axes = [0]} : tensor<4x?xf32> -> tensor<?xf32>
// CHECK-NEXT:   %broadcast = nd.broadcast %reduce_max {dims = [1]} : tensor<?xf32> -> tensor<4x?xf32>
// CHECK-NEXT:   %sub = nd.sub %x, %broadcast : tensor<4x?xf32>
// CHECK-NEXT:   %exp = nd.exp %sub : tensor<4x?xf32>
// CHECK-NEXT:   %reduce_sum = nd.reduce_sum %exp {axes = [0]} : tensor<4x?xf32> -> tensor<?xf32>
// CHECK-NEXT:   %n = nd.dim %x {axis = 1} : tensor<4x?xf32>
// CHECK-NEXT:   %full = nd.full 1.000000e+00, sizes(%n) : tensor<?xf32>
// CHECK-NEXT:   %div = nd.div %full, %reduce_sum : tensor<?xf32>
// CHECK-NEXT:   %broadcast_1 = nd.broadcast %div {dims = [1]} : tensor<?xf32> -> tensor<4x?xf32>
// CHECK-NEXT:   %y = nd.mul %exp, %broadcast_1 : tensor<4x?xf32>
// CHECK-NEXT:   func.return %y : tensor<4x?xf32>

// f16 is computed in f32 and rounded once; the number of summands is made of what is known of it.
func.func @mean(%x: tensor<?x4x?xf16>) -> tensor<4xf16> {
  %y = nd.mean %x {axes = [0, 2]} : tensor<?x4x?xf16> -> tensor<4xf16>
  func.return %y : tensor<4xf16>
}
// CHECK-LABEL: @mean
// CHECK-NEXT:   %[[X:cast]] = nd.cast %x : tensor<?x4x?xf16> -> tensor<?x4x?xf32>
// CHECK-NEXT:   %[[SUM:reduce_sum]] = nd.reduce_sum %[[X]] {axes = [0, 2]}
// CHECK-NEXT:   %{{.*}} = nd.full 1.000000e+00 : tensor<f32>
// CHECK-NEXT:   %[[N:n]] = nd.dim %x {axis = 0}
// CHECK-NEXT:   nd.from_index %[[N]]
// CHECK:        %[[M:n_1]] = nd.dim %x {axis = 2}
// CHECK:        %[[COUNT:broadcast]] = nd.broadcast %{{.*}} {dims = []} : tensor<f32> -> tensor<4xf32>
// CHECK-NEXT:   %[[MEAN:div]] = nd.div %[[SUM]], %[[COUNT]] : tensor<4xf32>
// CHECK-NEXT:   %y = nd.cast %[[MEAN]] : tensor<4xf32> -> tensor<4xf16>

// Inside regions too; what surrounds is left alone.
func.func @nested(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %r = nd.if %c -> tensor<4xf32> {
    %y = nd.relu %x : tensor<4xf32>
    nd.yield %y : tensor<4xf32>
  } else {
    nd.yield %x : tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}
// CHECK-LABEL: @nested
// CHECK-NEXT:   %r = nd.if %c -> tensor<4xf32> {
// CHECK-NEXT:     %full = nd.full 0.000000e+00 : tensor<4xf32>
// CHECK-NEXT:     %y = nd.max %x, %full : tensor<4xf32>
// CHECK-NEXT:     nd.yield %y : tensor<4xf32>

// A matrix product names the axes it contracts. Batch axes of the right operand alone come out
// after the rows, and are moved.
func.func @matmul(%x: tensor<2x5x3xf32>, %w: tensor<2x3x7xf32>, %m: tensor<5x3xi8>, %b: tensor<6x3x7xi8>) -> (tensor<2x5x7xf32>, tensor<6x5x7xi32>) {
  %y = nd.matmul %x, %w : (tensor<2x5x3xf32>, tensor<2x3x7xf32>) -> tensor<2x5x7xf32>
  %z = nd.matmul %m, %b {dtype = i32} : (tensor<5x3xi8>, tensor<6x3x7xi8>) -> tensor<6x5x7xi32>
  func.return %y, %z : tensor<2x5x7xf32>, tensor<6x5x7xi32>
}
// CHECK-LABEL: @matmul
// CHECK-NEXT:   %y = nd.dot_general %x, %w batch [0] x [0] contract [2] x [1] : (tensor<2x5x3xf32>, tensor<2x3x7xf32>) -> tensor<2x5x7xf32>
// CHECK-NEXT:   %dot = nd.dot_general %m, %b contract [1] x [1] {dtype = i32} : (tensor<5x3xi8>, tensor<6x3x7xi8>) -> tensor<5x6x7xi32>
// CHECK-NEXT:   %z = nd.transpose %dot {permutation = [1, 0, 2]} : tensor<5x6x7xi32> -> tensor<6x5x7xi32>
