// RUN: %stepwell-opt %s --check -p linalg-to-loops | filecheck %s

// The window lies behind the features: six of these with their window are a run of 54 elements for each column, packed
// in squares of four, and each element goes to its place in the window.
// CHECK-LABEL: kernel.func @conv
// CHECK:         %w_1 = memref.collapse_shape %w {{.*}} : memref<8x12x3x3xf32> into memref<8x108xf32>
// CHECK:         %packed = memref.alloca() {alignment = 64 : i64} : memref<9x6x8xf32>
// CHECK-COUNT-4: vector.load %w_1
// CHECK-COUNT-8: vector.shuffle
// CHECK:         arith.remui
// CHECK:         arith.divui
// CHECK:         vector.store {{.*}}, %packed
#image = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 + d4, d2 + d5, d6)>
#filter = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d3, d6, d4, d5)>
#result = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>
kernel.func @conv(%x: memref<1x6x6x12xf32>, %w: memref<8x12x3x3xf32>, %y: memref<1x4x4x8xf32>)
    attributes {kernel.shared = 4, kernel.schedule = #kernel.schedule<[for d0, for d1 by 4, for d2 by 4, for d3 by 8, for d6 by 6 {pack 1}, for d1, for d2 by 2, for d4, for d5, for d6, unroll d2, unroll d3 by 4, vector d3 by 4]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<1x4x4x8xf32>)
  linalg.generic {indexing_maps = [#image, #filter, #result],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : memref<1x6x6x12xf32>, memref<8x12x3x3xf32>) outs(%y : memref<1x4x4x8xf32>)
      {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  kernel.return
}
