// RUN: %stepwell-opt %s -p 'through(buffers)' | filecheck %s

// A size that is known although the type says `?`: a view may not tell more than what it views.
func.func @matrix_as_row(%x: tensor<?xi32>) -> tensor<?xi32> {
  %four = arith.constant 4 : index
  %a = nd.full 3, sizes(%four, %four) : tensor<?x?xi32>
  %b = nd.matmul %a, %a : (tensor<?x?xi32>, tensor<?x?xi32>) -> tensor<?x?xi32>
  %c = nd.matmul %a, %b : (tensor<?x?xi32>, tensor<?x?xi32>) -> tensor<?x?xi32>
  %n = arith.muli %four, %four : index
  %row = nd.reshape %c, sizes(%n) : tensor<?x?xi32> -> tensor<?xi32>
  func.return %row : tensor<?xi32>
}
// CHECK-LABEL: func.func @matrix_as_row
// CHECK: memref.expand_shape %{{.*}} output_shape [%{{.*}}, 4] : memref<?xi32> into memref<?x4xi32>
