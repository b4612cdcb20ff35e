// RUN: %stepwell-opt %s -p nd-to-linalg | filecheck %s

// Transpose, broadcast, strided slice and reverse read through a map.

// CHECK-LABEL: func.func @views
func.func @views(%x: tensor<4x8xf32>) -> (tensor<8x4xf32>, tensor<4x2x8xf32>, tensor<2x3xf32>, tensor<4x8xf32>) {
  // CHECK: affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>{{.*}} ins(%x : tensor<4x8xf32>) outs(%{{.*}} : tensor<8x4xf32>)
  // CHECK: linalg.yield
  %0 = nd.transpose %x {permutation = [1, 0]} : tensor<4x8xf32> -> tensor<8x4xf32>
  // CHECK: affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>
  %1 = nd.broadcast %x {dims = [0, 2]} : tensor<4x8xf32> -> tensor<4x2x8xf32>
  // CHECK: affine_map<(d0, d1) -> ((d0 + 2), ((d1 * 3) + 1))>, affine_map<(d0, d1) -> (d0, d1)>
  %2 = nd.slice %x[2:, 1::3] : tensor<4x8xf32> -> tensor<2x3xf32>
  // CHECK: affine_map<(d0, d1) -> (d0, ((d1 * -1) + 7))>, affine_map<(d0, d1) -> (d0, d1)>
  %3 = nd.reverse %x {axes = [1]} : tensor<4x8xf32>
  func.return %0, %1, %2, %3 : tensor<8x4xf32>, tensor<4x2x8xf32>, tensor<2x3xf32>, tensor<4x8xf32>
}

// A slice that only leaves off the end, or begins at a computed place, is extracted.

// CHECK-LABEL: func.func @parts
func.func @parts(%x: tensor<?x8xf32>, %i: tensor<i32>) -> (tensor<?x3xf32>, tensor<?x8xf32>, tensor<1x8xf32>) {
  // CHECK: tensor.extract_slice %x[0, 0] [%{{.*}}, 3] [1, 1] : tensor<?x8xf32> to tensor<?x3xf32>
  %0 = nd.slice %x[:, :3] : tensor<?x8xf32> -> tensor<?x3xf32>
  // CHECK: tensor.extract_slice %x[%{{.*}}, 0] [%{{.*}}, 8] [1, 1] : tensor<?x8xf32> to tensor<?x8xf32>
  %1 = nd.slice %x[-2:, :] : tensor<?x8xf32>
  // CHECK: %[[I:.*]] = tensor.extract %i[] : tensor<i32>
  // CHECK: tensor.extract_slice %x[%{{.*}}, 0] [1, 8] [1, 1] : tensor<?x8xf32> to tensor<1x8xf32>
  %2 = nd.dynamic_slice %x, starts(%i) {axes = [0], sizes = [1]} : (tensor<?x8xf32>, tensor<i32>) -> tensor<1x8xf32>
  func.return %0, %1, %2 : tensor<?x3xf32>, tensor<?x8xf32>, tensor<1x8xf32>
}

// A reshape merges and splits no more axes than it must.

// CHECK-LABEL: func.func @reshapes
func.func @reshapes(%x: tensor<?x4x6xf32>) -> (tensor<?x24xf32>, tensor<?x1x4x2x3xf32>, tensor<?x3x8xf32>) {
  // CHECK: tensor.collapse_shape %x {{\[\[}}0 : i64], [1 : i64, 2 : i64]] : tensor<?x4x6xf32> into tensor<?x24xf32>
  %0 = nd.reshape %x : tensor<?x4x6xf32> -> tensor<?x24xf32>
  // CHECK: tensor.expand_shape %x {{\[\[}}0 : i64], [1 : i64, 2 : i64], [3 : i64, 4 : i64]] output_shape [%{{.*}}, 1, 4, 2, 3]
  %1 = nd.reshape %x : tensor<?x4x6xf32> -> tensor<?x1x4x2x3xf32>
  // CHECK: %[[FLAT:.*]] = tensor.collapse_shape %x {{\[\[}}0 : i64], [1 : i64, 2 : i64]]
  // CHECK: tensor.expand_shape %[[FLAT]] {{\[\[}}0 : i64], [1 : i64, 2 : i64]] output_shape [%{{.*}}, 3, 8]
  %2 = nd.reshape %x : tensor<?x4x6xf32> -> tensor<?x3x8xf32>
  func.return %0, %1, %2 : tensor<?x24xf32>, tensor<?x1x4x2x3xf32>, tensor<?x3x8xf32>
}

// Pad and concat write into one destination, which bufferization fills in place.

// CHECK-LABEL: func.func @destinations
func.func @destinations(%x: tensor<2x3xf32>, %v: tensor<f32>) -> (tensor<5x3xf32>, tensor<4x3xf32>) {
  // CHECK: %[[E:.*]] = tensor.empty() : tensor<5x3xf32>
  // CHECK: %[[F:.*]] = linalg.generic {{.*}} ins(%v : tensor<f32>) outs(%[[E]] : tensor<5x3xf32>)
  // CHECK: tensor.insert_slice %x into %[[F]][1, 0] [2, 3] [2, 1]
  %0 = nd.pad %x, %v {low = [1, 0], high = [1, 0], interior = [1, 0]} : (tensor<2x3xf32>, tensor<f32>) -> tensor<5x3xf32>
  // CHECK: %[[C:.*]] = tensor.empty() : tensor<4x3xf32>
  // CHECK: %[[D:.*]] = tensor.insert_slice %x into %[[C]][0, 0] [2, 3] [1, 1]
  // CHECK: tensor.insert_slice %x into %[[D]][2, 0] [2, 3] [1, 1]
  %1 = nd.concat %x, %x {axis = 0} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  func.return %0, %1 : tensor<5x3xf32>, tensor<4x3xf32>
}

// Gather reads with tensor.extract at a clamped index; scatter is a loop nest that drops what is outside.

// CHECK-LABEL: func.func @indexing
func.func @indexing(%x: tensor<5x3xf32>, %i: tensor<7xui8>, %u: tensor<7x3xf32>) -> (tensor<7x3xf32>, tensor<5x3xf32>) {
  // CHECK: linalg.generic {{.*}} -> (d0)>, {{.*}} ins(%i : tensor<7xi8>)
  // CHECK: arith.minui
  // CHECK: arith.extui
  // CHECK: %[[ROW:.*]] = arith.index_cast
  // CHECK: tensor.extract %x[%[[ROW]], %{{.*}}]
  %0 = nd.gather %x, indices(%i) {axes = [0]} : (tensor<5x3xf32>, tensor<7xui8>) -> tensor<7x3xf32>
  // CHECK: scf.for
  // CHECK: %[[IN:.*]] = arith.cmpi ult
  // CHECK: scf.if %[[IN]] -> (tensor<5x3xf32>)
  // CHECK: scf.for
  // CHECK: arith.addf
  // CHECK: tensor.insert
  %1 = nd.scatter_add %x, %u, indices(%i) {axes = [0]} : (tensor<5x3xf32>, tensor<7x3xf32>, tensor<7xui8>) -> tensor<5x3xf32>
  func.return %0, %1 : tensor<7x3xf32>, tensor<5x3xf32>
}

// Long rows are scattered in blocks of columns, each of which reads all indices: threads share them.

// CHECK-LABEL: func.func @blocks_of_columns
func.func @blocks_of_columns(%x: tensor<5x130xf32>, %i: tensor<7xi32>, %u: tensor<7x130xf32>) -> tensor<5x130xf32> {
  // CHECK: %[[WIDTH:.*]] = arith.constant 80 : index
  // CHECK: %[[LOW:.*]] = arith.muli %{{.*}}, %[[WIDTH]]
  // CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} -> (tensor<5x130xf32>)
  // CHECK: scf.for %{{.*}} = %[[LOW]] to
  // CHECK: } {kernel.independent}
  %0 = nd.scatter_add %x, %u, indices(%i) {axes = [0]} : (tensor<5x130xf32>, tensor<7x130xf32>, tensor<7xi32>) -> tensor<5x130xf32>
  func.return %0 : tensor<5x130xf32>
}

// Updates that cover zeros need none: they are written into an empty tensor.

// CHECK-LABEL: func.func @covered
func.func @covered(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  %zeros = nd.full 0.0 : tensor<4x3xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: linalg.fill
  // CHECK: %[[EMPTY:.*]] = tensor.empty() : tensor<4x3xf32>
  // CHECK: %[[EVEN:.*]] = tensor.insert_slice %a into %[[EMPTY]][0, 0] [2, 3] [2, 1]
  // CHECK: tensor.insert_slice %b into %[[EVEN]][1, 0] [2, 3] [2, 1]
  %0 = nd.dynamic_update_slice %zeros, %a, starts(%c0) {axes = [0], strides = [2]} : (tensor<4x3xf32>, tensor<2x3xf32>, index) -> tensor<4x3xf32>
  %1 = nd.dynamic_update_slice %0, %b, starts(%c1) {axes = [0], strides = [2]} : (tensor<4x3xf32>, tensor<2x3xf32>, index) -> tensor<4x3xf32>
  // CHECK: tensor.insert_slice %a into %zeros[0, 0]
  // CHECK: tensor.insert_slice %b into %{{.*}}[2, 0]
  %2 = nd.dynamic_update_slice %zeros, %a, starts(%c0) {axes = [0], strides = [2]} : (tensor<4x3xf32>, tensor<2x3xf32>, index) -> tensor<4x3xf32>
  %c2 = arith.constant 2 : index
  %3 = nd.dynamic_update_slice %2, %b, starts(%c2) {axes = [0]} : (tensor<4x3xf32>, tensor<2x3xf32>, index) -> tensor<4x3xf32>
  func.return %1, %3 : tensor<4x3xf32>, tensor<4x3xf32>
}
