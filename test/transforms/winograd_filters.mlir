// RUN: %stepwell-opt %s --check -p 'decompose,nd-to-linalg,canonicalize,cse,propagate-layouts{always=true},fuse-elementwise,winograd{always=true}' | filecheck %s

// The gradient of filters: sixteen sums over all tiles, of 4x4 of the image and 2x2 of the places, both lengthened to whole tiles; then nine numbers of each window.
// CHECK-LABEL: func.func @filters
// CHECK:         tensor.insert_slice {{.*}} [2, 7, 9, 7] [1, 1, 1, 1] : tensor<2x7x9x7xf32> into tensor<2x8x10x7xf32>
// CHECK:         tensor.insert_slice {{.*}} [2, 5, 7, 8] [1, 1, 1, 1] : tensor<2x5x7x8xf32> into tensor<2x6x8x8xf32>
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d3, d1)>, affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
// CHECK-SAME:      outs(%{{.*}} : tensor<16x7x8xf32>)
// CHECK-COUNT-9: tensor.insert_slice {{.*}} [7, 1, 1, 8] [1, 1, 1, 1] : tensor<7x8xf32> into tensor<7x3x3x8xf32>
// CHECK-NOT:     "reduction", "reduction", "reduction"
func.func @filters(%x: tensor<2x7x5x7xf32>, %d: tensor<2x8x5x7xf32>) -> tensor<8x7x3x3xf32> {
  %w = nd.convolution %x, %d {low = [1, 1], high = [1, 1], x_layout = [1, 0, 2, 3], w_layout = [1, 0, 2, 3], y_layout = [1, 0, 2, 3]} : (tensor<2x7x5x7xf32>, tensor<2x8x5x7xf32>) -> tensor<8x7x3x3xf32>
  func.return %w : tensor<8x7x3x3xf32>
}
