// RUN: %stepwell-opt %s -p nd-to-linalg,canonicalize,cse,bufferize | filecheck %s

// A place that is read from a tensor stays an index where it is computed again for a buffer.

func.func @main(%x: tensor<5x7xf32>, %i: tensor<i32>) -> tensor<2x7xf32> {
  %y = nd.dynamic_slice %x, starts(%i) {axes = [0], sizes = [2]} : (tensor<5x7xf32>, tensor<i32>) -> tensor<2x7xf32>
  func.return %y : tensor<2x7xf32>
}

// CHECK-LABEL: func.func @main(
// CHECK:         %[[START:.*]] = memref.load %i[]
// CHECK:         arith.index_cast
// CHECK:         memref.subview %x
