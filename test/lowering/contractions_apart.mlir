// RUN: %stepwell-opt %s --check --remarks -p 'decompose,nd-to-linalg,canonicalize,cse,fuse-elementwise,outline-kernels{machine=zen4}' 2>&1 | filecheck %s

// The exponential is written with its axes turned. In one kernel the register tile of the product
// would go along other loops than alone: the cost model says that two kernels are faster.
// CHECK:       remark: not in the kernel of what feeds it: the contraction would take {{.*}} times as long, by the cost model
// CHECK:       kernel.func @turned_matmul(
// CHECK:       kernel.func @turned_exp(
// CHECK-LABEL: func.func @turned(
func.func @turned(%x: tensor<3x512xf32>, %w: tensor<512x64xf32>) -> (tensor<64x3xf32>, tensor<3x64xf32>) {
  %h = nd.matmul %x, %w : (tensor<3x512xf32>, tensor<512x64xf32>) -> tensor<3x64xf32>
  %e = nd.exp %h : tensor<3x64xf32>
  %y = nd.transpose %e {permutation = [1, 0]} : tensor<3x64xf32> -> tensor<64x3xf32>
  func.return %y, %h : tensor<64x3xf32>, tensor<3x64xf32>
}

// A bias leaves the tile as it is, so nothing is asked.
// CHECK:       kernel.func @straight_matmul_add(
// CHECK-LABEL: func.func @straight(
func.func @straight(%x: tensor<3x512xf32>, %w: tensor<512x64xf32>, %b: tensor<3x64xf32>) -> tensor<3x64xf32> {
  %h = nd.matmul %x, %w : (tensor<3x512xf32>, tensor<512x64xf32>) -> tensor<3x64xf32>
  %y = nd.add %h, %b : tensor<3x64xf32>
  func.return %y : tensor<3x64xf32>
}
