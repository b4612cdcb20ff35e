// RUN: %stepwell-opt %s --check -p 'decompose,nd-to-linalg,canonicalize,cse,fuse-elementwise,outline-kernels,schedule' | filecheck %s
// RUN: %stepwell-opt %s -p 'decompose,nd-to-linalg,canonicalize,cse,fuse-elementwise,outline-kernels,schedule,bufferize,plan-memory,linalg-to-loops' | filecheck %s --check-prefix=LOOPS

// Where rows lie last the window slides along the vectors: its steps are written out, so that what
// neighbouring rows of the result read is loaded once and stays in a register.
// CHECK-LABEL: kernel.func @main_mul_sum(
// CHECK-SAME:  #kernel.schedule<[parallel d0, parallel d1, parallel d2 by 7 {grain 11}, for d3 by 16 overlap, unroll d4, unroll d5, unroll d2, vector d3 by 16]>
// LOOPS:       } {kernel.unroll}
// LOOPS:       } {kernel.unroll}
func.func @main(%x: tensor<1x32x30x30xf32>, %w: tensor<32x1x5x5xf32>) -> tensor<1x32x26x26xf32> {
  %y = nd.convolution %x, %w {groups = 32} : (tensor<1x32x30x30xf32>, tensor<32x1x5x5xf32>) -> tensor<1x32x26x26xf32>
  func.return %y : tensor<1x32x26x26xf32>
}
