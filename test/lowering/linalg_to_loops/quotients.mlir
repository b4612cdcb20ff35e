// RUN: %stepwell-opt %s -p linalg-to-loops | filecheck %s
// RUN: %stepwell-opt %s -p linalg-to-loops --check | filecheck %s --check-prefix=SAME
//
// SAME: builtin.module
//
// Indices that cannot be negative are divided without signs, the quotients of quotients too; C compilers do not find
// the bounds of loops.

// CHECK-LABEL: kernel.func @places_of_a_window
//   CHECK-NOT: arith.floordivsi
//       CHECK: %[[ROW:.*]] = arith.divui %[[K:.*]], %c3 : index
//       CHECK: arith.divui %[[ROW]], %c3 : index
//   CHECK-NOT: arith.floordivsi
kernel.func @places_of_a_window(%x: memref<18xf32>, %y: memref<3x3x2xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[for d0]>} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ((d0 floordiv 3) mod 3, d0 mod 3, d0 floordiv 9)>], iterator_types = ["parallel"]}
      ins(%x : memref<18xf32>) outs(%y : memref<3x3x2xf32>) {
  ^bb0(%v: f32, %old: f32):
    linalg.yield %v : f32
  }
  kernel.return
}

// CHECK-LABEL: kernel.func @below_zero
//       CHECK: arith.floordivsi
kernel.func @below_zero(%x: memref<18xf32>, %y: memref<18xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[for d0]>} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> ((d0 - 1) floordiv 3 + 1)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%x : memref<18xf32>) outs(%y : memref<18xf32>) {
  ^bb0(%v: f32, %old: f32):
    linalg.yield %v : f32
  }
  kernel.return
}
