// RUN: %stepwell-opt %s -p fuse-elementwise | filecheck %s

#id2 = affine_map<(d0, d1) -> (d0, d1)>
#id3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
#tr = affine_map<(d0, d1) -> (d1, d0)>
#id1 = affine_map<(d0) -> (d0)>
#rev = affine_map<(d0) -> (-d0 + 7)>
#none1 = affine_map<(d0) -> ()>

// An addition, a multiplication and a reduction are one generic without an intermediate.
// CHECK-LABEL: func.func @chain
// CHECK-SAME:    (%a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %c: tensor<4x8xf32>)
// CHECK:         %init = linalg.fill
// CHECK-NEXT:    %r = linalg.generic
// CHECK-SAME:      iterator_types = ["parallel", "reduction"]} ins(%a, %b, %c : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) outs(%init
// CHECK-NEXT:    ^bb
// CHECK-NEXT:      %s = arith.addf
// CHECK-NEXT:      %p = arith.mulf %s
// CHECK-NEXT:      arith.addf %{{.*}}, %p
// CHECK:         func.return %r
func.func @chain(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %c: tensor<4x8xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %s = linalg.generic {indexing_maps = [#id2, #id2, #id2], iterator_types = ["parallel", "parallel"]}
    ins(%a, %b : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %z = arith.addf %x, %y : f32
    linalg.yield %z : f32
  } -> tensor<4x8xf32>
  %p = linalg.generic {indexing_maps = [#id2, #id2, #id2], iterator_types = ["parallel", "parallel"]}
    ins(%s, %c : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %z = arith.mulf %x, %y : f32
    linalg.yield %z : f32
  } -> tensor<4x8xf32>
  %zero = arith.constant 0.0 : f32
  %er = tensor.empty() : tensor<4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%er : tensor<4xf32>) -> tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#id2, #row], iterator_types = ["parallel", "reduction"]}
    ins(%p : tensor<4x8xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%x: f32, %o: f32):
    %z = arith.addf %o, %x : f32
    linalg.yield %z : f32
  } -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}

// A transpose is a view: both of its readers read the original through a map.
// CHECK-LABEL: func.func @views
// CHECK-NOT:     linalg.yield %in
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>]
// CHECK-SAME:      ins(%a : tensor<4x8xf32>)
// CHECK:         math.exp
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0)>]
// CHECK-SAME:      ins(%a : tensor<4x8xf32>)
func.func @views(%a: tensor<4x8xf32>, %init: tensor<8xf32>) -> (tensor<8x4xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8x4xf32>
  %t = linalg.generic {indexing_maps = [#tr, #id2], iterator_types = ["parallel", "parallel"]}
    ins(%a : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%in: f32, %o: f32):
    linalg.yield %in : f32
  } -> tensor<8x4xf32>
  %x = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]}
    ins(%t : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%in: f32, %o: f32):
    %z = math.exp %in : f32
    linalg.yield %z : f32
  } -> tensor<8x4xf32>
  %r = linalg.generic {indexing_maps = [#id2, #row], iterator_types = ["parallel", "reduction"]}
    ins(%t : tensor<8x4xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%in: f32, %o: f32):
    %z = arith.addf %o, %in : f32
    linalg.yield %z : f32
  } -> tensor<8xf32>
  func.return %x, %r : tensor<8x4xf32>, tensor<8xf32>
}

// The sum of a reversed vector keeps an operand that tells how long the loop is.
// CHECK-LABEL: func.func @reversed_sum
// CHECK:         %[[SIZE:.*]] = tensor.empty() : tensor<8xf32>
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0) -> (((d0 * -1) + 7))>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>]
// CHECK-SAME:      ins(%a, %[[SIZE]] : tensor<8xf32>, tensor<8xf32>)
func.func @reversed_sum(%a: tensor<8xf32>, %init: tensor<f32>) -> tensor<f32> {
  %e = tensor.empty() : tensor<8xf32>
  %t = linalg.generic {indexing_maps = [#rev, #id1], iterator_types = ["parallel"]}
    ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %o: f32):
    linalg.yield %in : f32
  } -> tensor<8xf32>
  %r = linalg.generic {indexing_maps = [#id1, #none1], iterator_types = ["reduction"]}
    ins(%t : tensor<8xf32>) outs(%init : tensor<f32>) {
  ^bb0(%in: f32, %o: f32):
    %z = arith.addf %o, %in : f32
    linalg.yield %z : f32
  } -> tensor<f32>
  func.return %r : tensor<f32>
}

// An exponential is not computed twice; a negation is.
// CHECK-LABEL: func.func @two_readers
// CHECK:         math.exp
// CHECK:         arith.negf
// CHECK-NEXT:    arith.addf
// CHECK:         arith.negf
// CHECK-NEXT:    arith.mulf
// CHECK-NOT:     linalg.generic
// CHECK:         func.return
func.func @two_readers(%a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %e2 = tensor.empty() : tensor<4x8xf32>
  %x = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]}
    ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %o: f32):
    %z = math.exp %in : f32
    linalg.yield %z : f32
  } -> tensor<8xf32>
  %n = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]}
    ins(%b : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %o: f32):
    %z = arith.negf %in : f32
    linalg.yield %z : f32
  } -> tensor<8xf32>
  %s = linalg.generic {indexing_maps = [#col, #col, #id2], iterator_types = ["parallel", "parallel"]}
    ins(%x, %n : tensor<8xf32>, tensor<8xf32>) outs(%e2 : tensor<4x8xf32>) {
  ^bb0(%in: f32, %in1: f32, %o: f32):
    %z = arith.addf %in, %in1 : f32
    linalg.yield %z : f32
  } -> tensor<4x8xf32>
  %p = linalg.generic {indexing_maps = [#id1, #id1, #id1], iterator_types = ["parallel"]}
    ins(%x, %n : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %in1: f32, %o: f32):
    %z = arith.mulf %in, %in1 : f32
    linalg.yield %z : f32
  } -> tensor<8xf32>
  func.return %s, %p : tensor<4x8xf32>, tensor<8xf32>
}

// A splat is a constant of the body; loop numbers are composed with the map they are read at.
// CHECK-LABEL: func.func @iota
// CHECK-SAME:    (%a: tensor<8xi64>)
// CHECK:         linalg.generic
// CHECK-SAME:      ins(%a : tensor<8xi64>)
// CHECK-DAG:     %[[I:.*]] = linalg.index 0 : index
// CHECK-DAG:     %[[M:.*]] = arith.constant -1 : index
// CHECK-DAG:     %[[S:.*]] = arith.constant 7 : index
// CHECK-DAG:     %[[TWO:.*]] = arith.constant 2 : i64
// CHECK:         %[[T:.*]] = arith.muli %[[I]], %[[M]] : index
// CHECK-NEXT:    %[[U:.*]] = arith.addi %[[T]], %[[S]] : index
// CHECK-NEXT:    arith.index_cast %[[U]] : index to i64
func.func @iota(%a: tensor<8xi64>) -> tensor<8xi64> {
  %e = tensor.empty() : tensor<8xi64>
  %two = arith.constant dense<2> : tensor<8xi64>
  %i = linalg.generic {indexing_maps = [#id1], iterator_types = ["parallel"]}
    outs(%e : tensor<8xi64>) {
  ^bb0(%o: i64):
    %k = linalg.index 0 : index
    %z = arith.index_cast %k : index to i64
    linalg.yield %z : i64
  } -> tensor<8xi64>
  %r = linalg.generic {indexing_maps = [#rev, #id1, #id1, #id1], iterator_types = ["parallel"]}
    ins(%i, %two, %a : tensor<8xi64>, tensor<8xi64>, tensor<8xi64>) outs(%e : tensor<8xi64>) {
  ^bb0(%in: i64, %in1: i64, %in2: i64, %o: i64):
    %z = arith.muli %in, %in1 : i64
    %y = arith.addi %z, %in2 : i64
    linalg.yield %y : i64
  } -> tensor<8xi64>
  func.return %r : tensor<8xi64>
}

// Only copies and casts go into a contraction.
// CHECK-LABEL: func.func @contraction
// CHECK:         arith.negf
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>]
// CHECK-SAME:      ins(%{{.*}}, %w : tensor<4x8xf32>, tensor<16x8xf32>)
// CHECK-NOT:     linalg.generic
func.func @contraction(%a: tensor<4x8xf32>, %w: tensor<16x8xf32>, %init: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %et = tensor.empty() : tensor<8x16xf32>
  %n = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]}
    ins(%a : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%in: f32, %o: f32):
    %z = arith.negf %in : f32
    linalg.yield %z : f32
  } -> tensor<4x8xf32>
  %t = linalg.generic {indexing_maps = [#tr, #id2], iterator_types = ["parallel", "parallel"]}
    ins(%w : tensor<16x8xf32>) outs(%et : tensor<8x16xf32>) {
  ^bb0(%in: f32, %o: f32):
    linalg.yield %in : f32
  } -> tensor<8x16xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%n, %t : tensor<4x8xf32>, tensor<8x16xf32>) outs(%init : tensor<4x16xf32>) {
  ^bb0(%in: f32, %in1: f32, %o: f32):
    %z = arith.mulf %in, %in1 : f32
    %y = arith.addf %o, %z : f32
    linalg.yield %y : f32
  } -> tensor<4x16xf32>
  func.return %r : tensor<4x16xf32>
}

// Sum and maximum of one tensor are found in one pass.
// CHECK-LABEL: func.func @siblings
// CHECK:         %s, %m = linalg.generic
// CHECK-SAME:      ins(%a : tensor<4x?xf32>)
// CHECK-DAG:       arith.addf
// CHECK-DAG:       arith.maximumf
// CHECK:           linalg.yield %{{.*}}, %{{.*}} : f32, f32
// CHECK-NOT:     linalg.generic
func.func @siblings(%a: tensor<4x?xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %i0 = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#id2, #row], iterator_types = ["parallel", "reduction"]}
    ins(%a : tensor<4x?xf32>) outs(%i0 : tensor<4xf32>) {
  ^bb0(%in: f32, %o: f32):
    %z = arith.addf %o, %in : f32
    linalg.yield %z : f32
  } -> tensor<4xf32>
  %low = arith.constant 0xFF800000 : f32
  %i1 = linalg.fill ins(%low : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %m = linalg.generic {indexing_maps = [#id2, #row], iterator_types = ["parallel", "reduction"]}
    ins(%a : tensor<4x?xf32>) outs(%i1 : tensor<4xf32>) {
  ^bb0(%in: f32, %o: f32):
    %z = arith.maximumf %o, %in : f32
    linalg.yield %z : f32
  } -> tensor<4xf32>
  func.return %s, %m : tensor<4xf32>, tensor<4xf32>
}

// Elementwise ops before and after a reshape are one; the operands are reshaped instead.
// CHECK-LABEL: func.func @reshape
// CHECK:         %[[A:.*]] = tensor.collapse_shape %a
// CHECK:         linalg.generic
// CHECK-SAME:      ins(%[[A]] : tensor<32xf32>)
// CHECK:           arith.negf
// CHECK-NEXT:      math.exp
// CHECK-NOT:     linalg.generic
func.func @reshape(%a: tensor<4x8xf32>) -> tensor<32xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %e1 = tensor.empty() : tensor<32xf32>
  %n = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]}
    ins(%a : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%in: f32, %o: f32):
    %z = arith.negf %in : f32
    linalg.yield %z : f32
  } -> tensor<4x8xf32>
  %v = tensor.collapse_shape %n [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>
  %r = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]}
    ins(%v : tensor<32xf32>) outs(%e1 : tensor<32xf32>) {
  ^bb0(%in: f32, %o: f32):
    %z = math.exp %in : f32
    linalg.yield %z : f32
  } -> tensor<32xf32>
  func.return %r : tensor<32xf32>
}

// A size is asked of what it was decided by, so that the op in between can vanish.
// CHECK-LABEL: func.func @sizes
// CHECK-SAME:    (%a: tensor<?xf32>, %n: index)
// CHECK:         tensor.empty(%n) : tensor<?xf32>
// CHECK:         arith.negf
// CHECK-NEXT:    math.exp
// CHECK-NOT:     tensor.dim
func.func @sizes(%a: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %e = tensor.empty(%n) : tensor<?xf32>
  %x = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]}
    ins(%a : tensor<?xf32>) outs(%e : tensor<?xf32>) {
  ^bb0(%in: f32, %o: f32):
    %z = arith.negf %in : f32
    linalg.yield %z : f32
  } -> tensor<?xf32>
  %m = tensor.dim %x, %c0 : tensor<?xf32>
  %e1 = tensor.empty(%m) : tensor<?xf32>
  %y = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]}
    ins(%x : tensor<?xf32>) outs(%e1 : tensor<?xf32>) {
  ^bb0(%in: f32, %o: f32):
    %z = math.exp %in : f32
    linalg.yield %z : f32
  } -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}

// What is broadcast to an op that moves above a reshape is read from before; where the reshape
// merges axes that it has, the op stays.
// CHECK-LABEL: func.func @broadcast_reshape
// CHECK:         %a_1 = tensor.expand_shape %a
// CHECK-NEXT:    tensor.empty
// CHECK-NEXT:    %y = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0)>,
// CHECK-SAME:      ins(%a_1, %b : tensor<4x2x4xf32>, tensor<4xf32>)
// CHECK-NOT:     linalg.generic
// CHECK:         func.return %y
func.func @broadcast_reshape(%a: tensor<4x8xf32>, %b: tensor<4xf32>) -> tensor<4x2x4xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %w = linalg.generic {indexing_maps = [#row, #id2], iterator_types = ["parallel", "parallel"]}
    ins(%b : tensor<4xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  } -> tensor<4x8xf32>
  %s = linalg.generic {indexing_maps = [#id2, #id2, #id2], iterator_types = ["parallel", "parallel"]}
    ins(%a, %w : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %z = arith.divf %x, %y : f32
    linalg.yield %z : f32
  } -> tensor<4x8xf32>
  %r = tensor.expand_shape %s [[0], [1, 2]] output_shape [4, 2, 4] : tensor<4x8xf32> into tensor<4x2x4xf32>
  %f = tensor.empty() : tensor<4x2x4xf32>
  %y = linalg.generic {indexing_maps = [#id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%r : tensor<4x2x4xf32>) outs(%f : tensor<4x2x4xf32>) {
  ^bb0(%x: f32, %o: f32):
    %z = arith.negf %x : f32
    linalg.yield %z : f32
  } -> tensor<4x2x4xf32>
  func.return %y : tensor<4x2x4xf32>
}

// CHECK-LABEL: func.func @merged_broadcast
// CHECK:         %s = linalg.generic {{.*}} ins(%a, %b :
// CHECK:         %r = tensor.collapse_shape %s
// CHECK:         %y = linalg.generic {{.*}} ins(%r :
func.func @merged_broadcast(%a: tensor<4x8xf32>, %b: tensor<4xf32>) -> tensor<32xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %w = linalg.generic {indexing_maps = [#row, #id2], iterator_types = ["parallel", "parallel"]}
    ins(%b : tensor<4xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  } -> tensor<4x8xf32>
  %s = linalg.generic {indexing_maps = [#id2, #id2, #id2], iterator_types = ["parallel", "parallel"]}
    ins(%a, %w : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %z = arith.divf %x, %y : f32
    linalg.yield %z : f32
  } -> tensor<4x8xf32>
  %r = tensor.collapse_shape %s [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>
  %f = tensor.empty() : tensor<32xf32>
  %y = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]}
    ins(%r : tensor<32xf32>) outs(%f : tensor<32xf32>) {
  ^bb0(%x: f32, %o: f32):
    %z = arith.negf %x : f32
    linalg.yield %z : f32
  } -> tensor<32xf32>
  func.return %y : tensor<32xf32>
}

// A mask that a sum and a count both read is computed where they are, once they are one op.
// CHECK-LABEL: func.func @masked
// CHECK:         linalg.generic
// CHECK-SAME:    iterator_types = ["reduction"]
// CHECK-SAME:    ins(%a, %x, %b, %y
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @masked(%a: tensor<f64>, %b: tensor<f64>, %x: tensor<9000xf64>, %y: tensor<9000xf64>) -> (tensor<f64>, tensor<i64>) {
  %zero = arith.constant 0.0 : f64
  %none = arith.constant 0 : i64
  %e = tensor.empty() : tensor<9000xi1>
  %s0 = tensor.empty() : tensor<f64>
  %c0 = tensor.empty() : tensor<i64>
  %s1 = linalg.fill ins(%zero : f64) outs(%s0 : tensor<f64>) -> tensor<f64>
  %c1 = linalg.fill ins(%none : i64) outs(%c0 : tensor<i64>) -> tensor<i64>
  %mask = linalg.generic {indexing_maps = [affine_map<(d0) -> ()>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%a, %x, %b : tensor<f64>, tensor<9000xf64>, tensor<f64>) outs(%e : tensor<9000xi1>) {
  ^bb0(%low: f64, %v: f64, %high: f64, %o: i1):
    %1 = arith.cmpf ole, %low, %v : f64
    %2 = arith.cmpf olt, %v, %high : f64
    %3 = arith.andi %1, %2 : i1
    linalg.yield %3 : i1
  } -> tensor<9000xi1>
  %sum = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]} ins(%mask, %y : tensor<9000xi1>, tensor<9000xf64>) outs(%s1 : tensor<f64>) {
  ^bb0(%m: i1, %v: f64, %acc: f64):
    %0 = arith.constant 0.0 : f64
    %1 = arith.select %m, %v, %0 : f64
    %2 = arith.addf %acc, %1 : f64
    linalg.yield %2 : f64
  } -> tensor<f64>
  %count = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]} ins(%mask : tensor<9000xi1>) outs(%c1 : tensor<i64>) {
  ^bb0(%m: i1, %acc: i64):
    %1 = arith.extui %m : i1 to i64
    %2 = arith.addi %acc, %1 : i64
    linalg.yield %2 : i64
  } -> tensor<i64>
  func.return %sum, %count : tensor<f64>, tensor<i64>
}

// What costs four operations on one tensor is made again for each reader, not kept: gelu's polynomial.
// CHECK-LABEL: func.func @polynomial
// CHECK-COUNT-2: linalg.generic
// CHECK-NOT:     linalg.generic
// CHECK:         return
func.func @polynomial(%x: tensor<64xf32>, %z: tensor<64xf32>) -> (tensor<64xf32>, tensor<f32>) {
  %e = tensor.empty() : tensor<64xf32>
  %zero = arith.constant 0.0 : f32
  %n = tensor.empty() : tensor<f32>
  %b = linalg.fill ins(%zero : f32) outs(%n : tensor<f32>) -> tensor<f32>
  %s = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%v: f32, %o: f32):
    %0 = arith.mulf %v, %v : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%s, %x : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%w: f32, %v: f32, %o: f32):
    %0 = arith.mulf %w, %v : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%c, %x : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%w: f32, %v: f32, %o: f32):
    %0 = arith.addf %w, %v : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%p : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%w: f32, %o: f32):
    %0 = math.exp %w : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %d = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]} ins(%z, %p : tensor<64xf32>, tensor<64xf32>) outs(%b : tensor<f32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %0 = arith.mulf %v, %w : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  func.return %y, %d : tensor<64xf32>, tensor<f32>
}

// What runs in order writes its results where the copy of them would: here transposed and from the end on.
// CHECK-LABEL: func.func @placed
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1, ((d0 * -1) + 7))>, affine_map<(d0, d1) -> (d1)>], iterator_types = ["reduction", "parallel"]}
// CHECK-NOT:     linalg.generic
// CHECK:         func.return
func.func @placed(%x: tensor<8x5xf32>) -> tensor<5x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x5xf32>
  %n = tensor.empty() : tensor<5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%n : tensor<5xf32>) -> tensor<5xf32>
  %y, %last = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<8x5xf32>) outs(%e, %f : tensor<8x5xf32>, tensor<5xf32>) {
  ^bb0(%v: f32, %o: f32, %s: f32):
    %0 = arith.addf %s, %v : f32
    linalg.yield %0, %0 : f32, f32
  } -> (tensor<8x5xf32>, tensor<5xf32>)
  %d = tensor.empty() : tensor<5x8xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> ((d1 * -1) + 7, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<8x5xf32>) outs(%d : tensor<5x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<5x8xf32>
  func.return %t : tensor<5x8xf32>
}

// A contraction widens what it reads, but what is rounded for it is rounded before, once for all that read it.
// CHECK-LABEL: func.func @rounded
// CHECK:         linalg.generic {{.*}} ins(%x : tensor<8x64xf32>)
// CHECK:           arith.truncf
// CHECK:         linalg.generic {{.*}} "reduction"]} ins({{.*}}, %w : tensor<8x64xbf16>, tensor<64x32xbf16>)
// CHECK-NOT:       arith.truncf
// CHECK:         func.return
func.func @rounded(%x: tensor<8x64xf32>, %w: tensor<64x32xbf16>, %into: tensor<8x64xbf16>, %to: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x64xf32>) outs(%into : tensor<8x64xbf16>) {
  ^bb0(%a: f32, %b: bf16):
    %c = arith.truncf %a : f32 to bf16
    linalg.yield %c : bf16
  } -> tensor<8x64xbf16>
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%r, %w : tensor<8x64xbf16>, tensor<64x32xbf16>) outs(%to : tensor<8x32xf32>) {
  ^bb0(%a: bf16, %b: bf16, %s: f32):
    %c = arith.extf %a : bf16 to f32
    %d = arith.extf %b : bf16 to f32
    %e = arith.mulf %c, %d : f32
    %f = arith.addf %s, %e : f32
    linalg.yield %f : f32
  } -> tensor<8x32xf32>
  func.return %y : tensor<8x32xf32>
}

// A slice is no such copy: what runs in order would write beyond it.
// CHECK-LABEL: func.func @sliced
// CHECK:         linalg.generic {{.*}} ["reduction", "parallel"]} ins(%x : tensor<8x5xf32>) outs({{.*}} : tensor<8x5xf32>, tensor<5xf32>)
// CHECK:         linalg.generic {{.*}} outs({{.*}} : tensor<8x2xf32>)
func.func @sliced(%x: tensor<8x5xf32>) -> tensor<8x2xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x5xf32>
  %n = tensor.empty() : tensor<5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%n : tensor<5xf32>) -> tensor<5xf32>
  %y, %last = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<8x5xf32>) outs(%e, %f : tensor<8x5xf32>, tensor<5xf32>) {
  ^bb0(%v: f32, %o: f32, %s: f32):
    %0 = arith.addf %s, %v : f32
    linalg.yield %0, %0 : f32, f32
  } -> (tensor<8x5xf32>, tensor<5xf32>)
  %d = tensor.empty() : tensor<8x2xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1 + 3)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<8x5xf32>) outs(%d : tensor<8x2xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<8x2xf32>
  func.return %t : tensor<8x2xf32>
}

// The sizes of the copy are made before what then writes it.
// CHECK-LABEL: func.func @placed_later
// CHECK:         %[[N:n.*]] = tensor.dim %x
// CHECK-NEXT:    tensor.empty(%[[N]]) : tensor<?x8xf32>
// CHECK-NEXT:    linalg.generic {{.*}} ["reduction", "parallel"]}
// CHECK-NOT:     linalg.generic
// CHECK:         func.return
func.func @placed_later(%x: tensor<8x?xf32>, %f: tensor<?xf32>) -> tensor<?x8xf32> {
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c1 : tensor<8x?xf32>
  %e = tensor.empty(%m) : tensor<8x?xf32>
  %y, %last = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<8x?xf32>) outs(%e, %f : tensor<8x?xf32>, tensor<?xf32>) {
  ^bb0(%v: f32, %o: f32, %s: f32):
    %0 = arith.addf %s, %v : f32
    linalg.yield %0, %0 : f32, f32
  } -> (tensor<8x?xf32>, tensor<?xf32>)
  %one = arith.constant 1 : index
  %n = tensor.dim %x, %one : tensor<8x?xf32>
  %d = tensor.empty(%n) : tensor<?x8xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<8x?xf32>) outs(%d : tensor<?x8xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<?x8xf32>
  func.return %t : tensor<?x8xf32>
}
