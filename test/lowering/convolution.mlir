// RUN: %stepwell-opt %s -p "fuse-elementwise,outline-kernels,schedule" | filecheck %s
// RUN: %stepwell-opt %s -p 'fuse-elementwise,outline-kernels,schedule{machine="zen4,threads=2"}' | filecheck %s --check-prefix=PASSES

// The sum's loops run as the image lies in memory; a block takes several of its lines. A tile of all
// 14 places of a line reads least of the packed panel, which is as deep as the window; that matters
// where whole vectors are computed in one pass.

// CHECK:          kernel.func @main_conv(
// CHECK-SAME:  #kernel.schedule<[parallel d0 by 2, parallel d1 by 14, parallel d2 by 14, parallel d3 by 32, for d6 by 100 {pack 1}, for d0, for d1, for d4, for d5, for d6, unroll d2, unroll d3 by 16, vector d3 by 16]>
// PASSES:        for d6 by 100 {pack 1}, for d1, for d2 by 5,
// CHECK:            linalg.generic
// CHECK-SAME:       affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, (d1 + d4), (d2 + d5), d6)>
// CHECK-SAME:       affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d3, d6, d4, d5)>
func.func @main(%x: tensor<2x16x16x100xf32>, %w: tensor<64x100x3x3xf32>) -> tensor<2x14x14x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x14x14x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x14x14x64xf32>) -> tensor<2x14x14x64xf32>
  %y = linalg.generic {indexing_maps = [
      affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 + d5, d2 + d6, d4)>,
      affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d3, d4, d5, d6)>,
      affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<2x16x16x100xf32>, tensor<64x100x3x3xf32>) outs(%f : tensor<2x14x14x64xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<2x14x14x64xf32>
  func.return %y : tensor<2x14x14x64xf32>
}
