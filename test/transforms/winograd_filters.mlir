// RUN: %stepwell-opt %s --check -p 'decompose,nd-to-linalg,canonicalize,cse,propagate-layouts{always=true},fuse-elementwise,winograd{always=true}' | filecheck %s

// The gradient of filters: sixteen sums over all tiles, of 4x4 of the image and 2x2 of the places, both lengthened to whole tiles; then nine numbers of each window.
// CHECK-LABEL: func.func @filters
// CHECK:         tensor.insert_slice {{.*}} [2, 5, 7, 3] [1, 1, 1, 1] : tensor<2x5x7x3xf32> into tensor<2x8x10x3xf32>
// CHECK:         tensor.insert_slice {{.*}} [2, 5, 7, 16] [1, 1, 1, 1] : tensor<2x5x7x16xf32> into tensor<2x6x8x16xf32>
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d3, d1)>, affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
// CHECK-SAME:      outs(%{{.*}} : tensor<16x3x16xf32>)
// CHECK-COUNT-9: tensor.insert_slice {{.*}} [3, 1, 1, 16] [1, 1, 1, 1] : tensor<3x16xf32> into tensor<3x3x3x16xf32>
// CHECK-NOT:     "reduction", "reduction", "reduction"
func.func @filters(%x: tensor<2x3x5x7xf32>, %d: tensor<2x16x5x7xf32>) -> tensor<16x3x3x3xf32> {
  %w = nd.convolution %x, %d {low = [1, 1], high = [1, 1], x_layout = [1, 0, 2, 3], w_layout = [1, 0, 2, 3], y_layout = [1, 0, 2, 3]} : (tensor<2x3x5x7xf32>, tensor<2x16x5x7xf32>) -> tensor<16x3x3x3xf32>
  func.return %w : tensor<16x3x3x3xf32>
}

// Both have few features: what is summed up over places is read as it is written, for vectors along these.
// CHECK-LABEL: func.func @few
// CHECK-NOT:     kernel.no_fuse
// CHECK:         ins(%{{.*}}, %d : tensor<2x3x14x18xf32>, tensor<2x5x12x16xf32>)
// CHECK:         func.return
func.func @few(%x: tensor<2x3x12x16xf32>, %d: tensor<2x5x12x16xf32>) -> tensor<5x3x3x3xf32> {
  %w = nd.convolution %x, %d {low = [1, 1], high = [1, 1], x_layout = [1, 0, 2, 3], w_layout = [1, 0, 2, 3], y_layout = [1, 0, 2, 3]} : (tensor<2x3x12x16xf32>, tensor<2x5x12x16xf32>) -> tensor<5x3x3x3xf32>
  func.return %w : tensor<5x3x3x3xf32>
}
