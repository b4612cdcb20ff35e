// RUN: %stepwell-opt %s -p 'decompose,nd-to-linalg,canonicalize,cse,propagate-layouts{always=true},fuse-elementwise,winograd' | filecheck %s

// Whether tiles pay depends on the number of rows and columns: the launch compares. Both branches read the same image and write the same result, which has whole tiles.
// CHECK-LABEL: func.func @image
// CHECK:         [[PAYS:%[0-9]+]] = arith.cmpi sgt
// CHECK:         [[IMAGE:%[0-9]+]] = tensor.insert_slice %x_1 into
// CHECK:         [[Y:%[0-9]+]] = scf.if [[PAYS]]
// CHECK:           ins([[IMAGE]], [[IMAGE]],
// CHECK:         } else {
// CHECK:           tensor.extract_slice [[IMAGE]][0, 0, 0, 0]
// CHECK:           "reduction", "reduction", "reduction"
// The bias and what follows are computed in both.
// CHECK:           arith.maximumf
// CHECK:           tensor.insert_slice %z
// CHECK:         %z_{{[0-9]}} = tensor.extract_slice [[Y]]
func.func @image(%x: tensor<1x32x?x?xf32>, %w: tensor<32x32x3x3xf32>) -> tensor<1x32x?x?xf32> {
  %y = nd.convolution %x, %w {low = [1, 1], high = [1, 1]} : (tensor<1x32x?x?xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x?x?xf32>
  %z = nd.relu %y : tensor<1x32x?x?xf32>
  func.return %z : tensor<1x32x?x?xf32>
}

// They pay for one image already: no test.
// CHECK-LABEL: func.func @batch
// CHECK-NOT:     scf.if
// CHECK:         kernel.stack
// CHECK-NOT:     "reduction", "reduction", "reduction"
// CHECK:         func.return
func.func @batch(%x: tensor<?x32x28x28xf32>, %w: tensor<32x32x3x3xf32>) -> tensor<?x32x28x28xf32> {
  %y = nd.convolution %x, %w {low = [1, 1], high = [1, 1]} : (tensor<?x32x28x28xf32>, tensor<32x32x3x3xf32>) -> tensor<?x32x28x28xf32>
  func.return %y : tensor<?x32x28x28xf32>
}

// They pay for many small images only.
// CHECK-LABEL: func.func @small
// CHECK:         scf.if
// CHECK:         func.return
func.func @small(%x: tensor<?x32x4x4xf32>, %w: tensor<32x32x3x3xf32>) -> tensor<?x32x4x4xf32> {
  %y = nd.convolution %x, %w {low = [1, 1], high = [1, 1]} : (tensor<?x32x4x4xf32>, tensor<32x32x3x3xf32>) -> tensor<?x32x4x4xf32>
  func.return %y : tensor<?x32x4x4xf32>
}

// With few features they never pay.
// CHECK-LABEL: func.func @never
// CHECK-NOT:     kernel.stack
// CHECK:         func.return
func.func @never(%x: tensor<?x4x?x?xf32>, %w: tensor<8x4x3x3xf32>) -> tensor<?x8x?x?xf32> {
  %y = nd.convolution %x, %w {low = [1, 1], high = [1, 1]} : (tensor<?x4x?x?xf32>, tensor<8x4x3x3xf32>) -> tensor<?x8x?x?xf32>
  func.return %y : tensor<?x8x?x?xf32>
}

// A declaration has no body.
// CHECK-LABEL: func.func private @declared
func.func private @declared(tensor<?x4x?x?xf32>) -> tensor<?x8x?x?xf32>
