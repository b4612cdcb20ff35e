// RUN: %stepwell-opt %s -p 'decompose,nd-to-linalg,canonicalize,cse,fuse-elementwise,outline-kernels,split-groups' | filecheck %s

// A grouped convolution reads its image at a quotient of the loop over features. It is a contraction
// like any other: an epilogue shares its kernel, a sum over rows that would take its register tile
// does not.
// CHECK-LABEL: kernel.func @main_conv_relu(
// CHECK-SAME:    attributes {kernel.shared = 5 : i64}
// CHECK:       kernel.func @main_sum(
// CHECK-LABEL: func.func @main(
func.func @main(%x: tensor<1x16x34x34xf32>, %w: tensor<32x8x3x3xf32>) -> (tensor<1x32x32x32xf32>, tensor<1x32x32xf32>) {
  %h = nd.convolution %x, %w {groups = 2} : (tensor<1x16x34x34xf32>, tensor<32x8x3x3xf32>) -> tensor<1x32x32x32xf32>
  %y = nd.relu %h : tensor<1x32x32x32xf32>
  %s = nd.reduce_sum %y {axes = [3]} : tensor<1x32x32x32xf32> -> tensor<1x32x32xf32>
  func.return %y, %s : tensor<1x32x32x32xf32>, tensor<1x32x32xf32>
}
