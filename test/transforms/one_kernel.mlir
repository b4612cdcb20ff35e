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
// CHECK:         func.func @softmax
// CHECK:           kernel.launch
// CHECK-NOT:       kernel.launch
// CHECK:         func.func @layer_norm
// CHECK:           kernel.launch
// CHECK-NOT:       kernel.launch
