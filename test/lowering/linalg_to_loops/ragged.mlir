// RUN: %stepwell-opt %s -p linalg-to-loops | filecheck %s

#k = affine_map<(r, j, k) -> (r, k)>
#w = affine_map<(r, j, k) -> (k, j)>
#y = affine_map<(r, j, k) -> (r, j)>

// Of 22 columns the last vector covers some again, so none are left to be computed one by one.
// CHECK-LABEL: kernel.func @columns
// CHECK:         %[[SIX:.*]] = arith.constant 6 : index
// CHECK:         scf.for %i = %{{.*}} to %{{.*}} step
// CHECK:             %[[J:.*]] = arith.minsi %j, %[[SIX]]
// CHECK:             vector.load %w[%k, %[[J]]] : memref<5x22xf32>, vector<16xf32>
// CHECK-NOT:         memref.load %w
// CHECK:         kernel.return
kernel.func @columns(%x: memref<9x5xf32>, %w: memref<5x22xf32>, %y: memref<9x22xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[for d0, for d1 by 32 overlap, for d2, unroll d1 by 16, vector d1 by 16]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<9x22xf32>)
  linalg.generic {indexing_maps = [#k, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<9x5xf32>, memref<5x22xf32>) outs(%y : memref<9x22xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  }
  kernel.return
}

#row = affine_map<(r, j) -> (r, j)>
#one = affine_map<(r, j) -> (r)>

// What is read is overwritten: columns that are left are taken one by one.
// CHECK-LABEL: kernel.func @overwritten
// CHECK:         vector.store
// CHECK:         memref.store
kernel.func @overwritten(%y: memref<9x22xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[for d0, for d1 by 32, unroll d1 by 16, vector d1 by 16]>} {
  linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]} ins(%y : memref<9x22xf32>) outs(%y : memref<9x22xf32>) {
  ^bb0(%a: f32, %c: f32):
    %n = arith.addf %a, %a : f32
    linalg.yield %n : f32
  }
  kernel.return
}

// So may an input be that the caller passes as the result too.
// CHECK-LABEL: kernel.func @in_place
// CHECK:         vector.store
// CHECK:         memref.store
kernel.func @in_place(%x: memref<9x22xf32>, %y: memref<9x22xf32>) attributes {kernel.shared = 1, kernel.in_place = [array<i64: 0, 1>], kernel.schedule = #kernel.schedule<[for d0, for d1 by 32, unroll d1 by 16, vector d1 by 16]>} {
  linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]} ins(%x : memref<9x22xf32>) outs(%y : memref<9x22xf32>) {
  ^bb0(%a: f32, %c: f32):
    %n = arith.addf %a, %a : f32
    linalg.yield %n : f32
  }
  kernel.return
}

// What is left of a sum of 29 is taken by vectors of 8 and of 4, and one by itself.
// CHECK-LABEL: kernel.func @rest
// CHECK:         vector<16xf32>
// CHECK:         vector.reduction <add>, %{{.*}} : vector<8xf32> into f32
// CHECK:         vector.reduction <add>, %{{.*}} : vector<4xf32> into f32
// CHECK:         memref.load %x
kernel.func @rest(%x: memref<9x29xf32>, %y: memref<9xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[for d0, for d1 by 32, unroll d1 by 16, vector d1 by 16]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<9xf32>)
  linalg.generic {indexing_maps = [#row, #one], iterator_types = ["parallel", "reduction"]} ins(%x : memref<9x29xf32>) outs(%y : memref<9xf32>) {
  ^bb0(%a: f32, %c: f32):
    %n = arith.addf %c, %a : f32
    linalg.yield %n : f32
  }
  kernel.return
}
