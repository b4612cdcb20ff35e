// RUN: %stepwell-opt %s | %stepwell-opt | filecheck %s
// RUN: %stepwell-opt %s --print-op-generic | %stepwell-opt | filecheck %s

// Every op of the family sorting round-trips.

// CHECK-LABEL: func.func @sort
func.func @sort(%x: tensor<4x?xf32>, %r: tensor<4x2xi64>) {
  // CHECK: %{{.*}} = nd.sort %x {axis = 1} : tensor<4x?xf32>
  %0 = nd.sort %x {axis = 1} : tensor<4x?xf32>
  // CHECK: %{{.*}} = nd.sort %x {axis = 0, descending} : tensor<4x?xf32>
  %1 = nd.sort %x {axis = 0, descending} : tensor<4x?xf32>
  // CHECK: %{{.*}} = nd.argsort %x {axis = 1} : tensor<4x?xf32> -> tensor<4x?xi64>
  %2 = nd.argsort %x {axis = 1} : tensor<4x?xf32> -> tensor<4x?xi64>
  // CHECK: %{{.*}} = nd.argsort %x {axis = 1, descending} : tensor<4x?xf32> -> tensor<4x?xi32>
  %3 = nd.argsort %x {axis = 1, descending} : tensor<4x?xf32> -> tensor<4x?xi32>
  // CHECK: %{{.*}} = nd.order_statistics %x, %r {axis = 1} : (tensor<4x?xf32>, tensor<4x2xi64>) -> tensor<4x2xf32>
  %4 = nd.order_statistics %x, %r {axis = 1} : (tensor<4x?xf32>, tensor<4x2xi64>) -> tensor<4x2xf32>
  func.return
}
