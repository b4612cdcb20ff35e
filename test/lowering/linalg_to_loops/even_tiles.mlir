// RUN: %stepwell-opt %s --check -p linalg-to-loops | filecheck %s

// Thirteen rows are a tile of seven and one of six; the last vector of twenty columns begins at the twelfth.
// CHECK-LABEL: kernel.func @even
// CHECK-NOT:   memref.load %x[{{.*}}] : memref<20
// CHECK:       %[[C12:.*]] = arith.constant 12 : index
// CHECK:       vector.load %w[%{{.*}}, %[[C12]]] : memref<5x20xf32>, vector<8xf32>
// CHECK-NOT:   memref.store
kernel.func @even(%x: memref<13x5xf32>, %w: memref<5x20xf32>, %y: memref<13x20xf32>) attributes {kernel.shared = 2, kernel.tile = [7, 2]} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<13x20xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<13x5xf32>, memref<5x20xf32>) outs(%y : memref<13x20xf32>) attrs = {kernel.loops = #kernel.loops<axis = 1, width = 8, interleave = 1>} {
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
kernel.func @in_place(%x: memref<13x5xf32>, %w: memref<5x20xf32>, %r: memref<13x20xf32>, %y: memref<13x20xf32>) attributes {kernel.shared = 2, kernel.tile = [7, 2], kernel.in_place = [array<i64: 2, 3>]} {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<13x20xf32>
  linalg.fill ins(%zero : f32) outs(%t : memref<13x20xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<13x5xf32>, memref<5x20xf32>) outs(%t : memref<13x20xf32>) attrs = {kernel.loops = #kernel.loops<axis = 1, width = 8, interleave = 1>} {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%t, %r : memref<13x20xf32>, memref<13x20xf32>) outs(%y : memref<13x20xf32>) attrs = {kernel.loops = #kernel.loops<axis = 1, width = 8, interleave = 1>} {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  }
  kernel.return
}
