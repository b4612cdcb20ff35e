// RUN: %stepwell-opt %s -p canonicalize --check | filecheck %s
// A matrix with one column is a vector.

// CHECK-LABEL: func.func @column
func.func @column(%x: tensor<?x7xf32>, %w: tensor<7x1xf32>) -> tensor<?x1xf32> {
  // CHECK: %[[W:.*]] = nd.reshape %w : tensor<7x1xf32> -> tensor<7xf32>
  // CHECK: %[[P:.*]] = nd.dot_general %x, %[[W]] contract [1] x [0] : (tensor<?x7xf32>, tensor<7xf32>) -> tensor<?xf32>
  // CHECK: nd.reshape %[[P]] : tensor<?xf32> -> tensor<?x1xf32>
  %y = nd.matmul %x, %w : (tensor<?x7xf32>, tensor<7x1xf32>) -> tensor<?x1xf32>
  func.return %y : tensor<?x1xf32>
}

// CHECK-LABEL: func.func @batch
func.func @batch(%x: tensor<5x3x7xi8>, %w: tensor<5x7x1xi8>) -> tensor<5x3x1xi32> {
  // CHECK: nd.dot_general %x, {{.*}} batch [0] x [0] contract [2] x [1] {dtype = i32} : (tensor<5x3x7xi8>, tensor<5x7xi8>) -> tensor<5x3xi32>
  %y = nd.matmul %x, %w {dtype = i32} : (tensor<5x3x7xi8>, tensor<5x7x1xi8>) -> tensor<5x3x1xi32>
  func.return %y : tensor<5x3x1xi32>
}

// CHECK-LABEL: func.func @row_and_column
func.func @row_and_column(%x: tensor<7xf32>, %w: tensor<7x1xf32>) -> tensor<1xf32> {
  // CHECK: nd.dot_general %x, {{.*}} contract [0] x [0] : (tensor<7xf32>, tensor<7xf32>) -> tensor<f32>
  %y = nd.matmul %x, %w : (tensor<7xf32>, tensor<7x1xf32>) -> tensor<1xf32>
  func.return %y : tensor<1xf32>
}

// CHECK-LABEL: func.func @general
func.func @general(%x: tensor<7x3xf32>, %w: tensor<1x7xf32>) -> tensor<3x1xf32> {
  // CHECK: nd.dot_general %x, {{.*}} contract [0] x [0] : (tensor<7x3xf32>, tensor<7xf32>) -> tensor<3xf32>
  %y = nd.dot_general %x, %w contract [0] x [1] : (tensor<7x3xf32>, tensor<1x7xf32>) -> tensor<3x1xf32>
  func.return %y : tensor<3x1xf32>
}

// Two sizes of the result are unknown.
// CHECK-LABEL: func.func @unchanged
func.func @unchanged(%x: tensor<?x?x7xf32>, %w: tensor<7x1xf32>) -> tensor<?x?x1xf32> {
  // CHECK-NOT: nd.reshape
  %y = nd.matmul %x, %w : (tensor<?x?x7xf32>, tensor<7x1xf32>) -> tensor<?x?x1xf32>
  func.return %y : tensor<?x?x1xf32>
}
