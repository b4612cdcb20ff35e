// RUN: %stepwell-opt %s -p nd-to-linalg | filecheck %s

// Loops over batch axes, the rows of the left, the columns of the right, then what is summed over.
func.func @loops(%x: tensor<5x2x3xf32>, %w: tensor<5x3x7xf32>) -> tensor<5x2x7xf32> {
  %y = nd.dot_general %x, %w batch [0] x [0] contract [2] x [1] : (tensor<5x2x3xf32>, tensor<5x3x7xf32>) -> tensor<5x2x7xf32>
  func.return %y : tensor<5x2x7xf32>
}
// CHECK-LABEL: @loops
// CHECK:         %[[ZERO:.*]] = linalg.fill
// CHECK-NEXT:    %y = linalg.generic
// CHECK-SAME:      affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-SAME:      iterator_types = ["parallel", "parallel", "parallel", "reduction"]
// CHECK-SAME:      outs(%[[ZERO]] : tensor<5x2x7xf32>)

// f16 is summed in f32 and rounded once.
func.func @narrow(%x: tensor<?x3xf16>, %w: tensor<3x7xf16>) -> tensor<?x7xf16> {
  %y = nd.dot_general %x, %w contract [1] x [0] : (tensor<?x3xf16>, tensor<3x7xf16>) -> tensor<?x7xf16>
  func.return %y : tensor<?x7xf16>
}
// CHECK-LABEL: @narrow
// CHECK:         %[[N:.*]] = tensor.dim %x
// CHECK:         tensor.empty(%[[N]]) : tensor<?x7xf32>
// CHECK:         %[[SUM:.*]] = linalg.generic
// CHECK:           arith.extf
// CHECK:           arith.extf
// CHECK:           arith.mulf {{.*}} : f32
// CHECK:           arith.addf {{.*}} : f32
// CHECK:         tensor.empty(%[[N]]) : tensor<?x7xf16>
// CHECK:         %y = linalg.generic {{.*}} ins(%[[SUM]] : tensor<?x7xf32>)
// CHECK:           arith.truncf

// Padding is written into a tensor of zeros. The group of an output feature is its number divided by
// the features of a group.
func.func @groups(%x: tensor<2x4x9xf32>, %w: tensor<6x2x3xf32>) -> tensor<2x6x5xf32> {
  %y = nd.convolution %x, %w {strides = [2], low = [1], high = [1], groups = 2} : (tensor<2x4x9xf32>, tensor<6x2x3xf32>) -> tensor<2x6x5xf32>
  func.return %y : tensor<2x6x5xf32>
}
// CHECK-LABEL: @groups
// CHECK:         %[[PADDED:.*]] = tensor.insert_slice %x into %{{.*}}[0, 0, 1] [2, 4, 9] [1, 1, 1] : tensor<2x4x9xf32> into tensor<2x4x11xf32>
// CHECK:         %y = linalg.generic
// CHECK-SAME:      affine_map<(d0, d1, d2, d3, d4) -> (d0, (((d1 floordiv 3) * 2) + d3), ((d2 * 2) + d4))>
// CHECK-SAME:      affine_map<(d0, d1, d2, d3, d4) -> (d1, d3, d4)>
// CHECK-SAME:      affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>
// CHECK-SAME:      ins(%[[PADDED]], %w

// Depthwise, channels last, in wider integers: the group is the feature, and nothing is moved.
func.func @depthwise(%x: tensor<2x9x4xui8>, %w: tensor<4x1x3xui8>) -> tensor<2x7x4xui32> {
  %y = nd.convolution %x, %w {groups = 4, x_layout = [0, 2, 1], y_layout = [0, 2, 1], dtype = ui32} : (tensor<2x9x4xui8>, tensor<4x1x3xui8>) -> tensor<2x7x4xui32>
  func.return %y : tensor<2x7x4xui32>
}
// CHECK-LABEL: @depthwise
// CHECK:         %y = linalg.generic
// CHECK-SAME:      affine_map<(d0, d1, d2, d3) -> (d0, (d1 + d3), d2)>
// CHECK-SAME:      affine_map<(d0, d1, d2, d3) -> (d2, 0, d3)>
// CHECK-SAME:      affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK:           arith.extui
// CHECK:           arith.muli

// Nothing fits: there is nothing to compute.
func.func @empty(%x: tensor<1x2x2xf32>, %w: tensor<3x2x5xf32>) -> tensor<1x3x0xf32> {
  %y = nd.convolution %x, %w : (tensor<1x2x2xf32>, tensor<3x2x5xf32>) -> tensor<1x3x0xf32>
  func.return %y : tensor<1x3x0xf32>
}
// CHECK-LABEL: @empty
// CHECK-NEXT:    %y = tensor.empty() : tensor<1x3x0xf32>

// Elements two apart: the even places of the result meet the odd elements of the window, the odd
// places the even ones. Each is a convolution without zeros.
func.func @transposed(%x: tensor<1x2x5xf32>, %w: tensor<3x2x3xf32>) -> tensor<1x3x9xf32> {
  %y = nd.convolution %x, %w {low = [1], high = [1], lhs_dilation = [2]} : (tensor<1x2x5xf32>, tensor<3x2x3xf32>) -> tensor<1x3x9xf32>
  func.return %y : tensor<1x3x9xf32>
}
// CHECK-LABEL: @transposed
// CHECK:         %[[ODD:.*]] = tensor.extract_slice %w[0, 0, 1] [3, 2, 1] [1, 1, 2]
// CHECK:         %[[EVENS:.*]] = linalg.generic {{.*}} ins(%x, %[[ODD]]
// CHECK:         %[[HALF:.*]] = tensor.insert_slice %[[EVENS]] into %{{.*}}[0, 0, 0] [1, 3, 5] [1, 1, 2]
// CHECK:         %[[EVEN:.*]] = tensor.extract_slice %w[0, 0, 0] [3, 2, 2] [1, 1, 2]
// CHECK:         %[[ODDS:.*]] = linalg.generic {{.*}} ins(%x, %[[EVEN]]
// CHECK:         tensor.insert_slice %[[ODDS]] into %[[HALF]][0, 0, 1] [1, 3, 4] [1, 1, 2]
