// RUN: %stepwell-opt %s -p linalg-to-loops | filecheck %s
//
// Lanes up to four elements apart are picked from whole vectors, of which the last ends with the last lane;
// those that run backwards are turned round. What lies farther apart is read lane by lane.

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: kernel.func @second
//       CHECK: %[[A:.*]] = vector.load %x[%c1] : memref<17xf32>, vector<8xf32>
//       CHECK: %[[B:.*]] = vector.load %x[%c8] : memref<17xf32>, vector<8xf32>
//       CHECK: vector.shuffle %[[A]], %[[B]] [0, 2, 4, 6, 9, 11, 13, 15] : vector<8xf32>, vector<8xf32>
//   CHECK-NOT: memref.load
kernel.func @second(%x: memref<17xf32>, %y: memref<8xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[for d0 by 8, vector d0 by 8]>} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0 * 2 + 1)>, #id], iterator_types = ["parallel"]}
      ins(%x : memref<17xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%v: f32, %old: f32):
    linalg.yield %v : f32
  }
  kernel.return
}

// CHECK-LABEL: kernel.func @backwards
//       CHECK: %[[A:.*]] = vector.load %x[%c0] : memref<8xf32>, vector<8xf32>
//       CHECK: vector.shuffle %[[A]], %[[A]] [7, 6, 5, 4, 3, 2, 1, 0] : vector<8xf32>, vector<8xf32>
kernel.func @backwards(%x: memref<8xf32>, %y: memref<8xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[for d0 by 8, vector d0 by 8]>} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (-d0 + 7)>, #id], iterator_types = ["parallel"]}
      ins(%x : memref<8xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%v: f32, %old: f32):
    linalg.yield %v : f32
  }
  kernel.return
}

// CHECK-LABEL: kernel.func @fifth
//   CHECK-NOT: vector.load
//       CHECK: memref.load
kernel.func @fifth(%x: memref<40xf32>, %y: memref<8xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[for d0 by 8, vector d0 by 8]>} {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0 * 5)>, #id], iterator_types = ["parallel"]}
      ins(%x : memref<40xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%v: f32, %old: f32):
    linalg.yield %v : f32
  }
  kernel.return
}
