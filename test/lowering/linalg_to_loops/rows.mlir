// RUN: %stepwell-opt %s -p linalg-to-loops | filecheck %s
//
// Where only the place in a row varies from lane to lane, what a body reads by index is a vector; where
// the row does, lanes are read one by one. The number of an iteration has the type it is cast to.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>

// CHECK-LABEL: kernel.func @rows
//       CHECK: %[[AT:.*]] = memref.load %i[%{{.*}}] : memref<4xindex>
//       CHECK: vector.load %x[%[[AT]], %{{.*}}] : memref<9x8xf32>, vector<8xf32>
//   CHECK-NOT: memref.load %x
kernel.func @rows(%x: memref<9x8xf32>, %i: memref<4xindex>, %y: memref<4x8xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[for d0, for d1 by 8, vector d1 by 8]>} {
  linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%i : memref<4xindex>) outs(%y : memref<4x8xf32>) {
  ^bb0(%at: index, %old: f32):
    %j = linalg.index 1 : index
    %v = memref.load %x[%at, %j] : memref<9x8xf32>
    linalg.yield %v : f32
  }
  kernel.return
}

// CHECK-LABEL: kernel.func @columns
//       CHECK: vector.load %i
//   CHECK-NOT: vector.load %x
//       CHECK: memref.load %x
kernel.func @columns(%x: memref<8x8xf32>, %i: memref<8xindex>, %y: memref<4x8xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[for d0, for d1 by 8, vector d1 by 8]>} {
  linalg.generic {indexing_maps = [#column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%i : memref<8xindex>) outs(%y : memref<4x8xf32>) {
  ^bb0(%at: index, %old: f32):
    %j = linalg.index 1 : index
    %v = memref.load %x[%at, %j] : memref<8x8xf32>
    linalg.yield %v : f32
  }
  kernel.return
}

// A place that goes along with the lanes is a vector where all of them are within the limits.
// CHECK-LABEL: kernel.func @shifted
//       CHECK: %[[AT:.*]] = arith.index_cast %by : i64 to index
//       CHECK: %[[LOW:.*]] = arith.cmpi sge, %[[AT]], %c0
//       CHECK: %[[HIGH:.*]] = arith.cmpi sle, %[[AT]], %c24
//       CHECK: %[[IN:.*]] = arith.andi %[[LOW]], %[[HIGH]]
//       CHECK: scf.if %[[IN]] -> (vector<8xf32>)
//       CHECK:   vector.load %x[%[[AT]]]
//       CHECK: else
//       CHECK:   memref.load %x
kernel.func @shifted(%x: memref<32xf32>, %i: memref<4xi64>, %y: memref<4x8xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[for d0, for d1 by 8, vector d1 by 8]>} {
  linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%i : memref<4xi64>) outs(%y : memref<4x8xf32>) {
  ^bb0(%by: i64, %old: f32):
    %j = linalg.index 1 : index
    %c = arith.index_cast %j : index to i64
    %p = arith.addi %c, %by : i64
    %zero = arith.constant 0 : i64
    %last = arith.constant 31 : i64
    %q = arith.maxsi %p, %zero : i64
    %r = arith.minsi %q, %last : i64
    %at = arith.index_cast %r : i64 to index
    %v = memref.load %x[%at] : memref<32xf32>
    linalg.yield %v : f32
  }
  kernel.return
}

// CHECK-LABEL: kernel.func @numbers
//       CHECK: arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi16>
//       CHECK: arith.constant dense<[8, 9, 10, 11, 12, 13, 14, 15]> : vector<8xi16>
//   CHECK-NOT: vector<8xindex>
//       CHECK: %[[START:.*]] = arith.index_cast %i : index to i16
//       CHECK: vector.broadcast %[[START]] : i16 to vector<8xi16>
kernel.func @numbers(%y: memref<64xi16>) attributes {kernel.shared = 0, kernel.schedule = #kernel.schedule<[for d0 by 16, unroll d0 by 8, vector d0 by 8]>} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      outs(%y : memref<64xi16>) {
  ^bb0(%old: i16):
    %j = linalg.index 0 : index
    %v = arith.index_cast %j : index to i16
    linalg.yield %v : i16
  }
  kernel.return
}
