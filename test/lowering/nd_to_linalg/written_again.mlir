// RUN: %stepwell-opt %s -p nd-to-linalg,canonicalize | filecheck %s
//
// A slice that is written again is a view, so that what is computed of it can be written where it lies;
// where a block begins is known where a constant says so.

// CHECK-LABEL: func.func @again
// CHECK:         tensor.extract_slice %x[1, 0] [3, 8] [1, 1]
// CHECK:         linalg.generic
// CHECK:         tensor.insert_slice {{%.*}} into %x[1, 0] [3, 8] [1, 1]
func.func @again(%x: tensor<4x8xf32>, %v: tensor<3x8xf32>) -> tensor<4x8xf32> {
  %p = nd.slice %x[1:4, :8] : tensor<4x8xf32> -> tensor<3x8xf32>
  %q = nd.add %p, %v : tensor<3x8xf32>
  %i = nd.full 1 : tensor<i64>
  %j = nd.full 0 : tensor<i64>
  %y = nd.dynamic_update_slice %x, %q, starts(%i, %j) {axes = [0, 1]} : (tensor<4x8xf32>, tensor<3x8xf32>, tensor<i64>, tensor<i64>) -> tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}

// Elsewhere it is read through a map, as ever; a start is moved so far that the block lies inside.
// CHECK-LABEL: func.func @elsewhere
// CHECK-NOT:     tensor.extract_slice
// CHECK:         tensor.insert_slice {{%.*}} into %x[0, 0] [3, 8] [1, 1]
func.func @elsewhere(%x: tensor<4x8xf32>, %v: tensor<3x8xf32>) -> tensor<4x8xf32> {
  %p = nd.slice %x[1:4, :8] : tensor<4x8xf32> -> tensor<3x8xf32>
  %q = nd.add %p, %v : tensor<3x8xf32>
  %i = nd.full -2 : tensor<i64>
  %j = nd.full 255 : tensor<ui8>
  %y = nd.dynamic_update_slice %x, %q, starts(%i, %j) {axes = [0, 1]} : (tensor<4x8xf32>, tensor<3x8xf32>, tensor<i64>, tensor<ui8>) -> tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}

// Rows that concatenations put back into what a loop carries are views, through both of them.
// CHECK-LABEL: func.func @put_back
// CHECK:         scf.for {{.*}} iter_args(%[[C:.*]] = %x)
// CHECK:           tensor.extract_slice %[[C]][3, 0] [1, 8] [1, 1]
func.func @put_back(%x: tensor<4x8xf32>, %v: tensor<3x8xf32>) -> tensor<4x8xf32> {
  %y = nd.scan (%c = %x) {length = 3} : (tensor<4x8xf32>) -> tensor<4x8xf32> {
    %p = nd.slice %c[3:4, :8] : tensor<4x8xf32> -> tensor<1x8xf32>
    %q = nd.concat %v, %p {axis = 0} : (tensor<3x8xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>
    nd.yield %q : tensor<4x8xf32>
  }
  func.return %y : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @large
// CHECK:         tensor.insert_slice %v into %x[1, 0] [3, 8] [1, 1]
func.func @large(%x: tensor<4x8xf32>, %v: tensor<3x8xf32>) -> tensor<4x8xf32> {
  %i = nd.full 18446744073709551615 : tensor<ui64>
  %y = nd.dynamic_update_slice %x, %v, starts(%i) {axes = [0]} : (tensor<4x8xf32>, tensor<3x8xf32>, tensor<ui64>) -> tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}
