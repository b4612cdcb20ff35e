// RUN: %stepwell-opt %s -p decompose,nd-to-linalg,canonicalize,cse,fuse-elementwise,outline-kernels | filecheck %s

// The decompositions of softmax and of layer norm each become one kernel, also where the number of
// rows is not known.
func.func @softmax(%x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %y = nd.softmax %x {axis = 1} : tensor<?x16xf32>
  func.return %y : tensor<?x16xf32>
}
func.func @layer_norm(%x: tensor<?x16xf32>, %s: tensor<16xf32>, %b: tensor<16xf32>) -> tensor<?x16xf32> {
  %y = nd.layer_norm %x, %s, %b {axis = 1, eps = 0.001} : (tensor<?x16xf32>, tensor<16xf32>, tensor<16xf32>) -> tensor<?x16xf32>
  func.return %y : tensor<?x16xf32>
}
//
// A layer norm keeps no difference from the mean: the mean is one division for each row, whoever reads
// it.
// CHECK:         func.func @softmax
// CHECK:           kernel.launch
// CHECK-NOT:       kernel.launch
// CHECK:         kernel.func @layer_norm_layer_norm(
// CHECK:           arith.subf
// CHECK-NOT:       linalg.yield %sub
// CHECK:           %y{{.*}} = linalg.generic {{.*}} ins(%x, %div, %rsqrt
// CHECK:         func.func @layer_norm
// CHECK:           kernel.launch
// CHECK-NOT:       kernel.launch

// Bias and activation of a contraction stay with it, however many read what comes out.
func.func @two_readers(%x: tensor<?x64xf32>, %w: tensor<64x9xf32>, %b: tensor<9xf32>) -> (tensor<?x9xf32>, tensor<?xi64>, tensor<?xi32>) {
  %n = nd.dim %x {axis = 0} : tensor<?x64xf32>
  %h = nd.matmul %x, %w : (tensor<?x64xf32>, tensor<64x9xf32>) -> tensor<?x9xf32>
  %bb = nd.broadcast %b, sizes(%n) {dims = [1]} : tensor<9xf32> -> tensor<?x9xf32>
  %a = nd.add %h, %bb : tensor<?x9xf32>
  %r = nd.relu %a : tensor<?x9xf32>
  %y = nd.softmax %r {axis = 1} : tensor<?x9xf32>
  %i = nd.argmax %r {axis = 1} : tensor<?x9xf32> -> tensor<?xi64>
  %j = nd.argmin %r {axis = 1} : tensor<?x9xf32> -> tensor<?xi32>
  func.return %y, %i, %j : tensor<?x9xf32>, tensor<?xi64>, tensor<?xi32>
}
// CHECK:         kernel.func @two_readers_matmul_add_relu(
// CHECK:         func.func @two_readers
// CHECK:           kernel.launch @two_readers_matmul_add_relu
// CHECK:           kernel.launch @two_readers_softmax
// CHECK-NOT:       kernel.launch
