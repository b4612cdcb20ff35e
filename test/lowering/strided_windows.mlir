// RUN: %stepwell-opt %s -p 'decompose,nd-to-linalg,canonicalize,cse,propagate-layouts,fuse-elementwise,outline-kernels,schedule,bufferize,plan-memory,linalg-to-loops' | filecheck %s

// A window that moves in steps of two reads every second place: two vectors, and one shuffle that
// picks. Its step two places further has the same lanes but one, which are moved.
// CHECK-LABEL: kernel.func @main_mul_sum
// CHECK:         %[[PICKED:.*]] = vector.shuffle %{{.*}}, %{{.*}} [0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31]
// CHECK:         vector.shuffle %[[PICKED]], %{{.*}} [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 31]
func.func @main(%x: tensor<1x64x40x40xf32>, %w: tensor<64x1x3x3xf32>) -> tensor<1x64x20x20xf32> {
  %y = nd.convolution %x, %w {groups = 64, strides = [2, 2], low = [1, 1], high = [1, 1]} : (tensor<1x64x40x40xf32>, tensor<64x1x3x3xf32>) -> tensor<1x64x20x20xf32>
  func.return %y : tensor<1x64x20x20xf32>
}
