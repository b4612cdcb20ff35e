// RUN: %stepwell-opt %s -p bufferize --verify-each | filecheck %s
// A result is written in another shape than it is returned in; that the sizes agree is checked by the call.

kernel.func @copy(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>) -> tensor<?x3xf32> attributes {kernel.shared = 2 : i64} {
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x3xf32>) outs(%y : tensor<?x3xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<?x3xf32>
  kernel.return %r : tensor<?x3xf32>
}

// CHECK-LABEL: func.func @main(
// CHECK-NOT: memref.copy
// CHECK: kernel.launch @copy
// CHECK-NEXT: func.return
func.func @main(%x: tensor<?x3xf32>, %like: tensor<?xf32>) -> tensor<?x1xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x3xf32>
  %m = tensor.dim %like, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?x3xf32>
  %y = kernel.launch @copy ins(%x : tensor<?x3xf32>) outs(%e : tensor<?x3xf32>) -> tensor<?x3xf32>
  %flat = tensor.collapse_shape %y [[0, 1]] : tensor<?x3xf32> into tensor<?xf32>
  %r = tensor.expand_shape %flat [[0, 1]] output_shape [%m, 1] : tensor<?xf32> into tensor<?x1xf32>
  func.return %r : tensor<?x1xf32>
}

// The same, of what is inserted into another array.
// CHECK-LABEL: func.func @part(
// CHECK: kernel.launch @copy
// CHECK-NEXT: memref.subview
// CHECK-NEXT: memref.copy
// CHECK-NEXT: func.return
func.func @part(%x: tensor<?x3xf32>, %row: tensor<3xf32>, %like: tensor<?xf32>) -> tensor<?x1xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x3xf32>
  %m = tensor.dim %like, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?x3xf32>
  %y = kernel.launch @copy ins(%x : tensor<?x3xf32>) outs(%e : tensor<?x3xf32>) -> tensor<?x3xf32>
  %z = tensor.insert_slice %row into %y[0, 0] [1, 3] [1, 1] : tensor<3xf32> into tensor<?x3xf32>
  %flat = tensor.collapse_shape %z [[0, 1]] : tensor<?x3xf32> into tensor<?xf32>
  %r = tensor.expand_shape %flat [[0, 1]] output_shape [%m, 1] : tensor<?xf32> into tensor<?x1xf32>
  func.return %r : tensor<?x1xf32>
}
