// RUN: %stepwell-opt %s --check -p linalg-to-loops | filecheck %s

// Two sums at once over rows that no number of runs divides, and what comes after them.
// CHECK-LABEL: kernel.func @two
// CHECK:         memref.alloca() {{.*}} : memref<3x11xf32>
// CHECK:         scf.parallel
kernel.func @two(%x: memref<53x11xf32>, %m: memref<11xf32>, %y: memref<11xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<op 0 [parallel d1 into 3, for d1 by 8, for d0 by 8, unroll d1, unroll d0 by 4, vector d0 by 4], op 1 [for d0 by 8, unroll d0 by 4, vector d0 by 4]>} {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant -1.0e30 : f32
  %t = memref.alloc() : memref<11xf32>
  linalg.fill ins(%zero : f32) outs(%t : memref<11xf32>)
  linalg.fill ins(%low : f32) outs(%m : memref<11xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<53x11xf32>) outs(%t, %m : memref<11xf32>, memref<11xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %q = arith.addf %b, %a : f32
    %r = arith.maximumf %c, %a : f32
    linalg.yield %q, %r : f32, f32
  }
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%t, %m : memref<11xf32>, memref<11xf32>) outs(%y : memref<11xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  }
  kernel.return
}

// More runs than rows, and two loops of the sum, the longer of which is cut; nothing starts the sum but what lies there.
// CHECK-LABEL: kernel.func @short
kernel.func @short(%x: memref<2x5x4xi32>, %y: memref<4xi32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[parallel d2 into 7, for d2 by 8, for d0 by 4, for d1, unroll d2, vector d0 by 4]>} {
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d2, d0)>, affine_map<(d0, d1, d2) -> (d0)>], iterator_types = ["parallel", "reduction", "reduction"]} ins(%x : memref<2x5x4xi32>) outs(%y : memref<4xi32>) {
  ^bb0(%a: i32, %b: i32):
    %q = arith.addi %b, %a : i32
    linalg.yield %q : i32
  }
  kernel.return
}

// The number of rows is known only to the run; one column at a time.
// CHECK-LABEL: kernel.func @unknown
// CHECK:         arith.minsi
kernel.func @unknown(%x: memref<?x3xf32>, %y: memref<3xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[parallel d1 into 4, for d1 by 8, for d0, unroll d1]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<3xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<?x3xf32>) outs(%y : memref<3xf32>) {
  ^bb0(%a: f32, %b: f32):
    %q = arith.addf %b, %a : f32
    linalg.yield %q : f32
  }
  kernel.return
}
