// RUN: %stepwell-opt %s -p linalg-to-loops | filecheck %s

#row = affine_map<(r, j) -> (r, j)>
#one = affine_map<(r, j) -> (r)>

// The columns that are left are the first lanes of one vector; the others keep their sums.
// CHECK-LABEL: kernel.func @sums
// CHECK:         vector.load %x[%{{.*}}, %{{.*}}] : memref<5x?xf32>, vector<16xf32>
// CHECK:         %[[LEFT:.*]] = arith.subi
// CHECK:         arith.cmpi sgt, %[[LEFT]]
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      %[[MASK:.*]] = vector.create_mask %[[LEFT]] : vector<16xi1>
// CHECK-NEXT:      vector.maskedload %x[%{{.*}}, %{{.*}}], %[[MASK]]
// CHECK:           arith.cmpi slt
// CHECK-NEXT:      arith.select
// CHECK-NOT:     memref.load %x
// CHECK:         kernel.return
kernel.func @sums(%x: memref<5x?xf32>, %y: memref<5xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[for d0, for d1 by 16 mask, vector d1 by 16]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<5xf32>)
  linalg.generic {indexing_maps = [#row, #one], iterator_types = ["parallel", "reduction"]} ins(%x : memref<5x?xf32>) outs(%y : memref<5xf32>) {
  ^bb0(%a: f32, %s: f32):
    %n = arith.addf %s, %a : f32
    linalg.yield %n : f32
  }
  kernel.return
}

// So is what is updated in place, which no vector may compute twice.
// CHECK-LABEL: kernel.func @updated
// CHECK:         vector.maskedload %y
// CHECK:         vector.maskedstore %y
// CHECK-NOT:     memref.load
// CHECK:         kernel.return
kernel.func @updated(%y: memref<9x?xf32>) attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[for d0, for d1 by 16 mask, vector d1 by 16]>} {
  linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]} ins(%y : memref<9x?xf32>) outs(%y : memref<9x?xf32>) {
  ^bb0(%a: f32, %c: f32):
    %n = arith.addf %a, %a : f32
    linalg.yield %n : f32
  }
  kernel.return
}

// Lanes of bits are counted in bytes.
// CHECK-LABEL: kernel.func @bits
// CHECK:         %[[LANES:.*]] = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]> : vector<16xi8>
// CHECK:         vector.maskedload %x
// CHECK:         %[[FIRST:.*]] = arith.cmpi slt, %[[LANES]]
// CHECK-NEXT:    arith.select %[[FIRST]], {{.*}} : vector<16xi1>, vector<16xi1>
kernel.func @bits(%x: memref<5x?xi8>, %y: memref<5xi1>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[for d0, for d1 by 16 mask, vector d1 by 16]>} {
  %least = arith.constant 3 : i8
  %none = arith.constant false
  linalg.fill ins(%none : i1) outs(%y : memref<5xi1>)
  linalg.generic {indexing_maps = [#row, #one], iterator_types = ["parallel", "reduction"]} ins(%x : memref<5x?xi8>) outs(%y : memref<5xi1>) {
  ^bb0(%a: i8, %s: i1):
    %b = arith.cmpi slt, %a, %least : i8
    %n = arith.ori %s, %b : i1
    linalg.yield %n : i1
  }
  kernel.return
}
