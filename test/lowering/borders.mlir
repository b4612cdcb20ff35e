// RUN: %stepwell-opt %s --check -p 'decompose,nd-to-linalg,canonicalize,cse,propagate-layouts,fuse-elementwise,outline-kernels,schedule' | filecheck %s
// RUN: %stepwell-opt %s --check -p 'decompose,nd-to-linalg,canonicalize,cse,propagate-layouts,fuse-elementwise,outline-kernels,schedule,bufferize,plan-memory,linalg-to-loops' | filecheck %s --check-prefix=LOOPS

// The four sides of a border and what lies between are parts of one tensor, written by one kernel;
// the last vector of a row lies over the one before.
// CHECK-LABEL: kernel.func @main_fill_copy(
// CHECK-SAME:    kernel.shared = 2 : i64, kernel.parallel = 2
// CHECK-COUNT-2: linalg.fill {kernel.no_fuse, kernel.loops = #kernel.loops<axis = 3, width = 16, interleave = 1>}
// CHECK-COUNT-2: linalg.fill {kernel.no_fuse} ins
// CHECK:         linalg.generic {{.*}} width = 16
// CHECK:       kernel.launch @main_fill_copy
// CHECK-COUNT-5: tensor.insert_slice
// CHECK:       kernel.launch @main_mul_sum
// LOOPS-LABEL: kernel.func @main_fill_copy_view(
// LOOPS-NOT:     memref.load
// LOOPS:       kernel.func @main_mul_sum(
func.func @main(%x: tensor<1x32x28x28xf32>, %w: tensor<32x1x3x3xf32>) -> tensor<1x32x28x28xf32> {
  %y = nd.convolution %x, %w {groups = 32, low = [1, 1], high = [1, 1]} : (tensor<1x32x28x28xf32>, tensor<32x1x3x3xf32>) -> tensor<1x32x28x28xf32>
  func.return %y : tensor<1x32x28x28xf32>
}
