// RUN: %stepwell-opt %s -p outline-kernels | filecheck %s
// Of two ops with one iteration space the first may be the only one with an operand that tells how
// often a loop runs: they stay two.

// CHECK-LABEL: kernel.func @main_
// CHECK: linalg.generic {{.*}} ins(%a : tensor<1x3xf32>) outs({{.*}} : tensor<2x1x3xf32>)
// CHECK: linalg.generic {{.*}} ins({{.*}} : tensor<2x1x3xf32>) outs({{.*}} : tensor<1x3xf32>)
func.func @main(%a: tensor<1x3xf32>) -> tensor<1x3xf32> {
  %0 = tensor.empty() : tensor<2x1x3xf32>
  %rows = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["reduction", "parallel", "parallel"]} ins(%a : tensor<1x3xf32>) outs(%0 : tensor<2x1x3xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  } -> tensor<2x1x3xf32>
  %1 = tensor.empty() : tensor<1x3xf32>
  %least = arith.constant 0xff800000 : f32
  %2 = linalg.fill ins(%least : f32) outs(%1 : tensor<1x3xf32>) -> tensor<1x3xf32>
  %most = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>], iterator_types = ["reduction", "parallel", "parallel"]} ins(%rows : tensor<2x1x3xf32>) outs(%2 : tensor<1x3xf32>) {
  ^bb0(%x: f32, %y: f32):
    %z = arith.maximumf %y, %x : f32
    linalg.yield %z : f32
  } -> tensor<1x3xf32>
  func.return %most : tensor<1x3xf32>
}
