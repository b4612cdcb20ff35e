// RUN: %stepwell-opt %s -p 'decompose,nd-to-linalg,canonicalize,cse,fuse-elementwise,outline-kernels,schedule{vector-unit=256}' | filecheck %s
// RUN: %stepwell-opt %s -p 'decompose,nd-to-linalg,canonicalize,cse,fuse-elementwise,outline-kernels,schedule' | filecheck %s --check-prefix=WHOLE

// Where the machine computes with half a vector at once, halves fill 24 columns and cost nothing else.
// CHECK-LABEL: kernel.func @narrow_conv(
// CHECK-SAME:    kernel.tile = [8 : i64, 3 : i64], kernel.block = [{{.*}}24 : i64, 144 : i64]
// CHECK:         kernel.loops = #kernel.loops<axis = 3, width = 8, interleave = 1>
// WHOLE-LABEL: kernel.func @narrow_conv(
// WHOLE:         kernel.loops = #kernel.loops<axis = 3, width = 16, interleave = 1>
func.func @narrow(%x: tensor<1x56x56x144xf32>, %w: tensor<24x144x1x1xf32>) -> tensor<1x56x56x24xf32> {
  %y = nd.convolution %x, %w {x_layout = [0, 3, 1, 2], y_layout = [0, 3, 1, 2]} : (tensor<1x56x56x144xf32>, tensor<24x144x1x1xf32>) -> tensor<1x56x56x24xf32>
  func.return %y : tensor<1x56x56x24xf32>
}

// Sixty-four columns fill whole ones.
// CHECK-LABEL: kernel.func @wide_conv(
// CHECK:         kernel.loops = #kernel.loops<axis = 3, width = 16, interleave = 1>
func.func @wide(%x: tensor<1x56x56x144xf32>, %w: tensor<64x144x1x1xf32>) -> tensor<1x56x56x64xf32> {
  %y = nd.convolution %x, %w {x_layout = [0, 3, 1, 2], y_layout = [0, 3, 1, 2]} : (tensor<1x56x56x144xf32>, tensor<64x144x1x1xf32>) -> tensor<1x56x56x64xf32>
  func.return %y : tensor<1x56x56x64xf32>
}
