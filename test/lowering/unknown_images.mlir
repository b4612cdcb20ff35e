// RUN: %stepwell-opt %s -p 'decompose,nd-to-linalg,canonicalize,cse,propagate-layouts,fuse-elementwise,outline-kernels{machine="vector_bits=512"},schedule{machine="vector_bits=512"}' | filecheck %s
// RUN: %stepwell-opt %s -p 'decompose,nd-to-linalg,canonicalize,cse,propagate-layouts,fuse-elementwise,outline-kernels{machine="vector_bits=512"},schedule{machine="vector_bits=512"},bufferize,plan-memory,linalg-to-loops' | filecheck %s --check-prefix=LOOPS
// RUN: %stepwell-opt %s -p 'decompose,nd-to-linalg,canonicalize,cse,propagate-layouts,fuse-elementwise,outline-kernels{machine="vector_bits=256"}' | filecheck %s --check-prefix=COPIED

// An image of unknown size has virtual padding where loads take a mask: rows at its borders run alone,
// and a vector enables the lanes that are columns of the image.
// CHECK-LABEL: kernel.func @main_mul_sum
// CHECK-SAME:  for d2 by 4 border, for d3 by 16 mask, unroll d4, unroll d5, unroll d2, vector d3 by 16
// CHECK:       attrs = {kernel.border = array<i64: 2, 3>}
// CHECK-LABEL: func.func @main
// CHECK-NOT:   tensor.insert_slice
// LOOPS-LABEL: kernel.func @main_mul_sum
// LOOPS-NOT:   memref.alloc
// LOOPS:       [[END:%.*]] = vector.create_mask
// LOOPS:       [[BEGIN:%.*]] = vector.create_mask
// LOOPS:       [[LANES:%.*]] = arith.xori [[END]], [[BEGIN]] : vector<16xi1>
// LOOPS:       vector.maskedload %x{{.*}}, [[LANES]]
// LOOPS-LABEL: func.func @main
// COPIED:      tensor.insert_slice
func.func @main(%x: tensor<1x64x?x?xf32>, %w: tensor<64x1x3x3xf32>) -> tensor<1x64x?x?xf32> {
  %y = nd.convolution %x, %w {groups = 64, low = [1, 1], high = [1, 1]} : (tensor<1x64x?x?xf32>, tensor<64x1x3x3xf32>) -> tensor<1x64x?x?xf32>
  func.return %y : tensor<1x64x?x?xf32>
}
