// RUN: %stepwell-opt %s | %stepwell-opt | filecheck %s
// RUN: %stepwell-opt %s --print-op-generic | %stepwell-opt | filecheck %s

// Every op of the family reduction round-trips.

// CHECK-LABEL: func.func @reduce
func.func @reduce(%x: tensor<4x?xf32>, %b: tensor<3xi1>) {
  // CHECK: %{{.*}} = nd.reduce_sum %x {axes = [1]} : tensor<4x?xf32> -> tensor<4xf32>
  %0 = nd.reduce_sum %x {axes = [1]} : tensor<4x?xf32> -> tensor<4xf32>
  // CHECK: %{{.*}} = nd.reduce_prod %x {axes = [0, 1]} : tensor<4x?xf32> -> tensor<f32>
  %1 = nd.reduce_prod %x {axes = [0, 1]} : tensor<4x?xf32> -> tensor<f32>
  // CHECK: %{{.*}} = nd.reduce_max %x {axes = []} : tensor<4x?xf32>
  %2 = nd.reduce_max %x {axes = []} : tensor<4x?xf32>
  // CHECK: nd.reduce_min
  %3 = nd.reduce_min %x {axes = [0]} : tensor<4x?xf32> -> tensor<?xf32>
  // CHECK: %{{.*}} = nd.reduce_and %b {axes = [0]} : tensor<3xi1> -> tensor<i1>
  %4 = nd.reduce_and %b {axes = [0]} : tensor<3xi1> -> tensor<i1>
  // CHECK: nd.reduce_or
  %5 = nd.reduce_or %b {axes = [0]} : tensor<3xi1> -> tensor<i1>
  func.return
}

// CHECK-LABEL: func.func @relatives
func.func @relatives(%x: tensor<4x?xf32>) {
  // CHECK: %{{.*}} = nd.argmax %x {axis = 0} : tensor<4x?xf32> -> tensor<?xi64>
  %0 = nd.argmax %x {axis = 0} : tensor<4x?xf32> -> tensor<?xi64>
  // CHECK: %{{.*}} = nd.argmin %x {axis = 1} : tensor<4x?xf32> -> tensor<4xi32>
  %1 = nd.argmin %x {axis = 1} : tensor<4x?xf32> -> tensor<4xi32>
  // CHECK: %{{.*}} = nd.cumulative_sum %x {axis = 0} : tensor<4x?xf32>
  %2 = nd.cumulative_sum %x {axis = 0} : tensor<4x?xf32>
  // CHECK: %{{.*}} = nd.cumulative_prod %x {axis = 0, reverse} : tensor<4x?xf32>
  %3 = nd.cumulative_prod %x {axis = 0, reverse} : tensor<4x?xf32>
  // CHECK: %{{.*}} = nd.cumulative_max %x {axis = 0, exclusive} : tensor<4x?xf32>
  %4 = nd.cumulative_max %x {axis = 0, exclusive} : tensor<4x?xf32>
  // CHECK: nd.cumulative_min
  %5 = nd.cumulative_min %x {axis = 0} : tensor<4x?xf32>
  func.return
}

// CHECK-LABEL: func.func @windows
func.func @windows(%x: tensor<7x?xf32>) {
  // CHECK: %{{.*}} = nd.window_sum %x {window = [3, 1]} : tensor<7x?xf32> -> tensor<5x?xf32>
  %0 = nd.window_sum %x {window = [3, 1]} : tensor<7x?xf32> -> tensor<5x?xf32>
  // CHECK: %{{.*}} = nd.window_max %x {{.*}} -> tensor<3x?xf32>
  %1 = nd.window_max %x {window = [3, 2], strides = [2, 2], low = [1, 0], high = [0, 1], dilation = [1, 3]} : tensor<7x?xf32> -> tensor<3x?xf32>
  // CHECK: nd.window_min
  %2 = nd.window_min %x {window = [1, 1]} : tensor<7x?xf32>
  func.return
}
