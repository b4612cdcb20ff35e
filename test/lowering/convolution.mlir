// RUN: %stepwell-opt %s -p "fuse-elementwise,outline-kernels,schedule" | filecheck %s

// The sum's loops run as the image lies in memory; a block takes several of its lines.

// CHECK:          kernel.func @main_conv(
// CHECK-SAME:       kernel.shared = 4 : i64, kernel.tile = [5 : i64, 4 : i64],
// CHECK-SAME:       kernel.block = [1 : i64, 2 : i64, 15 : i64, 64 : i64, 100 : i64], kernel.parallel = 4 : i64
// CHECK:            linalg.generic
// CHECK-SAME:       affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, (d1 + d4), (d2 + d5), d6)>
// CHECK-SAME:       affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d3, d6, d4, d5)>
// CHECK-SAME:       attrs =  {kernel.loops = #kernel.loops<axis = 3, width = 16, interleave = 1>}
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
