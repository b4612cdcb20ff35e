// RUN: %stepwell-opt %s -p linalg-to-loops | filecheck %s
//
// Kernels as the stages before leave them, and the loops they become.

#id = affine_map<(d0) -> (d0)>
#rc = affine_map<(d0, d1) -> (d0, d1)>
#r = affine_map<(d0, d1) -> (d0)>
#mk = affine_map<(d0, d1, d2) -> (d0, d2)>
#kn = affine_map<(d0, d1, d2) -> (d2, d1)>
#mn = affine_map<(d0, d1, d2) -> (d0, d1)>
#c = affine_map<(d0, d1) -> (d1)>

// One parallel loop over blocks of 1024; in a block four vectors at a time, one, then single elements.
//
// CHECK-LABEL: kernel.func @axpy(%x: memref<?xf32>, %y: memref<?xf32>) {
//       CHECK: %[[N:.*]] = memref.dim %x, %c0
//       CHECK: scf.parallel (%p) = (%c0) to (%{{.*}}) step (%c1) {
//       CHECK: %[[END:.*]] = arith.minsi %{{.*}}, %[[N]] : index
//       CHECK: scf.for %i = %{{.*}} to %[[FOURS:.*]] step %c64 {
// CHECK-COUNT-8: vector.load
// CHECK-COUNT-4: vector.store
//       CHECK: scf.for %{{.*}} = %[[FOURS]] to %[[ONES:.*]] step %c16 {
//       CHECK: vector.store
//       CHECK: scf.for %[[I:.*]] = %[[ONES]] to %[[END]] step %c1 {
//       CHECK: memref.load %x[%[[I]]]
//       CHECK: } {kernel.grain = 4 : i64}

kernel.func @axpy(%x: memref<?xf32>, %y: memref<?xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[parallel d0 by 1024 {grain 4096}, for d0 by 64, unroll d0 by 16, vector d0 by 16]>} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : memref<?xf32>)
      outs(%y : memref<?xf32>) {
  ^bb0(%xi: f32, %yi: f32):
    %two = arith.constant 2.0 : f32
    %p = arith.mulf %xi, %two : f32
    %s = arith.addf %p, %yi : f32
    linalg.yield %s : f32
  }
  kernel.return
}

// The maximum and the sum stay in registers, the exponentials in scratch of one row.
//
// CHECK-LABEL: kernel.func @softmax
//   CHECK-NOT: memref.alloc(
//       CHECK: scf.parallel (%p)
//       CHECK: %[[ROW:.*]] = memref.alloca() {alignment = 64 : i64} : memref<20xf32>
//       CHECK: scf.for %j = %c0 to %c16 step %c8 iter_args
//       CHECK: vector.load %x[%p, %c16]
//       CHECK: %[[MAX:.*]] = vector.reduction <maximumf>
//       CHECK: %[[WITH:.*]] = arith.maximumf %low, %[[MAX]] : f32
//       CHECK: vector.broadcast %[[WITH]] : f32 to vector<4xf32>
//       CHECK: vector.store %{{.*}}, %[[ROW]][%{{.*}}] : memref<20xf32>, vector<4xf32>
//       CHECK: vector.reduction <add>
//       CHECK: vector.load %[[ROW]]
//       CHECK: vector.store %{{.*}}, %y[%p, %{{.*}}]

kernel.func @softmax(%x: memref<?x20xf32>, %y: memref<?x20xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[parallel d0 {grain 16}], op 0 [for d1 by 8, unroll d1 by 4, vector d1 by 4], op 1 [for d1 by 4, vector d1 by 4], op 2 [for d1 by 4, vector d1 by 4]>} {
  %low = arith.constant -3.4e38 : f32
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x20xf32>
  %m = memref.alloc(%n) : memref<?xf32>
  %t = memref.alloc(%n) : memref<?x20xf32>
  %u = memref.alloc(%n) : memref<?xf32>
  linalg.fill
      ins(%low : f32)
      outs(%m : memref<?xf32>)
  linalg.generic {indexing_maps = [#rc, #r], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<?x20xf32>)
      outs(%m : memref<?xf32>) {
  ^bb0(%xi: f32, %mi: f32):
    %s = arith.maximumf %mi, %xi : f32
    linalg.yield %s : f32
  }
  linalg.fill
      ins(%zero : f32)
      outs(%u : memref<?xf32>)
  linalg.generic {indexing_maps = [#rc, #r, #rc, #r], iterator_types = ["parallel", "reduction"]}
      ins(%x, %m : memref<?x20xf32>, memref<?xf32>)
      outs(%t, %u : memref<?x20xf32>, memref<?xf32>) {
  ^bb0(%xi: f32, %mi: f32, %ti: f32, %ui: f32):
    %d = arith.subf %xi, %mi : f32
    %e = math.exp %d : f32
    %s = arith.addf %ui, %e : f32
    linalg.yield %e, %s : f32, f32
  }
  linalg.generic {indexing_maps = [#rc, #r, #rc], iterator_types = ["parallel", "parallel"]}
      ins(%t, %u : memref<?x20xf32>, memref<?xf32>)
      outs(%y : memref<?x20xf32>) {
  ^bb0(%ti: f32, %ui: f32, %yi: f32):
    %d = arith.divf %ti, %ui : f32
    linalg.yield %d : f32
  }
  kernel.return
}

// A register tile of two rows by two vectors; the bias is added before anything is stored.
//
// CHECK-LABEL: kernel.func @matmul_bias
//       CHECK: scf.parallel (%p)
//       CHECK: scf.for %i = %{{.*}} to %{{.*}} step %c2 {
//       CHECK: scf.for %j = %{{.*}} to %{{.*}} step %c32 {
//       CHECK: scf.for %k = %c0 to %c8 step %c1 iter_args(%{{.*}} = %[[ZERO:.*]], %{{.*}} = %[[ZERO]], %{{.*}} = %[[ZERO]], %{{.*}} = %[[ZERO]]) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
//       CHECK: memref.load %x[%i, %k]
//       CHECK: vector.load %w[%k, %j]
//       CHECK: scf.yield
//       CHECK: vector.load %b[%j]
// CHECK-COUNT-4: vector.store

kernel.func @matmul_bias(%x: memref<?x8xf32>, %w: memref<8x?xf32>, %b: memref<?xf32>, %y: memref<?x?xf32>) attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[parallel d0 by 2, parallel d1 by 32 {grain 16}], op 0 [for d2, unroll d0, unroll d1 by 16, vector d1 by 16], op 1 [unroll d0, unroll d1 by 16, vector d1 by 16]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill
      ins(%zero : f32)
      outs(%y : memref<?x?xf32>)
  linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<?x8xf32>, memref<8x?xf32>)
      outs(%y : memref<?x?xf32>) {
  ^bb0(%a: f32, %c: f32, %acc: f32):
    %d = arith.mulf %a, %c : f32
    %s = arith.addf %acc, %d : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [#c, #rc], iterator_types = ["parallel", "parallel"]}
      ins(%b : memref<?xf32>)
      outs(%y : memref<?x?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %s = arith.addf %acc, %a : f32
    linalg.yield %s : f32
  }
  kernel.return
}

// At most eight runs, combined in order.
//
// CHECK-LABEL: kernel.func @sum
//       CHECK: %partial = memref.alloca() {alignment = 64 : i64} : memref<8xf32>
//       CHECK: %[[RUNS:.*]] = arith.minsi %{{.*}}, %c8 : index
//       CHECK: scf.parallel (%p) = (%c0) to (%[[RUNS]]) step (%c1) {
//       CHECK: memref.store %{{.*}}, %partial[%p]
//       CHECK: } {kernel.grain = 1 : i64}
//       CHECK: scf.for %r = %c0 to %[[RUNS]] step %c1 iter_args
//       CHECK: memref.load %partial[%r]
//       CHECK: memref.store %{{.*}}, %y[]

kernel.func @sum(%x: memref<?xf32>, %y: memref<f32>) attributes {kernel.schedule = #kernel.schedule<[parallel d0 into 8, for d0 by 64, unroll d0 by 16, vector d0 by 16]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill
      ins(%zero : f32)
      outs(%y : memref<f32>)
  linalg.generic {indexing_maps = [#id, affine_map<(d0) -> ()>], iterator_types = ["reduction"]}
      ins(%x : memref<?xf32>)
      outs(%y : memref<f32>) {
  ^bb0(%a: f32, %acc: f32):
    %s = arith.addf %acc, %a : f32
    linalg.yield %s : f32
  }
  kernel.return
}


// The longer loop is the one that is cut.
//
// CHECK-LABEL: kernel.func @sum_long
//       CHECK: scf.parallel (%p) = (%c0) to (%c8) step (%c1) {
//       CHECK: scf.for %i = %c0 to %c3 step %c1

kernel.func @sum_long(%x: memref<3x100000xf32>, %y: memref<f32>) attributes {kernel.schedule = #kernel.schedule<[parallel d1 into 8, for d0, for d1]>} {
  linalg.generic {indexing_maps = [#rc, affine_map<(d0, d1) -> ()>], iterator_types = ["reduction", "reduction"]}
      ins(%x : memref<3x100000xf32>)
      outs(%y : memref<f32>) {
  ^bb0(%a: f32, %acc: f32):
    %s = arith.addf %acc, %a : f32
    linalg.yield %s : f32
  }
  kernel.return
}


// Of four vectors at once the greatest are found without regard to NaN, which is marked beside them;
// a vector and an element that are left take three instructions. So are the vectors and then their
// lanes joined.
//
// CHECK-LABEL: kernel.func @greatest
//       CHECK: scf.for {{.*}} step %c64 iter_args({{.*}}, %{{[0-9]+}} = %{{.*}}) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xi1>)
//       CHECK: arith.maxnumf
//       CHECK: %met_nan = arith.cmpf une, %[[X:.*]], %[[X]] : vector<16xf32>
//       CHECK: arith.ori %{{.*}}, %met_nan : vector<16xi1>
//       CHECK: scf.yield
//       CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : vector<16xi1>, vector<16xf32>
//       CHECK: scf.for {{.*}} step %c16 iter_args({{.*}}) -> (vector<16xf32>)
//       CHECK: arith.maximumf
//       CHECK: arith.cmpf uno
//       CHECK: arith.cmpf uno
//       CHECK: arith.ori
//  CHECK-COUNT-3: arith.maxnumf
//       CHECK: %[[FOUND:.*]] = vector.reduction <maxnumf>
//       CHECK: %[[MET:.*]] = vector.reduction <or>, %{{.*}} : vector<16xi1> into i1
//       CHECK: arith.select %[[MET]], %{{.*}}, %[[FOUND]] : f32

kernel.func @greatest(%x: memref<?xf32>, %y: memref<f32>) attributes {kernel.schedule = #kernel.schedule<[for d0 by 64, unroll d0 by 16, vector d0 by 16]>} {
  linalg.generic {indexing_maps = [#id, affine_map<(d0) -> ()>], iterator_types = ["reduction"]}
      ins(%x : memref<?xf32>)
      outs(%y : memref<f32>) {
  ^bb0(%a: f32, %acc: f32):
    %s = arith.maximumf %acc, %a : f32
    linalg.yield %s : f32
  }
  kernel.return
}
