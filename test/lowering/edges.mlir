// RUN: %stepwell-opt %s -p 'decompose,nd-to-linalg,canonicalize,cse,propagate-layouts,fuse-elementwise,outline-kernels,schedule' | filecheck %s
// RUN: %stepwell-opt %s -p 'decompose,nd-to-linalg,canonicalize,cse,propagate-layouts,fuse-elementwise,outline-kernels,schedule,bufferize,plan-memory,linalg-to-loops' | filecheck %s --check-prefix=LOOPS

// Nothing is copied into the border: the kernel says where the image lies within it, and reads the image.
// CHECK-LABEL: kernel.func @main_mul_sum(%x: tensor<1x64x28x28xf32>
// CHECK-SAME:  #kernel.schedule<[parallel d0, parallel d1, for d2 by 7 border, for d3 by 16 overlap, unroll d4, unroll d5, unroll d2, vector d3 by 16]>
// CHECK:         %[[BORDER:.*]] = linalg.fill {{.*}} -> tensor<1x64x30x30xf32>
// CHECK:         affine_map<(d0, d1, d2, d3) -> (d0, d1, (d2 + 1), (d3 + 1))>
// CHECK-SAME:      ins(%x : tensor<1x64x28x28xf32>) outs(%[[BORDER]] : tensor<1x64x30x30xf32>) attrs = {kernel.border = array<i64: 2, 3>}
// CHECK-LABEL: func.func @main
// CHECK-NOT:     tensor.insert_slice
// LOOPS-LABEL: kernel.func @main_mul_sum
// LOOPS-NOT:     memref.alloc
// LOOPS:         vector.shuffle {{.*}} [16, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]
// LOOPS:         vector.shuffle {{.*}} [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]
// LOOPS-LABEL: func.func @main
func.func @main(%x: tensor<1x64x28x28xf32>, %w: tensor<64x1x3x3xf32>) -> tensor<1x64x28x28xf32> {
  %y = nd.convolution %x, %w {groups = 64, low = [1, 1], high = [1, 1]} : (tensor<1x64x28x28xf32>, tensor<64x1x3x3xf32>) -> tensor<1x64x28x28xf32>
  func.return %y : tensor<1x64x28x28xf32>
}
