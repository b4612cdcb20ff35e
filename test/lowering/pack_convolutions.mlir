// RUN: %stepwell-opt %s -p "pack-operands" | filecheck %s
// RUN: %stepwell-opt %s --check -p "pack-operands,bufferize,plan-memory,linalg-to-loops" | filecheck %s --check-prefix=LOOPS

// The weights of a convolution are packed in each call; what is summed over is one axis of theirs.

// CHECK:          kernel.func @main_pack(%w: tensor<64x36xf32>, %packed: tensor<1x3x3x4x64xf32>)
// CHECK:            affine_map<(d0, d1) -> (d0, d1)>
// CHECK-SAME:       affine_map<(d0, d1) -> ((d0 floordiv 64), ((d1 floordiv 3) mod 3), (d1 mod 3), (d1 floordiv 9), (d0 mod 64))>
// CHECK:          func.func @main(
// CHECK:            tensor.collapse_shape %w
// CHECK-NEXT:       kernel.launch @main_pack
kernel.func @conv(%x: tensor<1x16x16x4xf32>, %w: tensor<64x4x3x3xf32>, %y: tensor<1x14x14x64xf32>) -> tensor<1x14x14x64xf32>
    attributes {kernel.shared = 4, kernel.schedule = #kernel.schedule<[parallel d0, parallel d1 by 7, parallel d2 by 15, parallel d3 by 64, for d6 by 4 {pack 1}, for d1, for d2 by 5, for d4, for d5, for d6, unroll d2, unroll d3 by 16, vector d3 by 16]>} {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%y : tensor<1x14x14x64xf32>) -> tensor<1x14x14x64xf32>
  %r = linalg.generic {indexing_maps = [
      affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 + d4, d2 + d5, d6)>,
      affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d3, d6, d4, d5)>,
      affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x16x16x4xf32>, tensor<64x4x3x3xf32>) outs(%f : tensor<1x14x14x64xf32>)
      {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x14x14x64xf32>
  kernel.return %r : tensor<1x14x14x64xf32>
}
func.func @main(%x: tensor<1x16x16x4xf32>, %w: tensor<64x4x3x3xf32>) -> tensor<1x14x14x64xf32> {
  %e = tensor.empty() : tensor<1x14x14x64xf32>
  %y = kernel.launch @conv ins(%x, %w : tensor<1x16x16x4xf32>, tensor<64x4x3x3xf32>) outs(%e : tensor<1x14x14x64xf32>) -> tensor<1x14x14x64xf32>
  func.return %y : tensor<1x14x14x64xf32>
}

// Features that blocks split lie in parts, each with its whole window; tiles do not divide within a part.
// CHECK:          kernel.func @parts_of_features_pack(%w: tensor<64x180xf32>, %packed: tensor<1x3x3x3x8x64xf32>)
// CHECK:            affine_map<(d0, d1) -> ((d0 floordiv 64), ((d1 floordiv 9) floordiv 8), ((d1 floordiv 3) mod 3), (d1 mod 3), ((d1 floordiv 9) mod 8), (d0 mod 64))>
// CHECK:          kernel.func @parts(
// CHECK:            affine_map<(d0, d1, d2, d3, d4, d5, d6) -> ((d3 floordiv 64), (d6 floordiv 8), d4, d5, (d6 mod 8), (d3 mod 64))>
// LOOPS-LABEL:    kernel.func @parts(
// LOOPS:            %[[PART:.*]] = arith.divui %k, %c8
// LOOPS:            vector.load %w_packed[%c0, %[[PART]], %m, %n, %i_2, %c0]
kernel.func @parts(%x: tensor<1x16x16x20xf32>, %w: tensor<64x20x3x3xf32>, %y: tensor<1x14x14x64xf32>) -> tensor<1x14x14x64xf32>
    attributes {kernel.shared = 4, kernel.schedule = #kernel.schedule<[parallel d0, parallel d1 by 7, parallel d2 by 15, parallel d3 by 64, for d6 by 8 {pack 1}, for d1, for d2 by 5, for d4, for d5, for d6, unroll d2, unroll d3 by 16, vector d3 by 16]>} {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%y : tensor<1x14x14x64xf32>) -> tensor<1x14x14x64xf32>
  %r = linalg.generic {indexing_maps = [
      affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 + d4, d2 + d5, d6)>,
      affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d3, d6, d4, d5)>,
      affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<1x16x16x20xf32>, tensor<64x20x3x3xf32>) outs(%f : tensor<1x14x14x64xf32>)
      {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x14x14x64xf32>
  kernel.return %r : tensor<1x14x14x64xf32>
}
func.func @parts_of_features(%x: tensor<1x16x16x20xf32>, %w: tensor<64x20x3x3xf32>) -> tensor<1x14x14x64xf32> {
  %e = tensor.empty() : tensor<1x14x14x64xf32>
  %y = kernel.launch @parts ins(%x, %w : tensor<1x16x16x20xf32>, tensor<64x20x3x3xf32>) outs(%e : tensor<1x14x14x64xf32>) -> tensor<1x14x14x64xf32>
  func.return %y : tensor<1x14x14x64xf32>
}
