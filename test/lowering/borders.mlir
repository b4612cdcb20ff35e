// RUN: %stepwell-opt %s --check -p 'decompose,nd-to-linalg,canonicalize,cse,propagate-layouts,fuse-elementwise,outline-kernels,schedule' | filecheck %s
// RUN: %stepwell-opt %s --check -p 'decompose,nd-to-linalg,canonicalize,cse,propagate-layouts,fuse-elementwise,outline-kernels,schedule,bufferize,plan-memory,linalg-to-loops' | filecheck %s --check-prefix=LOOPS

// The four sides of a border and what lies between are parts of one tensor, written by one kernel;
// the last vector of a row lies over the one before.
// CHECK-LABEL: kernel.func @main_fill_copy(
// CHECK-SAME:  #kernel.schedule<[parallel d0, parallel d1 {grain 4}], op 0 [for d2, for d3 by 16 overlap, vector d3 by 16], op 1 [for d2, for d3 by 16 overlap, vector d3 by 16], op 2 [for d2, for d3], op 3 [for d2, for d3], op 4 [for d2, for d3 by 16 overlap, vector d3 by 16]>
// CHECK-COUNT-4: linalg.fill {kernel.no_fuse} ins
// CHECK:         linalg.generic
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
