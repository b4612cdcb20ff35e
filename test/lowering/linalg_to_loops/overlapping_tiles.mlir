// RUN: %stepwell-opt %s --check -p linalg-to-loops | filecheck %s

// Thirteen rows are a tile of seven and one of six; the last vector of twenty columns begins at the twelfth.
// CHECK-LABEL: kernel.func @peeled
// CHECK-NOT:   memref.load %x[{{.*}}] : memref<20
// CHECK:       %[[C12:.*]] = arith.constant 12 : index
// CHECK:       vector.load %w[%{{.*}}, %[[C12]]] : memref<5x20xf32>, vector<8xf32>
// CHECK-NOT:   memref.store
kernel.func @peeled(%x: memref<13x5xf32>, %w: memref<5x20xf32>, %y: memref<13x20xf32>) attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[for d0 by 7, for d1 by 16 overlap, for d2, unroll d0, unroll d1 by 8, vector d1 by 8]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<13x20xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<13x5xf32>, memref<5x20xf32>) outs(%y : memref<13x20xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  }
  kernel.return
}

// In place nothing is computed twice: what is left of a row goes one by one.
// CHECK-LABEL: kernel.func @in_place
// CHECK:       memref.store
kernel.func @in_place(%x: memref<13x5xf32>, %w: memref<5x20xf32>, %r: memref<13x20xf32>, %y: memref<13x20xf32>) attributes {kernel.shared = 2, kernel.in_place = [array<i64: 2, 3>], kernel.schedule = #kernel.schedule<[for d0 by 7, for d1 by 16], op 0 [for d2, unroll d0, unroll d1 by 8, vector d1 by 8], op 1 [unroll d0, unroll d1 by 8, vector d1 by 8]>} {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<13x20xf32>
  linalg.fill ins(%zero : f32) outs(%t : memref<13x20xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<13x5xf32>, memref<5x20xf32>) outs(%t : memref<13x20xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%t, %r : memref<13x20xf32>, memref<13x20xf32>) outs(%y : memref<13x20xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  }
  kernel.return
}

// Of thirty-two rows the last tile of three takes one again: there is one kind of tile.
// CHECK-LABEL: kernel.func @again
// CHECK:       %[[C29:.*]] = arith.constant 29 : index
// CHECK:       scf.for %[[I:.*]] = %{{.*}}
// CHECK:       arith.minsi %[[I]], %[[C29]]
// CHECK-COUNT-3: vector.store
// CHECK-NOT:   vector.store
// CHECK-LABEL: kernel.func @again_in_parallel
// CHECK:       scf.parallel
// CHECK:       arith.minsi
// CHECK-COUNT-3: vector.store
// CHECK-NOT:   vector.store
kernel.func @again(%x: memref<32x5xf32>, %w: memref<5x8xf32>, %y: memref<32x8xf32>) attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[for d0 by 3 overlap, for d1 by 8, for d2, unroll d0, vector d1 by 8]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<32x8xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<32x5xf32>, memref<5x8xf32>) outs(%y : memref<32x8xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  }
  kernel.return
}

kernel.func @again_in_parallel(%x: memref<32x5xf32>, %w: memref<5x8xf32>, %y: memref<32x8xf32>) attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[parallel d0 by 3 overlap, for d1 by 8, for d2, unroll d0, vector d1 by 8]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<32x8xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<32x5xf32>, memref<5x8xf32>) outs(%y : memref<32x8xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  }
  kernel.return
}
