// RUN: %stepwell-opt %s -p decompose,canonicalize | filecheck %s

// A vector times a large matrix is a product of a row, which is read in long stretches; so is a transposed matrix times a vector.
// CHECK-LABEL: func.func @left
// CHECK:         nd.reshape %y {{.*}}tensor<1x1500xf32>
// CHECK:         nd.dot_general {{.*}} : (tensor<1x1500xf32>, tensor<1500x900xf32>) -> tensor<1x900xf32>
func.func @left(%y: tensor<1500xf32>, %a: tensor<1500x900xf32>) -> tensor<900xf32> {
  %z = nd.matmul %y, %a : (tensor<1500xf32>, tensor<1500x900xf32>) -> tensor<900xf32>
  func.return %z : tensor<900xf32>
}

// CHECK-LABEL: func.func @turned
// CHECK-NOT:     nd.transpose
// CHECK:         nd.dot_general {{.*}} : (tensor<1x1500xf32>, tensor<1500x900xf32>) -> tensor<1x900xf32>
func.func @turned(%y: tensor<1500xf32>, %a: tensor<1500x900xf32>) -> tensor<900xf32> {
  %t = nd.transpose %a {permutation = [1, 0]} : tensor<1500x900xf32> -> tensor<900x1500xf32>
  %z = nd.matmul %t, %y : (tensor<900x1500xf32>, tensor<1500xf32>) -> tensor<900xf32>
  func.return %z : tensor<900xf32>
}

// A small one, and one of few columns, are read best as they are.
// CHECK-LABEL: func.func @small
// CHECK:         nd.dot_general {{.*}} : (tensor<300xf32>, tensor<300x900xf32>) -> tensor<900xf32>
func.func @small(%y: tensor<300xf32>, %a: tensor<300x900xf32>) -> tensor<900xf32> {
  %z = nd.matmul %y, %a : (tensor<300xf32>, tensor<300x900xf32>) -> tensor<900xf32>
  func.return %z : tensor<900xf32>
}
