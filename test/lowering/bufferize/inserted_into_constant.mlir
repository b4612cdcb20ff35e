// RUN: %stepwell-opt %s -p bufferize | filecheck %s
//
// Rows are inserted into a constant; the checker proves the rest by the shape of the constant.

// CHECK-LABEL: func.func @some
// CHECK:         memref.copy %c, %0 : memref<3x4xf32>
// CHECK-COUNT-2: memref.copy {{.*}} memref<1x4xf32>
func.func @some(%x: tensor<1x4xf32>, %z: tensor<1x4xf32>) -> tensor<3x4xf32> {
  %c = arith.constant dense<0.0> : tensor<3x4xf32>
  %1 = tensor.insert_slice %x into %c[0, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<3x4xf32>
  %2 = tensor.insert_slice %z into %1[2, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<3x4xf32>
  func.return %2 : tensor<3x4xf32>
}

// CHECK-LABEL: func.func @all
// CHECK:         memref.copy %z
func.func @all(%x: tensor<1x4xf32>, %z: tensor<2x4xf32>) -> tensor<3x4xf32> {
  %c = arith.constant dense<0.0> : tensor<3x4xf32>
  %1 = tensor.insert_slice %x into %c[0, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<3x4xf32>
  %2 = tensor.insert_slice %z into %1[1, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<3x4xf32>
  func.return %2 : tensor<3x4xf32>
}
