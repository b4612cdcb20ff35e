// RUN: %stepwell-opt %s | %stepwell-opt --print-op-generic | %stepwell-opt | filecheck %s

// Axes are paired as batch or contracted; pairs that are empty are not written.
func.func @dot_general(%x: tensor<5x2x3xf32>, %w: tensor<5x?x7xf32>, %a: tensor<4xi8>) {
  %y = nd.dot_general %x, %w batch [0] x [0] contract [2] x [1] : (tensor<5x2x3xf32>, tensor<5x?x7xf32>) -> tensor<5x2x7xf32>
  %outer = nd.dot_general %a, %a {dtype = i32} : (tensor<4xi8>, tensor<4xi8>) -> tensor<4x4xi32>
  func.return
}
// CHECK-LABEL: @dot_general
// CHECK-NEXT: %y = nd.dot_general %x, %w batch [0] x [0] contract [2] x [1] : (tensor<5x2x3xf32>, tensor<5x?x7xf32>) -> tensor<5x2x7xf32>
// CHECK-NEXT: %outer = nd.dot_general %a, %a {dtype = i32} : (tensor<4xi8>, tensor<4xi8>) -> tensor<4x4xi32>

// Every rank NumPy knows; one type is written once.
func.func @matmul(%v: tensor<3xf32>, %m: tensor<3x3xf32>, %x: tensor<?x5x3xf32>) {
  %s = nd.matmul %v, %v : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
  %mm = nd.matmul %m, %m : tensor<3x3xf32>
  %y = nd.matmul %x, %m : (tensor<?x5x3xf32>, tensor<3x3xf32>) -> tensor<?x5x3xf32>
  %z = nd.matmul %v, %m {dtype = f64} : (tensor<3xf32>, tensor<3x3xf32>) -> tensor<3xf64>
  func.return
}
// CHECK-LABEL: @matmul
// CHECK-NEXT: %s = nd.matmul %v, %v : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
// CHECK-NEXT: %mm = nd.matmul %m, %m : tensor<3x3xf32>
// CHECK-NEXT: %y = nd.matmul %x, %m : (tensor<?x5x3xf32>, tensor<3x3xf32>) -> tensor<?x5x3xf32>
// CHECK-NEXT: %z = nd.matmul %v, %m {dtype = f64} : (tensor<3xf32>, tensor<3x3xf32>) -> tensor<3xf64>

// What a convolution does not say is the plain thing: stride 1, no padding, NCHW and OIHW.
func.func @convolution(%x: tensor<2x4x9x?xf32>, %w: tensor<6x2x3x3xf32>, %last: tensor<2x9x4xf16>, %k: tensor<6x4x3xf16>) {
  %y = nd.convolution %x, %w {groups = 2} : (tensor<2x4x9x?xf32>, tensor<6x2x3x3xf32>) -> tensor<2x6x7x?xf32>
  %z = nd.convolution %x, %w {strides = [2, 1], low = [1, 1], high = [1, 0], lhs_dilation = [1, 2], rhs_dilation = [2, 1], groups = 2} : (tensor<2x4x9x?xf32>, tensor<6x2x3x3xf32>) -> tensor<2x6x4x?xf32>
  %u = nd.convolution %last, %k {x_layout = [0, 2, 1], y_layout = [0, 2, 1]} : (tensor<2x9x4xf16>, tensor<6x4x3xf16>) -> tensor<2x7x6xf16>
  func.return
}
// CHECK-LABEL: @convolution
// CHECK-NEXT: %y = nd.convolution %x, %w {groups = 2} : (tensor<2x4x9x?xf32>, tensor<6x2x3x3xf32>) -> tensor<2x6x7x?xf32>
// CHECK-NEXT: %z = nd.convolution %x, %w {strides = [2, 1], low = [1, 1], high = [1, 0], lhs_dilation = [1, 2], rhs_dilation = [2, 1], groups = 2} : (tensor<2x4x9x?xf32>, tensor<6x2x3x3xf32>) -> tensor<2x6x4x?xf32>
// CHECK-NEXT: %u = nd.convolution %last, %k {x_layout = [0, 2, 1], y_layout = [0, 2, 1]} : (tensor<2x9x4xf16>, tensor<6x4x3xf16>) -> tensor<2x7x6xf16>
