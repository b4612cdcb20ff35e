// RUN: %stepwell-opt %s -p 'decompose,nd-to-linalg,canonicalize,cse,propagate-layouts,fuse-elementwise,outline-kernels,schedule' | filecheck %s

// Few features of every second place: a tile has them all, and picks places from whole vectors.
// CHECK-LABEL: kernel.func @picked_conv(
// CHECK-SAME:  #kernel.schedule<[parallel d0, parallel d1, parallel d2 by 10 {grain 2}, for d3 by 32 overlap, for d4, for d5, for d6, unroll d2, unroll d3 by 16, vector d3 by 16]>
func.func @picked(%x: tensor<1x24x57x57xf32>, %w: tensor<10x24x3x3xf32>) -> tensor<1x10x28x28xf32> {
  %y = nd.convolution %x, %w {strides = [2, 2]} : (tensor<1x24x57x57xf32>, tensor<10x24x3x3xf32>) -> tensor<1x10x28x28xf32>
  func.return %y : tensor<1x10x28x28xf32>
}

// Large windows would pick each place often: features go last, in a vector that they nearly fill.
// CHECK-LABEL: kernel.func @large_conv(
// CHECK-SAME:    tensor<1x29x29x64xf32>
// CHECK-SAME:  #kernel.schedule<[parallel d0, parallel d1 by 6, parallel d2 by 14, parallel d3 by 16, for d6 by 64 {pack 1}, for d1, for d4, for d5, for d6, unroll d2, vector d3 by 16]>
func.func @large(%x: tensor<1x64x29x29xf32>, %w: tensor<14x64x7x7xf32>) -> tensor<1x14x12x12xf32> {
  %y = nd.convolution %x, %w {strides = [2, 2]} : (tensor<1x64x29x29xf32>, tensor<14x64x7x7xf32>) -> tensor<1x14x12x12xf32>
  func.return %y : tensor<1x14x12x12xf32>
}

// Steps of two reach over four times as many places as there are results: a block takes fewer lines.
// CHECK-LABEL: kernel.func @lines_conv(
// CHECK-SAME:  #kernel.schedule<[parallel d0, parallel d1 by 9, parallel d2 by 42, parallel d3 by 32, for d6 by 80 {pack 1, prefetch}, for d1, for d2 by 14, for d4, for d5, for d6, unroll d2, unroll d3 by 16, vector d3 by 16]>
func.func @lines(%x: tensor<1x75x75x376xf32>, %w: tensor<215x376x5x5xf32>) -> tensor<1x36x36x215xf32> {
  %y = nd.convolution %x, %w {strides = [2, 2], x_layout = [0, 3, 1, 2], y_layout = [0, 3, 1, 2]} : (tensor<1x75x75x376xf32>, tensor<215x376x5x5xf32>) -> tensor<1x36x36x215xf32>
  func.return %y : tensor<1x36x36x215xf32>
}

// An image that is padded is copied in any layout: to transpose it meanwhile costs less.
// CHECK-LABEL: kernel.func @padded_conv(
// CHECK-SAME:    tensor<1x109x109x166xf32>
func.func @padded(%x: tensor<1x166x107x107xf32>, %w: tensor<15x166x3x3xf32>) -> tensor<1x15x54x54xf32> {
  %y = nd.convolution %x, %w {strides = [2, 2], low = [1, 1], high = [1, 1]} : (tensor<1x166x107x107xf32>, tensor<15x166x3x3xf32>) -> tensor<1x15x54x54xf32>
  func.return %y : tensor<1x15x54x54xf32>
}

// A tile that holds all features reads beyond the edges of rows: nothing is copied, nor transposed.
// CHECK-LABEL: kernel.func @narrow_conv(
// CHECK-SAME:    %x: tensor<1x166x107x107xf32>
// CHECK-SAME:  #kernel.schedule<[parallel d0, parallel d1, parallel d2 by 14, for d3 by 32 overlap, for d4 {prefetch}, for d5, unroll d6, unroll d2, unroll d3 by 16, vector d3 by 16]>
func.func @narrow(%x: tensor<1x166x107x107xf32>, %w: tensor<14x166x3x3xf32>) -> tensor<1x14x54x54xf32> {
  %y = nd.convolution %x, %w {strides = [2, 2], low = [1, 1], high = [1, 1]} : (tensor<1x166x107x107xf32>, tensor<14x166x3x3xf32>) -> tensor<1x14x54x54xf32>
  func.return %y : tensor<1x14x54x54xf32>
}

// Features that fill vectors would pick places too, once for each tile of them.
// CHECK-LABEL: kernel.func @pairs_conv(
// CHECK-SAME:    tensor<1x57x57x64xf32>
func.func @pairs(%x: tensor<1x64x57x57xf32>, %w: tensor<28x64x3x3xf32>) -> tensor<1x28x28x28xf32> {
  %y = nd.convolution %x, %w {strides = [2, 2]} : (tensor<1x64x57x57xf32>, tensor<28x64x3x3xf32>) -> tensor<1x28x28x28xf32>
  func.return %y : tensor<1x28x28x28xf32>
}

// A depthwise convolution never makes the border of an image whose rows are last: nothing is copied.
// CHECK-LABEL: kernel.func @unmade_
// CHECK-SAME:    tensor<1x96x56x56xf32>
func.func @unmade(%x: tensor<1x96x56x56xf32>, %w: tensor<96x1x5x5xf32>) -> tensor<1x96x28x28xf32> {
  %y = nd.convolution %x, %w {groups = 96, strides = [2, 2], low = [2, 2], high = [2, 2]} : (tensor<1x96x56x56xf32>, tensor<96x1x5x5xf32>) -> tensor<1x96x28x28xf32>
  func.return %y : tensor<1x96x28x28xf32>
}
