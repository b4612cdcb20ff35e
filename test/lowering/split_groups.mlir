// RUN: %stepwell-opt %s --check -p 'decompose,nd-to-linalg,canonicalize,cse,fuse-elementwise,outline-kernels,split-groups' | filecheck %s

// Features of a group are the rows of a tile, places its columns; the shift goes along.
// CHECK-LABEL: kernel.func @rows
// CHECK-SAME:    (%x: tensor<1x2x3x5x20xf32>, %w: tensor<2x4x3x3x3xf32>, %b: tensor<2x4xf32>, %y: tensor<1x2x4x3x18xf32>)
// CHECK-SAME:    attributes {kernel.shared = 5 : i64}
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d5, (d2 + d6), (d4 + d7))>, affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d1, d3, d5, d6, d7)>, affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d3, d2, d4)>]
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d1, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d2, d4)>]
// CHECK:       func.func @rows(
// CHECK:         tensor.expand_shape %x {{.*}} output_shape [1, 2, 3, 5, 20]
// CHECK:         kernel.launch @rows
// CHECK-NEXT:    %y_1 = tensor.collapse_shape {{.*}} : tensor<1x2x4x3x18xf32> into tensor<1x8x3x18xf32>
func.func @rows(%x: tensor<1x6x5x20xf32>, %w: tensor<8x3x3x3xf32>, %b: tensor<8xf32>) -> tensor<1x8x3x18xf32> {
  %h = nd.convolution %x, %w {groups = 2} : (tensor<1x6x5x20xf32>, tensor<8x3x3x3xf32>) -> tensor<1x8x3x18xf32>
  %bb = nd.broadcast %b {dims = [1]} : tensor<8xf32> -> tensor<1x8x3x18xf32>
  %y = nd.add %h, %bb : tensor<1x8x3x18xf32>
  func.return %y : tensor<1x8x3x18xf32>
}

// One feature of the image for two of the result: there is no loop over it.
// CHECK-LABEL: kernel.func @multiplied
// CHECK-SAME:    (%x: tensor<1x3x1x5x9xf32>, %w: tensor<3x2x1x3x3xf32>, %y: tensor<1x3x2x3x7xf32>)
// CHECK:         affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, 0, (d2 + d5), (d4 + d6))>
func.func @multiplied(%x: tensor<1x3x5x9xf32>, %w: tensor<6x1x3x3xf32>) -> tensor<1x6x3x7xf32> {
  %y = nd.convolution %x, %w {groups = 3} : (tensor<1x3x5x9xf32>, tensor<6x1x3x3xf32>) -> tensor<1x6x3x7xf32>
  func.return %y : tensor<1x6x3x7xf32>
}

// Where each feature is a group, and where there is one group, nothing is done.
// CHECK-LABEL: kernel.func @depthwise
// CHECK-SAME:    attributes {kernel.shared = 4 : i64}
func.func @depthwise(%x: tensor<1x3x5x9xf32>, %w: tensor<3x1x3x3xf32>) -> tensor<1x3x3x7xf32> {
  %y = nd.convolution %x, %w {groups = 3} : (tensor<1x3x5x9xf32>, tensor<3x1x3x3xf32>) -> tensor<1x3x3x7xf32>
  func.return %y : tensor<1x3x3x7xf32>
}
