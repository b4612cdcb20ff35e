// RUN: %stepwell-opt %s -p 'decompose,nd-to-linalg,canonicalize,cse,fuse-elementwise,outline-kernels,schedule{machine="vector_bits=512,vector_registers=32,fma=1,threads=2,l3=32M,vector_unit=256"}' | filecheck %s
// RUN: %stepwell-opt %s -p 'decompose,nd-to-linalg,canonicalize,cse,fuse-elementwise,outline-kernels,schedule' | filecheck %s --check-prefix=WHOLE

// Where the machine computes with half a vector at once, halves fill 24 columns and cost nothing else.
// CHECK-LABEL: kernel.func @narrow_conv(
// CHECK-SAME:  #kernel.schedule<[parallel d0, parallel d1 by 14, parallel d2 by 56, parallel d3 by 24, for d4 by 144 {pack 1}, for d1, for d2 by 8, for d4, unroll d2, unroll d3 by 8, vector d3 by 8]>
// WHOLE-LABEL: kernel.func @narrow_conv(
// WHOLE-SAME:  #kernel.schedule<[parallel d0, parallel d1 by 14, parallel d2 by 60, parallel d3 by 32, for d4 by 144 {pack 1}, for d1, for d2 by 12, for d4, unroll d2, unroll d3 by 16, vector d3 by 16]>
func.func @narrow(%x: tensor<1x56x56x144xf32>, %w: tensor<24x144x1x1xf32>) -> tensor<1x56x56x24xf32> {
  %y = nd.convolution %x, %w {x_layout = [0, 3, 1, 2], y_layout = [0, 3, 1, 2]} : (tensor<1x56x56x144xf32>, tensor<24x144x1x1xf32>) -> tensor<1x56x56x24xf32>
  func.return %y : tensor<1x56x56x24xf32>
}

// Sixty-four columns fill whole ones.
// CHECK-LABEL: kernel.func @wide_conv(
// CHECK-SAME:  #kernel.schedule<[parallel d0, parallel d1 by 14, parallel d2 by 60, parallel d3 by 64, for d4 by 144 {pack 1}, for d1, for d2 by 6, for d4, unroll d2, unroll d3 by 16, vector d3 by 16]>
func.func @wide(%x: tensor<1x56x56x144xf32>, %w: tensor<64x144x1x1xf32>) -> tensor<1x56x56x64xf32> {
  %y = nd.convolution %x, %w {x_layout = [0, 3, 1, 2], y_layout = [0, 3, 1, 2]} : (tensor<1x56x56x144xf32>, tensor<64x144x1x1xf32>) -> tensor<1x56x56x64xf32>
  func.return %y : tensor<1x56x56x64xf32>
}
