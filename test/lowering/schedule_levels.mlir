// RUN: %stepwell-opt %s -p schedule --split-input-file | filecheck %s
// RUN: %stepwell-opt %s -p schedule,bufferize,linalg-to-loops --split-input-file | filecheck %s --check-prefix=LOOPS

// Levels written by hand are obeyed: nothing is added to them, and nothing chosen otherwise.

#rows = affine_map<(d0, d1, d2) -> (d0, d2)>
#columns = affine_map<(d0, d1, d2) -> (d2, d1)>
#result = affine_map<(d0, d1, d2) -> (d0, d1)>

// CHECK-LABEL: kernel.func @product
// CHECK-SAME:  #kernel.schedule<[parallel d0 by 4, parallel d1 by 16, for d2 by 8 {pack 1}, for d0 by 2, for d2, unroll d0, unroll d1 by 8, vector d1 by 8]>
// CHECK-NOT:   kernel.schedule
// LOOPS-LABEL: kernel.func @product
// LOOPS:         memref.alloca() {alignment = 64 : i64} : memref<8x16xf32>
// LOOPS:         vector<8xf32>
kernel.func @product(%x: tensor<12x24xf32>, %w: tensor<24x32xf32>, %y: tensor<12x32xf32>) -> tensor<12x32xf32>
    attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[
      parallel d0 by 4, parallel d1 by 16, for d2 by 8 {pack 1}, for d0 by 2,
      for d2, unroll d0, unroll d1 by 8, vector d1 by 8]>} {
  %zero = arith.constant 0.0 : f32
  %s = linalg.fill ins(%zero : f32) outs(%y : tensor<12x32xf32>) -> tensor<12x32xf32>
  %r = linalg.generic {indexing_maps = [#rows, #columns, #result], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<12x24xf32>, tensor<24x32xf32>) outs(%s : tensor<12x32xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %c, %p : f32
    linalg.yield %t : f32
  } -> tensor<12x32xf32>
  kernel.return %r : tensor<12x32xf32>
}

// -----

// A sum in parts, added up in order.
// CHECK-LABEL: kernel.func @total
// CHECK-SAME:  #kernel.schedule<[parallel d0 into 4, for d0 by 16, unroll d0 by 8, vector d0 by 8]>
kernel.func @total(%x: tensor<1000xf32>, %y: tensor<f32>) -> tensor<f32>
    attributes {kernel.shared = 0, kernel.schedule = #kernel.schedule<[
      parallel d0 into 4, for d0 by 16, unroll d0 by 8, vector d0 by 8]>} {
  %zero = arith.constant 0.0 : f32
  %s = linalg.fill ins(%zero : f32) outs(%y : tensor<f32>) -> tensor<f32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]} ins(%x : tensor<1000xf32>) outs(%s : tensor<f32>) {
  ^bb0(%a: f32, %c: f32):
    %t = arith.addf %c, %a : f32
    linalg.yield %t : f32
  } -> tensor<f32>
  kernel.return %r : tensor<f32>
}

// -----

// Nothing in parallel stays so, however much there is to do.
// CHECK-LABEL: kernel.func @serial
// CHECK-SAME:  #kernel.schedule<[for d0 by 4, vector d0 by 4]>
kernel.func @serial(%x: tensor<9000000xf32>, %y: tensor<9000000xf32>) -> tensor<9000000xf32>
    attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[for d0 by 4, vector d0 by 4]>} {
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<9000000xf32>) outs(%y : tensor<9000000xf32>) {
  ^bb0(%a: f32, %c: f32):
    %t = arith.addf %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<9000000xf32>
  kernel.return %r : tensor<9000000xf32>
}

// -----

// Vectors of the loop before the last shared one: a step of it is a vector, not rows of a tile.

// CHECK-LABEL: kernel.func @vectors_of_rows
// LOOPS-LABEL: kernel.func @vectors_of_rows
// LOOPS:         vector<8xf32>
kernel.func @vectors_of_rows(%x: tensor<4x16x3x5xf32>, %y: tensor<4x16x3xf32>) -> tensor<4x16x3xf32>
    attributes {kernel.shared = 3, kernel.schedule = #kernel.schedule<[
      parallel d0, parallel d1 by 8, parallel d2 {grain 4}, for d3, vector d1 by 8]>} {
  %zero = arith.constant 0.0 : f32
  %s = linalg.fill ins(%zero : f32) outs(%y : tensor<4x16x3xf32>) -> tensor<4x16x3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x : tensor<4x16x3x5xf32>) outs(%s : tensor<4x16x3xf32>) {
  ^bb0(%a: f32, %c: f32):
    %t = arith.addf %c, %a : f32
    linalg.yield %t : f32
  } -> tensor<4x16x3xf32>
  kernel.return %r : tensor<4x16x3xf32>
}
