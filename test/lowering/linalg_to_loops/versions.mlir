// RUN: %stepwell-opt %s -p linalg-to-loops | filecheck %s
//
// One test of a size for each version of a kernel: that for a single length knows it, and tiles of a
// version whose rows fill half of one at least have the last row over again where they stick out.

#mk = affine_map<(d0, d1, d2) -> (d0, d2)>
#kn = affine_map<(d0, d1, d2) -> (d2, d1)>
#mn = affine_map<(d0, d1, d2) -> (d0, d1)>

// CHECK-LABEL: kernel.func @product
//   CHECK-NOT:   kernel.versions
//       CHECK:   [[N:%.*]] = memref.dim %x, [[C0:%.*]] : memref<?x8xf32>
//       CHECK:   [[SINCE:%.*]] = arith.addi [[N]], [[LESS:%.*]] : index
//       CHECK:   [[IS_ONE:%.*]] = arith.cmpi ule, [[SINCE]], [[NONE:%.*]] : index
//  CHECK-NEXT:   scf.if [[IS_ONE]] {
//       CHECK:     memref.cast %x : memref<?x8xf32> to memref<1x8xf32>
//   CHECK-NOT:     for %i
//       CHECK:   } else {
//       CHECK:     [[FEW:%.*]] = arith.cmpi ule
//  CHECK-NEXT:     scf.if [[FEW]] {
//       CHECK:       for %i
//       CHECK:         [[LAST:%.*]] = arith.minsi
//       CHECK:         vector.store [[SUM:%.*]], %y{{\[}}[[LAST]], %j]
//       CHECK:     } else {
//       CHECK:   kernel.return
kernel.func @product(%x: memref<?x8xf32>, %w: memref<8x16xf32>, %y: memref<?x16xf32>) attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[for d0 by 6, for d1 by 8, for d2, unroll d0, vector d1 by 8]>, kernel.versions = [#kernel.version<d0 from 1 to 1, #kernel.schedule<[for d0, for d1 by 16, for d2, vector d1 by 16]>>, #kernel.version<d0 from 2 to 4, #kernel.schedule<[for d0 by 4 repeat, for d1 by 8, for d2, unroll d0, vector d1 by 8]>>]} {
  %0 = arith.constant 0.0 : f32
  linalg.fill ins(%0 : f32) outs(%y : memref<?x16xf32>)
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<?x8xf32>, memref<8x16xf32>) outs(%y : memref<?x16xf32>)
      {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %z = arith.addf %o, %p : f32
    linalg.yield %z : f32
  }
  kernel.return
}

// A version for one iteration of a loop that ops do not share: the size of that axis is static in
// every op that has such a loop, and the sum has no loop.

#nk = affine_map<(d0, d1) -> (d0, d1)>
#n = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: kernel.func @sums
//       CHECK:   [[C1:%.*]] = arith.constant 1 : index
//       CHECK:   memref.dim %x, [[C1]] : memref<4x?xf32>
//       CHECK:   scf.if
//       CHECK:     memref.cast %x : memref<4x?xf32> to memref<4x1xf32>
//       CHECK:     for %i
//   CHECK-NOT:     for
//       CHECK:   } else {
//       CHECK:     for %i
//       CHECK:       for %j
//       CHECK:   kernel.return
kernel.func @sums(%x: memref<4x?xf32>, %y: memref<4xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[for d0, for d1]>, kernel.versions = [#kernel.version<d1 from 1 to 1, #kernel.schedule<[for d0, for d1]>>]} {
  %0 = arith.constant 0.0 : f32
  linalg.fill ins(%0 : f32) outs(%y : memref<4xf32>)
  linalg.generic {indexing_maps = [#nk, #n], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<4x?xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %z = arith.addf %o, %a : f32
    linalg.yield %z : f32
  }
  kernel.return
}

// Where all launches fit the first version, its loops are the only ones; without a version left, the
// kernel's own are.

// CHECK-LABEL: kernel.func @always_one
//   CHECK-NOT:   kernel.first_fits
//       CHECK:   memref.cast %x : memref<4x?xf32> to memref<4x1xf32>
//   CHECK-NOT:   scf.if
//       CHECK:   for %i
//   CHECK-NOT:     for
//       CHECK:   kernel.return
kernel.func @always_one(%x: memref<4x?xf32>, %y: memref<4xf32>) attributes {kernel.shared = 1, kernel.first_fits, kernel.schedule = #kernel.schedule<[for d0, for d1]>, kernel.versions = [#kernel.version<d1 from 1 to 1, #kernel.schedule<[for d0, for d1]>>]} {
  %0 = arith.constant 0.0 : f32
  linalg.fill ins(%0 : f32) outs(%y : memref<4xf32>)
  linalg.generic {indexing_maps = [#nk, #n], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<4x?xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %z = arith.addf %o, %a : f32
    linalg.yield %z : f32
  }
  kernel.return
}

// CHECK-LABEL: kernel.func @own
//   CHECK-NOT:   kernel.first_fits
//       CHECK:   for %i
//       CHECK:     for %j
//       CHECK:   kernel.return
kernel.func @own(%x: memref<4x?xf32>, %y: memref<4xf32>) attributes {kernel.shared = 1, kernel.first_fits, kernel.schedule = #kernel.schedule<[for d0, for d1]>} {
  %0 = arith.constant 0.0 : f32
  linalg.fill ins(%0 : f32) outs(%y : memref<4xf32>)
  linalg.generic {indexing_maps = [#nk, #n], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<4x?xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %z = arith.addf %o, %a : f32
    linalg.yield %z : f32
  }
  kernel.return
}

// In a version for at most the lanes of a vector, all of them under one mask, there is neither a loop
// nor a test whether any is left; in the sum and in the loop that only one op has.

// CHECK-LABEL: kernel.func @one_vector
//       CHECK:   [[FITS:%.*]] = arith.cmpi ule
//  CHECK-NEXT:   scf.if [[FITS]] {
//       CHECK:     for %i
//   CHECK-NOT:       for
//   CHECK-NOT:       scf.if
//       CHECK:       vector.maskedload
//       CHECK:       vector.reduction <add>
//   CHECK-NOT:       for
//   CHECK-NOT:       scf.if
//       CHECK:       vector.maskedload
//       CHECK:   } else {
//       CHECK:     for %i
//       CHECK:       for %j
//       CHECK:       scf.if
//       CHECK:   kernel.return
kernel.func @one_vector(%x: memref<4x?xf32>, %y: memref<4xf32>, %z: memref<4x?xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[for d0, for d1 by 32 mask, unroll d1 by 16, vector d1 by 16]>, kernel.versions = [#kernel.version<d1 from 2 to 16, #kernel.schedule<[for d0, for d1 by 16 mask, vector d1 by 16]>>]} {
  %0 = arith.constant 0.0 : f32
  linalg.fill ins(%0 : f32) outs(%y : memref<4xf32>)
  linalg.generic {indexing_maps = [#nk, #n], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<4x?xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [#nk, #n, #nk], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : memref<4x?xf32>, memref<4xf32>) outs(%z : memref<4x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  }
  kernel.return
}

// In one for at least a whole vector the last one under a mask always has a lane: only the number of
// those before it is computed, unless that is known too.

// CHECK-LABEL: kernel.func @several_vectors
//       CHECK:   scf.if
//       CHECK:     for %i
//   CHECK-NOT:       for
//   CHECK-NOT:       scf.if
//       CHECK:       vector.load
//       CHECK:       vector.maskedload
//       CHECK:   } else {
//       CHECK:   scf.if
//       CHECK:     for %i
//       CHECK:       for %j
//   CHECK-NOT:       scf.if
//       CHECK:       vector.maskedload
//       CHECK:   kernel.return
kernel.func @several_vectors(%x: memref<4x?xf32>, %y: memref<4xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[for d0, for d1 by 64 mask, unroll d1 by 16, vector d1 by 16]>, kernel.versions = [#kernel.version<d1 from 17 to 32, #kernel.schedule<[for d0, for d1 by 16 mask, vector d1 by 16]>>, #kernel.version<d1 from 33 to 64, #kernel.schedule<[for d0, for d1 by 16 mask, vector d1 by 16]>>]} {
  %0 = arith.constant 0.0 : f32
  linalg.fill ins(%0 : f32) outs(%y : memref<4xf32>)
  linalg.generic {indexing_maps = [#nk, #n], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<4x?xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  }
  kernel.return
}

// The last two axes of an operand of few columns are one: lanes of the sum are picked out of vectors.

// CHECK-LABEL: kernel.func @few_columns
//       CHECK:   [[CAST:%.*]] = memref.cast %w : memref<48x?xf32> to memref<48x2xf32>
//  CHECK-NEXT:   [[ROW:%.*]] = memref.collapse_shape [[CAST]] {{.*}} into memref<96xf32>
//       CHECK:   scf.for %k
//       CHECK:     vector.load [[ROW]]
//       CHECK:     vector.shuffle
//       CHECK:   kernel.return
kernel.func @few_columns(%x: memref<6x48xf32>, %w: memref<48x?xf32>, %y: memref<6x?xf32>) attributes {kernel.shared = 2, kernel.first_fits, kernel.schedule = #kernel.schedule<[for d0, for d1, for d2]>, kernel.versions = [#kernel.version<d1 from 2 to 2, #kernel.schedule<[for d0 by 6, for d1 by 2, for d2 by 16, unroll d0, unroll d1, vector d2 by 16]>>]} {
  %0 = arith.constant 0.0 : f32
  linalg.fill ins(%0 : f32) outs(%y : memref<6x?xf32>)
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<6x48xf32>, memref<48x?xf32>) outs(%y : memref<6x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %z = arith.addf %o, %p : f32
    linalg.yield %z : f32
  }
  kernel.return
}
