// RUN: %stepwell-opt %s -p 'decompose,nd-to-linalg,canonicalize,cse,propagate-layouts' | filecheck %s

// A residual block: the image is turned over once, read again by the addition, and turned back.
// CHECK-LABEL: func.func @residual
// CHECK:         [[X:%x_[0-9]+]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>]
// CHECK-SAME:      ins(%x : tensor<1x32x28x28xf32>) {{.*}} attrs = {kernel.no_fuse}
// CHECK:         tensor.insert_slice [[X]] into %{{.*}}[0, 1, 1, 0] [1, 28, 28, 32] [1, 1, 1, 1] : tensor<1x28x28x32xf32> into tensor<1x30x30x32xf32>
// CHECK-NOT:     attrs = {kernel.no_fuse}
// CHECK:         %a = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, (d1 + d4), (d2 + d5), d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d3, d6, d4, d5)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>]
// CHECK-NOT:     attrs = {kernel.no_fuse}
// CHECK:         tensor.insert_slice %b into %{{.*}} : tensor<1x28x28x32xf32> into tensor<1x30x30x32xf32>
// CHECK-NOT:     attrs = {kernel.no_fuse}
// CHECK:         %c = linalg.generic
// CHECK-NOT:     attrs = {kernel.no_fuse}
// CHECK:         %d = linalg.generic {{.*}} ins(%c, [[X]] : tensor<1x28x28x32xf32>, tensor<1x28x28x32xf32>)
// CHECK-NOT:     attrs = {kernel.no_fuse}
// CHECK:         %e = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
// CHECK:         [[E:%e_[0-9]+]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>]
// CHECK-SAME:      ins(%e : tensor<1x28x28x32xf32>) outs(%{{.*}} : tensor<1x32x28x28xf32>) attrs = {kernel.no_fuse}
// CHECK:         func.return [[E]] : tensor<1x32x28x28xf32>
func.func @residual(%x: tensor<1x32x28x28xf32>, %v: tensor<32x32x3x3xf32>, %w: tensor<32x32x3x3xf32>) -> tensor<1x32x28x28xf32> {
  %a = nd.convolution %x, %v {low = [1, 1], high = [1, 1]} : (tensor<1x32x28x28xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x28x28xf32>
  %b = nd.relu %a : tensor<1x32x28x28xf32>
  %c = nd.convolution %b, %w {low = [1, 1], high = [1, 1]} : (tensor<1x32x28x28xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x28x28xf32>
  %d = nd.add %c, %x : tensor<1x32x28x28xf32>
  %e = nd.relu %d : tensor<1x32x28x28xf32>
  func.return %e : tensor<1x32x28x28xf32>
}

// Two stages, the second of half the size, from an image of three features, which stays as it is, to
// the sum over each feature, which needs no transpose: there is none at all.
// CHECK-LABEL: func.func @stages
// CHECK:         %x_1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>]
// CHECK-SAME:      attrs = {kernel.no_fuse}
// CHECK-NOT:     attrs = {kernel.no_fuse}
// CHECK:         %stem = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, ((d1 * 2) + d5), ((d2 * 2) + d6))>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d3, d4, d5, d6)>
// CHECK-SAME:      outs(%{{.*}} : tensor<2x32x32x32xf32>)
// CHECK:         %pool = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, ((d1 * 2) + d4), ((d2 * 2) + d5), d3)>
// CHECK-SAME:      outs(%{{.*}} : tensor<2x16x16x32xf32>)
// CHECK:         %down = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, ((d1 * 2) + d4), ((d2 * 2) + d5), d6)>
// CHECK:         %short = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, (d1 * 2), (d2 * 2), d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d3, d4, 0, 0)>
// CHECK:         %sum = linalg.generic {{.*}} ins(%both : tensor<2x8x8x64xf32>) outs(%{{.*}} : tensor<2x64xf32>)
// CHECK-NOT:     attrs = {kernel.no_fuse}
// CHECK:         func.return
func.func @stages(%x: tensor<2x3x64x64xf32>, %u: tensor<32x3x7x7xf32>, %v: tensor<64x32x3x3xf32>, %w: tensor<64x32x1x1xf32>) -> tensor<2x64xf32> {
  %stem = nd.convolution %x, %u {strides = [2, 2], low = [3, 3], high = [3, 3]} : (tensor<2x3x64x64xf32>, tensor<32x3x7x7xf32>) -> tensor<2x32x32x32xf32>
  %pool = nd.max_pool %stem {window = [3, 3], strides = [2, 2], low = [1, 1], high = [1, 1]} : tensor<2x32x32x32xf32> -> tensor<2x32x16x16xf32>
  %down = nd.convolution %pool, %v {strides = [2, 2], low = [1, 1], high = [1, 1]} : (tensor<2x32x16x16xf32>, tensor<64x32x3x3xf32>) -> tensor<2x64x8x8xf32>
  %short = nd.convolution %pool, %w {strides = [2, 2]} : (tensor<2x32x16x16xf32>, tensor<64x32x1x1xf32>) -> tensor<2x64x8x8xf32>
  %both = nd.add %down, %short : tensor<2x64x8x8xf32>
  %sum = nd.reduce_sum %both {axes = [2, 3]} : tensor<2x64x8x8xf32> -> tensor<2x64xf32>
  func.return %sum : tensor<2x64xf32>
}

// An inverted residual: the filters of the depthwise convolution are turned over as well.
// CHECK-LABEL: func.func @inverted
// CHECK:         [[X:%x_[0-9]+]] = linalg.generic {{.*}} ins(%x : tensor<1x16x14x14xf32>) {{.*}} attrs = {kernel.no_fuse}
// CHECK:         %a = linalg.generic {{.*}} ins([[X]], %u : tensor<1x14x14x16xf32>, tensor<64x16x1x1xf32>)
// CHECK:         [[V:%v_[0-9]+]] = linalg.generic {{.*}} ins(%v : tensor<64x1x3x3xf32>) outs(%{{.*}} : tensor<1x3x3x64xf32>) attrs = {kernel.no_fuse}
// CHECK:         %c = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, (d1 + d4), (d2 + d5), d3)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (0, d4, d5, d3)>
// CHECK:         %e = linalg.generic {{.*}} ins(%d, %w : tensor<1x14x14x64xf32>, tensor<16x64x1x1xf32>)
// CHECK:         %f = linalg.generic {{.*}} ins(%e, [[X]] :
// CHECK:         attrs = {kernel.no_fuse}
// CHECK:         func.return
func.func @inverted(%x: tensor<1x16x14x14xf32>, %u: tensor<64x16x1x1xf32>, %v: tensor<64x1x3x3xf32>, %w: tensor<16x64x1x1xf32>) -> tensor<1x16x14x14xf32> {
  %a = nd.convolution %x, %u : (tensor<1x16x14x14xf32>, tensor<64x16x1x1xf32>) -> tensor<1x64x14x14xf32>
  %b = nd.relu %a : tensor<1x64x14x14xf32>
  %c = nd.convolution %b, %v {low = [1, 1], high = [1, 1], groups = 64} : (tensor<1x64x14x14xf32>, tensor<64x1x3x3xf32>) -> tensor<1x64x14x14xf32>
  %d = nd.relu %c : tensor<1x64x14x14xf32>
  %e = nd.convolution %d, %w : (tensor<1x64x14x14xf32>, tensor<16x64x1x1xf32>) -> tensor<1x16x14x14xf32>
  %f = nd.add %e, %x : tensor<1x16x14x14xf32>
  func.return %f : tensor<1x16x14x14xf32>
}

// A transpose of the program's own goes away: features are last already.
// CHECK-LABEL: func.func @turned_by_hand
// CHECK-NOT:     attrs = {kernel.no_fuse}
// CHECK-NOT:     (d0, d2, d3, d1)
// CHECK:         func.return
func.func @turned_by_hand(%x: tensor<1x28x28x32xf32>, %w: tensor<32x32x3x3xf32>) -> tensor<1x26x26x32xf32> {
  %a = nd.transpose %x {permutation = [0, 3, 1, 2]} : tensor<1x28x28x32xf32> -> tensor<1x32x28x28xf32>
  %b = nd.convolution %a, %w : (tensor<1x32x28x28xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x26x26xf32>
  %c = nd.transpose %b {permutation = [0, 2, 3, 1]} : tensor<1x32x26x26xf32> -> tensor<1x26x26x32xf32>
  func.return %c : tensor<1x26x26x32xf32>
}

// Six features do not fill a vector, and turning the images over would cost more than it saves.
// CHECK-LABEL: func.func @narrow
// CHECK-NOT:     attrs = {kernel.no_fuse}
// CHECK:         affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, (d2 + d5), (d3 + d6))>
// CHECK-NOT:     attrs = {kernel.no_fuse}
// CHECK:         func.return
func.func @narrow(%x: tensor<1x6x28x28xf32>, %w: tensor<6x6x3x3xf32>) -> tensor<1x6x26x26xf32> {
  %a = nd.convolution %x, %w : (tensor<1x6x28x28xf32>, tensor<6x6x3x3xf32>) -> tensor<1x6x26x26xf32>
  func.return %a : tensor<1x6x26x26xf32>
}

// A program without windows is left alone.
// CHECK-LABEL: func.func @no_window
// CHECK:         %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>
// CHECK-NOT:     attrs = {kernel.no_fuse}
// CHECK:         func.return
func.func @no_window(%x: tensor<8x9xf32>) -> tensor<9x8xf32> {
  %y = nd.transpose %x {permutation = [1, 0]} : tensor<8x9xf32> -> tensor<9x8xf32>
  func.return %y : tensor<9x8xf32>
}

// Only the border of a padded image is filled: rows above and below, then columns,
// which lie in many places and are marked. An argument is copied by a kernel.
// CHECK-LABEL: func.func @border
// CHECK:         [[ROWS:%[0-9]+]] = linalg.fill {{.*}} -> tensor<1x4x1x64xf32>
// CHECK-NEXT:    {{.*}} = tensor.insert_slice [[ROWS]] into %{{.*}}[0, 0, 0, 0] [1, 4, 1, 64] [1, 1, 1, 1]
// CHECK:         tensor.insert_slice %{{.*}} into %{{.*}}[0, 0, 33, 0] [1, 4, 1, 64] [1, 1, 1, 1]
// CHECK:         linalg.fill {kernel.no_fuse} {{.*}} -> tensor<1x4x32x2xf32>
// CHECK:         tensor.insert_slice %{{.*}} into %{{.*}}[0, 0, 1, 62] [1, 4, 32, 2] [1, 1, 1, 1]
// CHECK:         %x_1 = linalg.generic {{.*}} attrs = {kernel.no_fuse}
// CHECK:         tensor.insert_slice %x_1 into %{{.*}}[0, 0, 1, 0] [1, 4, 32, 62] [1, 1, 1, 1]
func.func @border(%x: tensor<1x4x32x62xf32>) -> tensor<1x4x32x62xf32> {
  %y = nd.max_pool %x {window = [3, 3], strides = [1, 1], low = [1, 0], high = [1, 2]} : tensor<1x4x32x62xf32> -> tensor<1x4x32x62xf32>
  func.return %y : tensor<1x4x32x62xf32>
}

// A lone pooling with strides is read as it lies: two copies would take longer than vectors in steps of two along rows.
// CHECK-LABEL: func.func @lone_pool
// CHECK-NOT:     attrs = {kernel.no_fuse}
// CHECK:         func.return
func.func @lone_pool(%x: tensor<1x32x31x31xf32>) -> tensor<1x32x15x15xf32> {
  %y = nd.max_pool %x {window = [3, 3], strides = [2, 2], low = [0, 0], high = [0, 0]} : tensor<1x32x31x31xf32> -> tensor<1x32x15x15xf32>
  func.return %y : tensor<1x32x15x15xf32>
}

// A product summed over images and their places, as a gradient of filters of one element, reads both as the image lies: neither is turned back.
// CHECK-LABEL: func.func @summed_places
// CHECK:         %a = linalg.generic
// CHECK:         %b = linalg.generic
// CHECK-NOT:     attrs = {kernel.no_fuse}
// CHECK:         %d = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d2, d3, d4, d0)>, affine_map<(d0, d1, d2, d3, d4) -> (d2, d3, d4, d1)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1)>]
// CHECK-SAME:      ins(%b, %a : tensor<2x28x28x32xf32>, tensor<2x28x28x32xf32>)
// CHECK-NEXT:    ^bb0
// CHECK-NOT:     attrs = {kernel.no_fuse}
// CHECK:         func.return
func.func @summed_places(%x: tensor<2x32x30x30xf32>, %w: tensor<32x32x3x3xf32>) -> tensor<32x32xf32> {
  %a = nd.convolution %x, %w : (tensor<2x32x30x30xf32>, tensor<32x32x3x3xf32>) -> tensor<2x32x28x28xf32>
  %b = nd.relu %a : tensor<2x32x28x28xf32>
  %d = nd.dot_general %b, %a contract [0, 2, 3] x [0, 2, 3] : (tensor<2x32x28x28xf32>, tensor<2x32x28x28xf32>) -> tensor<32x32xf32>
  func.return %d : tensor<32x32xf32>
}

// The gradient of depthwise filters over short rows: both images are turned over, and nine sums for each feature are made at once.
// CHECK-LABEL: func.func @taps
// CHECK:         tensor<4x7x7x64xf32>) attrs = {kernel.no_fuse}
// CHECK-COUNT-9: tensor.extract_slice %{{.*}} : tensor<4x9x9x64xf32> to tensor<4x7x7x64xf32>
// CHECK:         tensor<4x7x7x64xf32>) attrs = {kernel.no_fuse}
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d1, d2, d3, d0)>
// CHECK:         -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
func.func @taps(%x: tensor<4x64x7x7xf32>, %g: tensor<4x64x7x7xf32>) -> tensor<1x64x3x3xf32> {
  %y = nd.convolution %x, %g {batch_groups = 64, low = [1, 1], high = [1, 1], x_layout = [1, 0, 2, 3], w_layout = [1, 0, 2, 3]} : (tensor<4x64x7x7xf32>, tensor<4x64x7x7xf32>) -> tensor<1x64x3x3xf32>
  func.return %y : tensor<1x64x3x3xf32>
}

// Two filters for each feature: no vectors can be made of features, so the places come last.
// CHECK-LABEL: func.func @multiplied
// CHECK:         ins(%x : tensor<2x56x56x16xf32>) outs(%{{.*}} : tensor<2x16x56x56xf32>) attrs = {kernel.no_fuse}
// CHECK:         %y = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, (d1 floordiv 2), (d2 + d4), (d3 + d5))>
// CHECK:         outs(%{{.*}} : tensor<2x54x54x32xf32>) attrs = {kernel.no_fuse}
func.func @multiplied(%x: tensor<2x56x56x16xf32>, %w: tensor<3x3x1x32xf32>) -> tensor<2x54x54x32xf32> {
  %y = nd.convolution %x, %w {groups = 16, x_layout = [0, 3, 1, 2], w_layout = [3, 2, 0, 1], y_layout = [0, 3, 1, 2]} : (tensor<2x56x56x16xf32>, tensor<3x3x1x32xf32>) -> tensor<2x54x54x32xf32>
  func.return %y : tensor<2x54x54x32xf32>
}

// Three columns fill no vector: the weights are transposed, for the rows are side by side along the sum.
// CHECK-LABEL: func.func @few_columns
// CHECK:         ins(%w : tensor<64x3xf32>) outs(%{{.*}} : tensor<3x64xf32>) attrs = {kernel.no_fuse}
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>]
func.func @few_columns(%x: tensor<?x64xf32>, %w: tensor<64x3xf32>) -> tensor<?x3xf32> {
  %y = nd.matmul %x, %w : (tensor<?x64xf32>, tensor<64x3xf32>) -> tensor<?x3xf32>
  func.return %y : tensor<?x3xf32>
}

// Here the first operand has its rows side by side: the result is computed transposed.
// CHECK-LABEL: func.func @few_columns_of_rows
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d2, d0)>, affine_map<(d0, d1, d2) -> (d0, d1)>]
// CHECK-SAME:    outs(%{{.*}} : tensor<5x64xf32>)
// CHECK:         outs(%{{.*}} : tensor<64x5xf32>) attrs = {kernel.no_fuse}
func.func @few_columns_of_rows(%x: tensor<100x64xf32>, %g: tensor<100x5xf32>) -> tensor<64x5xf32> {
  %y = nd.dot_general %x, %g contract [0] x [0] : (tensor<100x64xf32>, tensor<100x5xf32>) -> tensor<64x5xf32>
  func.return %y : tensor<64x5xf32>
}

// Sixteen columns, three rows, or weights that are transposed already need nothing.
// CHECK-LABEL: func.func @wide_enough
// CHECK-NOT:     kernel.no_fuse
// CHECK:         func.return
func.func @wide_enough(%x: tensor<9x64xf32>, %w: tensor<64x16xf32>, %few: tensor<3x64xf32>, %v: tensor<64x5xf32>, %t: tensor<5x64xf32>)
    -> (tensor<9x16xf32>, tensor<3x5xf32>, tensor<9x5xf32>) {
  %a = nd.matmul %x, %w : (tensor<9x64xf32>, tensor<64x16xf32>) -> tensor<9x16xf32>
  %b = nd.matmul %few, %v : (tensor<3x64xf32>, tensor<64x5xf32>) -> tensor<3x5xf32>
  %u = nd.transpose %t {permutation = [1, 0]} : tensor<5x64xf32> -> tensor<64x5xf32>
  %c = nd.matmul %x, %u : (tensor<9x64xf32>, tensor<64x5xf32>) -> tensor<9x5xf32>
  func.return %a, %b, %c : tensor<9x16xf32>, tensor<3x5xf32>, tensor<9x5xf32>
}
