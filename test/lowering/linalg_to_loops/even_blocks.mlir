// RUN: %stepwell-opt %s -p linalg-to-loops | filecheck %s
//
// Rows that only the launch counts are cut into blocks of equal length, of whole tiles: as few as
// blocks of 12 rows are, or more where there are too few blocks for threads.

#mk = affine_map<(d0, d1, d2) -> (d0, d2)>
#kn = affine_map<(d0, d1, d2) -> (d2, d1)>
#mn = affine_map<(d0, d1, d2) -> (d0, d1)>

// CHECK-LABEL: kernel.func @product
//       CHECK:   [[FEWEST:%.*]] = arith.divui [[N:%.*]], %c12 : index
//       CHECK:   arith.minsi
//       CHECK:   [[RUNS:%.*]] = arith.maxsi [[MOST:%.*]], %c1 : index
//       CHECK:   [[EACH:%.*]] = arith.divui [[SUM:%.*]], [[RUNS]] : index
//       CHECK:   [[BLOCK:%.*]] = arith.maxsi [[EVEN:%.*]], %c4 : index
//       CHECK:   scf.parallel (%p)
//       CHECK:     arith.muli [[AT:%.*]], [[BLOCK]] : index
kernel.func @product(%x: memref<?x8xf32>, %w: memref<8x32xf32>, %y: memref<?x32xf32>) attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[parallel d0 by 12, parallel d1 by 16, for d2 by 8 {pack 1}, for d0 by 4, for d2, unroll d0, vector d1 by 16]>} {
  %0 = arith.constant 0.0 : f32
  linalg.fill ins(%0 : f32) outs(%y : memref<?x32xf32>)
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<?x8xf32>, memref<8x32xf32>) outs(%y : memref<?x32xf32>)
      {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %z = arith.addf %o, %p : f32
    linalg.yield %z : f32
  }
  kernel.return
}
