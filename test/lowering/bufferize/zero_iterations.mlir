// RUN: %stepwell-opt %s -p 'through(buffers)' | filecheck %s
// A loop without iterations gives its initial value, which must be in the destination.
// CHECK-LABEL: func.func @main(
// CHECK: memref.copy %a, %r
// CHECK-NEXT: kernel.launch
func.func @main(%n: tensor<0x3xf32>, %a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
  %r, %s = nd.scan (%c = %a) over (%d = %n) {reverse} : (tensor<3xf32>, tensor<0x3xf32>) -> (tensor<3xf32>, tensor<0x3xf32>) {
    nd.yield %b, %b : tensor<3xf32>, tensor<3xf32>
  }
  func.return %r : tensor<3xf32>
}
