// RUN: %stepwell-opt %s -p bufferize --verify-each | filecheck %s

// Both buffers of the loop hold the edges before it; one of these buffers is a result in another shape.
// CHECK-LABEL: func.func @reshaped(
// CHECK-COUNT-4: memref.copy
// CHECK-NOT:     memref.copy
// CHECK:         scf.for
// CHECK:           memref.copy
// CHECK-NEXT:      scf.yield
func.func @reshaped(%x: tensor<6x7xf32>) -> tensor<42xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %y = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x) -> (tensor<6x7xf32>) {
    %b = tensor.extract_slice %a[0, 0] [4, 6] [1, 1] : tensor<6x7xf32> to tensor<4x6xf32>
    %c = tensor.insert_slice %b into %a[1, 1] [4, 6] [1, 1] : tensor<4x6xf32> into tensor<6x7xf32>
    scf.yield %c : tensor<6x7xf32>
  }
  %r = tensor.collapse_shape %y [[0, 1]] : tensor<6x7xf32> into tensor<42xf32>
  func.return %r : tensor<42xf32>
}

// Each iteration writes its value into a row of a result in another shape.
// CHECK-LABEL: func.func @rows(
// CHECK:         scf.for
func.func @rows(%x: tensor<6x7xf32>) -> tensor<126xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %e = tensor.empty() : tensor<3x6x7xf32>
  %y, %s = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x, %t = %e) -> (tensor<6x7xf32>, tensor<3x6x7xf32>) {
    %b = tensor.extract_slice %a[0, 0] [4, 6] [1, 1] : tensor<6x7xf32> to tensor<4x6xf32>
    %c = tensor.insert_slice %b into %a[1, 1] [4, 6] [1, 1] : tensor<4x6xf32> into tensor<6x7xf32>
    %u = tensor.insert_slice %c into %t[%i, 0, 0] [1, 6, 7] [1, 1, 1] : tensor<6x7xf32> into tensor<3x6x7xf32>
    scf.yield %c, %u : tensor<6x7xf32>, tensor<3x6x7xf32>
  }
  %r = tensor.collapse_shape %s [[0, 1, 2]] : tensor<3x6x7xf32> into tensor<126xf32>
  func.return %r : tensor<126xf32>
}
