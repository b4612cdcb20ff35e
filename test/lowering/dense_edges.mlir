// RUN: %stepwell-opt %s -p 'decompose,nd-to-linalg,canonicalize,cse,propagate-layouts,fuse-elementwise,outline-kernels,schedule' | filecheck %s
// RUN: %stepwell-opt %s -p 'decompose,nd-to-linalg,canonicalize,cse,propagate-layouts,fuse-elementwise,outline-kernels,schedule,bufferize,plan-memory,linalg-to-loops' | filecheck %s --check-prefix=LOOPS

// The border of a dense convolution of few features is never made. All features of a step share a
// vector that extends past a row's end.
// CHECK-LABEL: kernel.func @dense_conv(
// CHECK-SAME:    %x: tensor<1x5x32x32xf32>
// CHECK-SAME:  #kernel.schedule<[parallel d0, parallel d1, {{.*}}, for d4, for d5, unroll d6, {{.*}}vector d3 by 16]>
// LOOPS-LABEL: kernel.func @dense_conv(
// LOOPS-NOT:     memref.alloc
// LOOPS:         vector.shuffle {{.*}} [16, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]
// LOOPS-NOT:     vector.shuffle
// LOOPS:         scf.yield
func.func @dense(%x: tensor<1x5x32x32xf32>, %w: tensor<3x5x3x3xf32>) -> tensor<1x3x32x32xf32> {
  %y = nd.convolution %x, %w {low = [1, 1], high = [1, 1]} : (tensor<1x5x32x32xf32>, tensor<3x5x3x3xf32>) -> tensor<1x3x32x32xf32>
  func.return %y : tensor<1x3x32x32xf32>
}
