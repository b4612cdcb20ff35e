// RUN: %stepwell-opt %s --check -p 'decompose,nd-to-linalg,canonicalize,cse,propagate-layouts{always=true},fuse-elementwise,winograd{always=true}' | filecheck %s

// Matrices of 48 elements lie 64 apart. Tiles are whole: the addition is taken along, and reads its image at each of the four places of a tile.
// CHECK-LABEL: func.func @residual
// CHECK:         [[X:%x_[0-9]+]] = linalg.generic {{.*}} attrs = {kernel.no_fuse}
// The filters are turned over, then vectors run along the features of the result.
// CHECK:         tensor.collapse_shape %w {{.*}} : tensor<8x8x3x3xf32> into tensor<8x72xf32>
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>]
// CHECK-SAME:      outs(%{{.*}} : tensor<72x8xf32>) attrs = {kernel.no_fuse}
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> ((d0 * 9), d1)>, affine_map<(d0, d1) -> (((d0 * 9) + 1), d1)>
// CHECK:         kernel.stack {{.*}} : tensor<8x8xf32> -> tensor<16x64xf32>
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, (d1 * 2), (d2 * 2), d3)>, affine_map<(d0, d1, d2, d3) -> (d0, (d1 * 2), ((d2 * 2) + 1), d3)>
// CHECK:         kernel.stack {{.*}} : tensor<1x2x3x8xf32> -> tensor<16x64xf32>
// CHECK:         tensor.expand_shape {{.*}} output_shape [16, 6, 8] : tensor<16x48xf32> into tensor<16x6x8xf32>
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>]
// CHECK-SAME:      outs(%{{.*}} : tensor<16x6x8xf32>)
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (0, d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (1, d0, d1, d2, d3)>
// CHECK-SAME:      [[X]], [[X]], [[X]], [[X]] :
// CHECK:         %z = tensor.insert_slice {{.*}}[0, 1, 1, 0] [1, 2, 3, 8] [1, 2, 2, 1] : tensor<1x2x3x8xf32> into tensor<1x4x6x8xf32>
// CHECK-NOT:     "reduction", "reduction", "reduction"
func.func @residual(%x: tensor<1x8x4x6xf32>, %w: tensor<8x8x3x3xf32>) -> tensor<1x8x4x6xf32> {
  %y = nd.convolution %x, %w {low = [1, 1], high = [1, 1]} : (tensor<1x8x4x6xf32>, tensor<8x8x3x3xf32>) -> tensor<1x8x4x6xf32>
  %z = nd.add %y, %x : tensor<1x8x4x6xf32>
  func.return %z : tensor<1x8x4x6xf32>
}

// An odd number of rows: the image is lengthened by zeros, the result is cut.
// CHECK-LABEL: func.func @odd
// CHECK:         tensor.insert_slice %x_1 into %{{.*}}[0, 0, 0, 0] [1, 7, 8, 8] [1, 1, 1, 1] : tensor<1x7x8x8xf32> into tensor<1x8x8x8xf32>
// CHECK:         %y = tensor.extract_slice %{{.*}}[0, 0, 0, 0] [1, 5, 6, 8] [1, 1, 1, 1] : tensor<1x6x6x8xf32> to tensor<1x5x6x8xf32>
func.func @odd(%x: tensor<1x8x7x8xf32>, %w: tensor<8x8x3x3xf32>) -> tensor<1x8x5x6xf32> {
  %y = nd.convolution %x, %w : (tensor<1x8x7x8xf32>, tensor<8x8x3x3xf32>) -> tensor<1x8x5x6xf32>
  func.return %y : tensor<1x8x5x6xf32>
}

// Steps of two are left alone.
// CHECK-LABEL: func.func @strided
// CHECK-NOT:     tensor<16x
// CHECK:         func.return
func.func @strided(%x: tensor<1x8x9x9xf32>, %w: tensor<8x8x3x3xf32>) -> tensor<1x8x4x4xf32> {
  %y = nd.convolution %x, %w {strides = [2, 2]} : (tensor<1x8x9x9xf32>, tensor<8x8x3x3xf32>) -> tensor<1x8x4x4xf32>
  func.return %y : tensor<1x8x4x4xf32>
}

// The filters read backwards: the gradient of an image.
// CHECK-LABEL: func.func @backwards
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1, 2, 2)>, affine_map<(d0, d1) -> (d0, d1, 2, 1)>
// CHECK-NOT:     "reduction", "reduction", "reduction"
func.func @backwards(%x: tensor<1x8x4x6xf32>, %w: tensor<8x7x3x3xf32>) -> tensor<1x7x4x6xf32> {
  %b = nd.reverse %w {axes = [2, 3]} : tensor<8x7x3x3xf32>
  %y = nd.convolution %x, %b {low = [1, 1], high = [1, 1], w_layout = [1, 0, 2, 3]} : (tensor<1x8x4x6xf32>, tensor<8x7x3x3xf32>) -> tensor<1x7x4x6xf32>
  func.return %y : tensor<1x7x4x6xf32>
}

// Images of unknown size: the launch counts tiles, and the image is lengthened where an axis is odd. Rows are as far apart as the launch says.
// CHECK-LABEL: func.func @unknown
// CHECK:         [[ROWS:%[0-9]+]] = arith.divui
// CHECK:         [[LENGTH:%[0-9]+]] = arith.remui
// CHECK:         tensor.insert_slice %x_1 into %{{[0-9]+}}[0, 1, 1, 0] {{.*}} into tensor<1x?x?x8xf32>
// CHECK:         kernel.stack {{.*}} by %{{[0-9]+}} : tensor<1x?x?x8xf32> -> tensor<16x?xf32>
// CHECK:         tensor.insert_slice {{.*}}[0, 1, 1, 0] {{.*}} [1, 2, 2, 1] : tensor<1x?x?x8xf32> into tensor<1x?x?x8xf32>
// CHECK:         %y = tensor.extract_slice
// CHECK-NOT:     "reduction", "reduction", "reduction"
func.func @unknown(%x: tensor<1x8x?x?xf32>, %w: tensor<8x8x3x3xf32>) -> tensor<1x8x?x?xf32> {
  %y = nd.convolution %x, %w {low = [1, 1], high = [1, 1]} : (tensor<1x8x?x?xf32>, tensor<8x8x3x3xf32>) -> tensor<1x8x?x?xf32>
  func.return %y : tensor<1x8x?x?xf32>
}
