// RUN: %stepwell-opt %s -p canonicalize --check | filecheck %s

// Moves of elements that cancel, merge or do nothing.

// CHECK-LABEL: func.func @reshapes
// CHECK-SAME: (%x: tensor<4x6xf32>, %u: tensor<?x4xf32>, %n: index)
func.func @reshapes(%x: tensor<4x6xf32>, %u: tensor<?x4xf32>, %n: index) -> (tensor<4x6xf32>, tensor<8x3xf32>, tensor<?x2x2xf32>, tensor<?x?xf32>) {
  %0 = nd.reshape %x : tensor<4x6xf32> -> tensor<24xf32>
  %1 = nd.reshape %0 : tensor<24xf32> -> tensor<4x6xf32>
  // CHECK-NEXT: %[[R:.*]] = nd.reshape %x : tensor<4x6xf32> -> tensor<8x3xf32>
  %2 = nd.reshape %0 : tensor<24xf32> -> tensor<8x3xf32>
  // CHECK-NEXT: %[[S:.*]] = nd.reshape %u : tensor<?x4xf32> -> tensor<?x2x2xf32>
  %3 = nd.reshape %u : tensor<?x4xf32> -> tensor<4x?xf32>
  %4 = nd.reshape %3 : tensor<4x?xf32> -> tensor<?x2x2xf32>
  // CHECK-NEXT: %[[T:.*]] = nd.reshape %u, sizes(%n, %n) : tensor<?x4xf32> -> tensor<?x?xf32>
  %5 = nd.reshape %3, sizes(%n, %n) : tensor<4x?xf32> -> tensor<?x?xf32>
  // CHECK-NEXT: func.return %x, %[[R]], %[[S]], %[[T]]
  func.return %1, %2, %4, %5 : tensor<4x6xf32>, tensor<8x3xf32>, tensor<?x2x2xf32>, tensor<?x?xf32>
}

// CHECK-LABEL: func.func @transposes
func.func @transposes(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<4x3x2xf32>) {
  %0 = nd.transpose %x {permutation = [2, 0, 1]} : tensor<2x3x4xf32> -> tensor<4x2x3xf32>
  %1 = nd.transpose %0 {permutation = [1, 2, 0]} : tensor<4x2x3xf32> -> tensor<2x3x4xf32>
  // CHECK-NEXT: %[[T:.*]] = nd.transpose %x {permutation = [2, 1, 0]}
  %2 = nd.transpose %0 {permutation = [0, 2, 1]} : tensor<4x2x3xf32> -> tensor<4x3x2xf32>
  // CHECK-NEXT: func.return %x, %[[T]]
  func.return %1, %2 : tensor<2x3x4xf32>, tensor<4x3x2xf32>
}

// CHECK-LABEL: func.func @broadcasts
// CHECK-SAME: (%x: tensor<4xf32>, %y: tensor<3x4xf32>, %n: index, %m: index)
func.func @broadcasts(%x: tensor<4xf32>, %y: tensor<3x4xf32>, %n: index, %m: index) -> (tensor<4xf32>, tensor<?x?x4xf32>, tensor<5x2x4xf32>, tensor<4x?xf32>, tensor<4x2x3xf32>) {
  %0 = nd.broadcast %x {dims = [0]} : tensor<4xf32> -> tensor<4xf32>
  // CHECK-NEXT: %[[A:.*]] = nd.broadcast %x, sizes(%m, %n) {dims = [2]} : tensor<4xf32> -> tensor<?x?x4xf32>
  %1 = nd.broadcast %x, sizes(%n) {dims = [1]} : tensor<4xf32> -> tensor<?x4xf32>
  %2 = nd.broadcast %1, sizes(%m) {dims = [1, 2]} : tensor<?x4xf32> -> tensor<?x?x4xf32>
  // CHECK-NEXT: %[[B:.*]] = nd.broadcast %x {dims = [2]} : tensor<4xf32> -> tensor<5x2x4xf32>
  %3 = nd.reshape %x : tensor<4xf32> -> tensor<1x4xf32>
  %4 = nd.broadcast %3 {dims = [1, 2]} : tensor<1x4xf32> -> tensor<5x2x4xf32>
  // CHECK-NEXT: %[[C:.*]] = nd.broadcast %x, sizes(%n) {dims = [0]} : tensor<4xf32> -> tensor<4x?xf32>
  %5 = nd.transpose %1 {permutation = [1, 0]} : tensor<?x4xf32> -> tensor<4x?xf32>
  // CHECK-NEXT: %[[T:.*]] = nd.transpose %y {permutation = [1, 0]}
  // CHECK-NEXT: %[[D:.*]] = nd.broadcast %[[T]] {dims = [0, 2]} : tensor<4x3xf32> -> tensor<4x2x3xf32>
  %6 = nd.broadcast %y {dims = [1, 2]} : tensor<3x4xf32> -> tensor<2x3x4xf32>
  %7 = nd.transpose %6 {permutation = [2, 0, 1]} : tensor<2x3x4xf32> -> tensor<4x2x3xf32>
  // CHECK-NEXT: func.return %x, %[[A]], %[[B]], %[[C]], %[[D]]
  func.return %0, %2, %4, %5, %7 : tensor<4xf32>, tensor<?x?x4xf32>, tensor<5x2x4xf32>, tensor<4x?xf32>, tensor<4x2x3xf32>
}

// CHECK-LABEL: func.func @slices
// CHECK-SAME: (%x: tensor<20x?xf32>)
func.func @slices(%x: tensor<20x?xf32>) -> (tensor<20x?xf32>, tensor<3x?xf32>, tensor<20x?xf32>) {
  %0 = nd.slice %x[:, :] : tensor<20x?xf32>
  // CHECK-NEXT: %[[A:.*]] = nd.slice %x[4:17:6, 5::6] : tensor<20x?xf32> -> tensor<3x?xf32>
  %1 = nd.slice %x[2:-1:2, 1::2] : tensor<20x?xf32> -> tensor<9x?xf32>
  %2 = nd.slice %1[1:8:3, 2::3] : tensor<9x?xf32> -> tensor<3x?xf32>
  // CHECK-NEXT: %[[B:.*]] = nd.slice %x[:, :3] : tensor<20x?xf32>
  // CHECK-NEXT: %[[C:.*]] = nd.slice %[[B]][:, -2:] : tensor<20x?xf32>
  %3 = nd.slice %x[:, :3] : tensor<20x?xf32>
  %4 = nd.slice %3[:, -2:] : tensor<20x?xf32>
  // CHECK-NEXT: func.return %x, %[[A]], %[[C]]
  func.return %0, %2, %4 : tensor<20x?xf32>, tensor<3x?xf32>, tensor<20x?xf32>
}

// CHECK-LABEL: func.func @reversals
func.func @reversals(%x: tensor<4x1x?xf32>) -> (tensor<4x1x?xf32>, tensor<4x1x?xf32>, tensor<4x1x?xf32>) {
  %0 = nd.reverse %x {axes = [1]} : tensor<4x1x?xf32>
  // CHECK-NEXT: %[[A:.*]] = nd.reverse %x {axes = [0, 2]} : tensor<4x1x?xf32>
  %1 = nd.reverse %x {axes = [0, 1, 2]} : tensor<4x1x?xf32>
  %2 = nd.reverse %1 {axes = [0, 2]} : tensor<4x1x?xf32>
  // CHECK-NEXT: func.return %x, %[[A]], %x
  func.return %0, %1, %2 : tensor<4x1x?xf32>, tensor<4x1x?xf32>, tensor<4x1x?xf32>
}

// CHECK-LABEL: func.func @pads
func.func @pads(%x: tensor<4xf32>, %v: tensor<f32>) -> (tensor<4xf32>, tensor<10xf32>) {
  %0 = nd.pad %x, %v {low = [0], high = [0]} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // CHECK-NEXT: %[[A:.*]] = nd.pad %x, %v {low = [3], high = [3]} : (tensor<4xf32>, tensor<f32>) -> tensor<10xf32>
  %1 = nd.pad %x, %v {low = [1], high = [0]} : (tensor<4xf32>, tensor<f32>) -> tensor<5xf32>
  %2 = nd.pad %1, %v {low = [2], high = [3]} : (tensor<5xf32>, tensor<f32>) -> tensor<10xf32>
  // CHECK-NEXT: func.return %x, %[[A]]
  func.return %0, %2 : tensor<4xf32>, tensor<10xf32>
}

// CHECK-LABEL: func.func @concats
func.func @concats(%x: tensor<4xf32>, %e: tensor<0xf32>) -> (tensor<4xf32>, tensor<12xf32>, tensor<0xf32>) {
  %0 = nd.concat %e, %x {axis = 0} : (tensor<0xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: %[[A:.*]] = nd.concat %x, %x, %x {axis = 0}
  %1 = nd.concat %x, %x {axis = 0} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %2 = nd.concat %1, %e, %x {axis = 0} : (tensor<8xf32>, tensor<0xf32>, tensor<4xf32>) -> tensor<12xf32>
  %3 = nd.concat %e, %e {axis = 0} : tensor<0xf32>
  // CHECK-NEXT: func.return %x, %[[A]], %e
  func.return %0, %2, %3 : tensor<4xf32>, tensor<12xf32>, tensor<0xf32>
}

// CHECK-LABEL: func.func @others
func.func @others(%x: tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<2x5xf32>, tensor<2x3xf32>, tensor<2x5xf32>) {
  %0 = nd.reduce_max %x {axes = []} : tensor<4x5xf32>
  // CHECK-NEXT: %[[A:.*]] = nd.slice %x[2:4, :] : tensor<4x5xf32> -> tensor<2x5xf32>
  %i = nd.full 3 : tensor<i32>
  %1 = nd.dynamic_slice %x, starts(%i) {axes = [0], sizes = [2]} : (tensor<4x5xf32>, tensor<i32>) -> tensor<2x5xf32>
  // CHECK-NEXT: %[[B:.*]] = nd.full 1.000000e+00 : tensor<2x3xf32>
  %2 = nd.full 1.0 : tensor<f32>
  %3 = nd.broadcast %2 {dims = []} : tensor<f32> -> tensor<3x2xf32>
  %4 = nd.transpose %3 {permutation = [1, 0]} : tensor<3x2xf32> -> tensor<2x3xf32>
  %5 = nd.dynamic_update_slice %1, %1, starts(%i) {axes = [1]} : (tensor<2x5xf32>, tensor<2x5xf32>, tensor<i32>) -> tensor<2x5xf32>
  // CHECK-NEXT: func.return %x, %[[A]], %[[B]], %[[A]]
  func.return %0, %1, %4, %5 : tensor<4x5xf32>, tensor<2x5xf32>, tensor<2x3xf32>, tensor<2x5xf32>
}

// A sum begins at 0: of -0.0 it makes 0.0.
// CHECK-LABEL: func.func @sums_of_no_axes
func.func @sums_of_no_axes(%x: tensor<4xf32>, %k: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>) {
  // CHECK-NEXT: %0 = nd.reduce_sum %x {axes = []} : tensor<4xf32>
  %0 = nd.reduce_sum %x {axes = []} : tensor<4xf32>
  %1 = nd.reduce_sum %k {axes = []} : tensor<4xi32>
  // CHECK-NEXT: func.return %0, %k
  func.return %0, %1 : tensor<4xf32>, tensor<4xi32>
}

// CHECK-LABEL: func.func @sizes
// CHECK-SAME: (%x: tensor<?x4xf32>, %n: index)
func.func @sizes(%x: tensor<?x4xf32>, %n: index) -> (index, index, index, index) {
  // CHECK-NEXT: %[[A:.*]] = arith.constant 4 : index
  %0 = nd.dim %x {axis = 1} : tensor<?x4xf32>
  %1 = nd.transpose %x {permutation = [1, 0]} : tensor<?x4xf32> -> tensor<4x?xf32>
  %2 = nd.broadcast %1, sizes(%n) {dims = [0, 2]} : tensor<4x?xf32> -> tensor<4x?x?xf32>
  %3 = nd.neg %2 : tensor<4x?x?xf32>
  %4 = nd.dim %3 {axis = 1} : tensor<4x?x?xf32>
  // CHECK-NEXT: %[[B:.*]] = nd.dim %x {axis = 0} : tensor<?x4xf32>
  %5 = nd.dim %3 {axis = 2} : tensor<4x?x?xf32>
  // CHECK-NEXT: %[[C:.*]] = nd.dim %x {axis = 0} : tensor<?x4xf32>
  %6 = nd.reduce_max %3 {axes = [0, 1]} : tensor<4x?x?xf32> -> tensor<?xf32>
  %7 = nd.dim %6 {axis = 0} : tensor<?xf32>
  // CHECK-NEXT: func.return %[[A]], %n, %[[B]], %[[C]]
  func.return %0, %4, %5, %7 : index, index, index, index
}
