// RUN: %stepwell-opt %s -p 'through(buffers)' --check | filecheck %s

// A memref.load inside of a linalg.generic reads at the places of all iterations.

// CHECK-LABEL: kernel.func
// CHECK: memref.load
func.func @main(%x: tensor<5x3xi16>, %i: tensor<7xi32>) -> tensor<7x3xi16> {
  %y = nd.gather %x, indices(%i) {axes = [0]} : (tensor<5x3xi16>, tensor<7xi32>) -> tensor<7x3xi16>
  func.return %y : tensor<7x3xi16>
}
