// RUN: %stepwell-opt %s --check -p 'decompose,nd-to-linalg,canonicalize,cse,propagate-layouts{always=true},fuse-elementwise,outline-kernels,schedule' | filecheck %s

// Windows that overlap share what is read: seven results of a row at once, two vectors of features wide.
// CHECK-LABEL: kernel.func @pool_max(
// CHECK-SAME:  #kernel.schedule<[parallel d0, parallel d1, parallel d2 by 7 {grain 38}, for d3 by 32, for d4, for d5, unroll d2, unroll d3 by 16, vector d3 by 16]>
// CHECK:       kernel.func @depthwise_mul_sum(
// CHECK-SAME:  #kernel.schedule<[parallel d0, parallel d1, parallel d2 by 7 {grain 23}, for d3 by 32, for d4, for d5, unroll d2, unroll d3 by 16, vector d3 by 16]>
func.func @pool(%x: tensor<1x32x16x16xf32>) -> tensor<1x32x14x14xf32> {
  %y = nd.max_pool %x {window = [3, 3], strides = [1, 1]} : tensor<1x32x16x16xf32> -> tensor<1x32x14x14xf32>
  func.return %y : tensor<1x32x14x14xf32>
}

func.func @depthwise(%x: tensor<1x32x16x16xf32>, %w: tensor<32x1x3x3xf32>) -> tensor<1x32x14x14xf32> {
  %y = nd.convolution %x, %w {groups = 32} : (tensor<1x32x16x16xf32>, tensor<32x1x3x3xf32>) -> tensor<1x32x14x14xf32>
  func.return %y : tensor<1x32x14x14xf32>
}
