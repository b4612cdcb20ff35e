// RUN: %stepwell-opt %s -p collapse-loops | filecheck %s

#bsk = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
#kj = affine_map<(d0, d1, d2, d3) -> (d3, d2)>
#bkj = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
#bsj = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#col = affine_map<(d0, d1, d2) -> (d2)>
#first = affine_map<(d0, d1, d2) -> (d0)>

// Rows of all batches are rows of one matrix; what is done to the sum afterwards goes with it.
// CHECK-LABEL: kernel.func @rows(%x: tensor<15x7xf32>, %w: tensor<7x9xf32>, %b: tensor<9xf32>, %y: tensor<15x9xf32>) -> tensor<15x9xf32> attributes {kernel.shared = 2 : i64} {
// CHECK:         %e = tensor.empty() : tensor<15x9xf32>
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]}
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
kernel.func @rows(%x: tensor<5x3x7xf32>, %w: tensor<7x9xf32>, %b: tensor<9xf32>, %y: tensor<5x3x9xf32>) -> tensor<5x3x9xf32> attributes {kernel.shared = 3} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x3x9xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<5x3x9xf32>) -> tensor<5x3x9xf32>
  %h = linalg.generic {indexing_maps = [#bsk, #kj, #bsj], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : tensor<5x3x7xf32>, tensor<7x9xf32>) outs(%s : tensor<5x3x9xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %p = arith.mulf %a, %c : f32
    %q = arith.addf %o, %p : f32
    linalg.yield %q : f32
  } -> tensor<5x3x9xf32>
  %r = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%h, %b : tensor<5x3x9xf32>, tensor<9xf32>) outs(%y : tensor<5x3x9xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %p = arith.addf %a, %c : f32
    linalg.yield %p : f32
  } -> tensor<5x3x9xf32>
  kernel.return %r : tensor<5x3x9xf32>
}

// CHECK-LABEL: func.func @main(
// CHECK:         %[[X:.*]] = tensor.collapse_shape %x {{\[}}[0 : i64, 1 : i64], [2 : i64]] : tensor<5x3x7xf32> into tensor<15x7xf32>
// CHECK-NEXT:    %[[E:.*]] = tensor.collapse_shape %e
// CHECK-NEXT:    %[[Y:.*]] = kernel.launch @rows ins(%[[X]], %w, %b : tensor<15x7xf32>, tensor<7x9xf32>, tensor<9xf32>) outs(%[[E]] : tensor<15x9xf32>) -> tensor<15x9xf32>
// CHECK-NEXT:    tensor.expand_shape %[[Y]] {{\[}}[0 : i64, 1 : i64], [2 : i64]] output_shape [5, 3, 9]
func.func @main(%x: tensor<5x3x7xf32>, %w: tensor<7x9xf32>, %b: tensor<9xf32>) -> tensor<5x3x9xf32> {
  %e = tensor.empty() : tensor<5x3x9xf32>
  %y = kernel.launch @rows ins(%x, %w, %b : tensor<5x3x7xf32>, tensor<7x9xf32>, tensor<9xf32>) outs(%e : tensor<5x3x9xf32>) -> tensor<5x3x9xf32>
  func.return %y : tensor<5x3x9xf32>
}

// Sizes that are made in the kernel are asked of an argument; the number that told them is gone.
// CHECK-LABEL: kernel.func @unknown(%x: tensor<?x7xf32>, %w: tensor<7x9xf32>, %y: tensor<?x9xf32>) -> tensor<?x9xf32>
// CHECK-NEXT:    %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %[[N:.*]] = tensor.dim %x, %[[ZERO]]
// CHECK-NEXT:    tensor.empty(%[[N]]) : tensor<?x9xf32>
kernel.func @unknown(%x: tensor<?x3x7xf32>, %w: tensor<7x9xf32>, %n: index, %y: tensor<?x3x9xf32>) -> tensor<?x3x9xf32> attributes {kernel.shared = 3} {
  %e = tensor.empty(%n) : tensor<?x3x9xf32>
  %zero = arith.constant 0.0 : f32
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<?x3x9xf32>) -> tensor<?x3x9xf32>
  %h = linalg.generic {indexing_maps = [#bsk, #kj, #bsj], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : tensor<?x3x7xf32>, tensor<7x9xf32>) outs(%s : tensor<?x3x9xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %p = arith.mulf %a, %c : f32
    %q = arith.addf %o, %p : f32
    linalg.yield %q : f32
  } -> tensor<?x3x9xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%h : tensor<?x3x9xf32>) outs(%y : tensor<?x3x9xf32>) {
  ^bb0(%a: f32, %o: f32):
    %p = arith.negf %a : f32
    linalg.yield %p : f32
  } -> tensor<?x3x9xf32>
  kernel.return %r : tensor<?x3x9xf32>
}
// CHECK-LABEL: func.func @of_unknown(
// CHECK:         kernel.launch @unknown ins(%{{.*}}, %w : tensor<?x7xf32>, tensor<7x9xf32>)
// CHECK-NEXT:    tensor.expand_shape {{.*}} output_shape [%n, 3, 9]
func.func @of_unknown(%x: tensor<?x3x7xf32>, %w: tensor<7x9xf32>) -> tensor<?x3x9xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x3x7xf32>
  %e = tensor.empty(%n) : tensor<?x3x9xf32>
  %y = kernel.launch @unknown ins(%x, %w, %n : tensor<?x3x7xf32>, tensor<7x9xf32>, index) outs(%e : tensor<?x3x9xf32>) -> tensor<?x3x9xf32>
  func.return %y : tensor<?x3x9xf32>
}

// A number for each batch is in the way, and so is a matrix for each batch.
// CHECK-LABEL: kernel.func @scaled(%x: tensor<5x3x7xf32>
kernel.func @scaled(%x: tensor<5x3x7xf32>, %w: tensor<7x9xf32>, %b: tensor<5xf32>, %y: tensor<5x3x9xf32>) -> tensor<5x3x9xf32> attributes {kernel.shared = 3} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x3x9xf32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<5x3x9xf32>) -> tensor<5x3x9xf32>
  %h = linalg.generic {indexing_maps = [#bsk, #kj, #bsj], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : tensor<5x3x7xf32>, tensor<7x9xf32>) outs(%s : tensor<5x3x9xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %p = arith.mulf %a, %c : f32
    %q = arith.addf %o, %p : f32
    linalg.yield %q : f32
  } -> tensor<5x3x9xf32>
  %r = linalg.generic {indexing_maps = [#id, #first, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%h, %b : tensor<5x3x9xf32>, tensor<5xf32>) outs(%y : tensor<5x3x9xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %p = arith.mulf %a, %c : f32
    linalg.yield %p : f32
  } -> tensor<5x3x9xf32>
  kernel.return %r : tensor<5x3x9xf32>
}
// CHECK-LABEL: kernel.func @batched(%x: tensor<5x3x7xf32>
kernel.func @batched(%x: tensor<5x3x7xf32>, %w: tensor<5x7x9xf32>, %y: tensor<5x3x9xf32>) -> tensor<5x3x9xf32> attributes {kernel.shared = 3} {
  %zero = arith.constant 0.0 : f32
  %s = linalg.fill ins(%zero : f32) outs(%y : tensor<5x3x9xf32>) -> tensor<5x3x9xf32>
  %h = linalg.generic {indexing_maps = [#bsk, #bkj, #bsj], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : tensor<5x3x7xf32>, tensor<5x7x9xf32>) outs(%s : tensor<5x3x9xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %p = arith.mulf %a, %c : f32
    %q = arith.addf %o, %p : f32
    linalg.yield %q : f32
  } -> tensor<5x3x9xf32>
  kernel.return %h : tensor<5x3x9xf32>
}
func.func @others(%x: tensor<5x3x7xf32>, %w: tensor<7x9xf32>, %ww: tensor<5x7x9xf32>, %b: tensor<5xf32>) -> (tensor<5x3x9xf32>, tensor<5x3x9xf32>) {
  %e = tensor.empty() : tensor<5x3x9xf32>
  %y = kernel.launch @scaled ins(%x, %w, %b : tensor<5x3x7xf32>, tensor<7x9xf32>, tensor<5xf32>) outs(%e : tensor<5x3x9xf32>) -> tensor<5x3x9xf32>
  %z = kernel.launch @batched ins(%x, %ww : tensor<5x3x7xf32>, tensor<5x7x9xf32>) outs(%e : tensor<5x3x9xf32>) -> tensor<5x3x9xf32>
  func.return %y, %z : tensor<5x3x9xf32>, tensor<5x3x9xf32>
}

// Lines that are cut out of longer ones, or put into such, do not lie together in memory.
// CHECK:       kernel.func @plain(%x: tensor<5x3x7xf32>
kernel.func @plain(%x: tensor<5x3x7xf32>, %w: tensor<7x9xf32>, %y: tensor<5x3x9xf32>) -> tensor<5x3x9xf32> attributes {kernel.shared = 3} {
  %zero = arith.constant 0.0 : f32
  %s = linalg.fill ins(%zero : f32) outs(%y : tensor<5x3x9xf32>) -> tensor<5x3x9xf32>
  %h = linalg.generic {indexing_maps = [#bsk, #kj, #bsj], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : tensor<5x3x7xf32>, tensor<7x9xf32>) outs(%s : tensor<5x3x9xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %p = arith.mulf %a, %c : f32
    %q = arith.addf %o, %p : f32
    linalg.yield %q : f32
  } -> tensor<5x3x9xf32>
  kernel.return %h : tensor<5x3x9xf32>
}
func.func @parts(%x: tensor<5x4x7xf32>, %w: tensor<7x9xf32>, %into: tensor<5x8x9xf32>) -> tensor<5x8x9xf32> {
  %part = tensor.extract_slice %x[0, 1, 0] [5, 3, 7] [1, 1, 1] : tensor<5x4x7xf32> to tensor<5x3x7xf32>
  %e = tensor.empty() : tensor<5x3x9xf32>
  %y = kernel.launch @plain ins(%part, %w : tensor<5x3x7xf32>, tensor<7x9xf32>) outs(%e : tensor<5x3x9xf32>) -> tensor<5x3x9xf32>
  %z = tensor.insert_slice %y into %into[0, 2, 0] [5, 3, 9] [1, 1, 1] : tensor<5x3x9xf32> into tensor<5x8x9xf32>
  func.return %z : tensor<5x8x9xf32>
}

// What one kernel leaves to another keeps the shape that both see.
// CHECK-LABEL: func.func @one_after_the_other(
// CHECK:         %[[Y:.*]] = kernel.launch @twice
// CHECK-NEXT:    tensor.empty
// CHECK-NEXT:    tensor.collapse_shape
// CHECK-NEXT:    kernel.launch @twice ins(%[[Y]], %w
kernel.func @twice(%x: tensor<5x3x7xf32>, %w: tensor<7x7xf32>, %y: tensor<5x3x7xf32>) -> tensor<5x3x7xf32> attributes {kernel.shared = 3} {
  %zero = arith.constant 0.0 : f32
  %s = linalg.fill ins(%zero : f32) outs(%y : tensor<5x3x7xf32>) -> tensor<5x3x7xf32>
  %h = linalg.generic {indexing_maps = [#bsk, #kj, #bsj], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : tensor<5x3x7xf32>, tensor<7x7xf32>) outs(%s : tensor<5x3x7xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %p = arith.mulf %a, %c : f32
    %q = arith.addf %o, %p : f32
    linalg.yield %q : f32
  } -> tensor<5x3x7xf32>
  kernel.return %h : tensor<5x3x7xf32>
}
func.func @one_after_the_other(%x: tensor<5x3x7xf32>, %w: tensor<7x7xf32>) -> tensor<5x3x7xf32> {
  %e = tensor.empty() : tensor<5x3x7xf32>
  %y = kernel.launch @twice ins(%x, %w : tensor<5x3x7xf32>, tensor<7x7xf32>) outs(%e : tensor<5x3x7xf32>) -> tensor<5x3x7xf32>
  %f = tensor.empty() : tensor<5x3x7xf32>
  %z = kernel.launch @twice ins(%y, %w : tensor<5x3x7xf32>, tensor<7x7xf32>) outs(%f : tensor<5x3x7xf32>) -> tensor<5x3x7xf32>
  func.return %z : tensor<5x3x7xf32>
}

// A sum over neighbouring axes is one sum.
// CHECK:       kernel.func @total(%x: tensor<5x21xf32>
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
kernel.func @total(%x: tensor<5x3x7xf32>, %y: tensor<5xf32>) -> tensor<5xf32> attributes {kernel.shared = 1} {
  %zero = arith.constant 0.0 : f32
  %s = linalg.fill ins(%zero : f32) outs(%y : tensor<5xf32>) -> tensor<5xf32>
  %h = linalg.generic {indexing_maps = [affine_map<(b, s, k) -> (b, s, k)>, affine_map<(b, s, k) -> (b)>], iterator_types = ["parallel", "reduction", "reduction"]} ins(%x : tensor<5x3x7xf32>) outs(%s : tensor<5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %q = arith.addf %o, %a : f32
    linalg.yield %q : f32
  } -> tensor<5xf32>
  kernel.return %h : tensor<5xf32>
}
// CHECK-LABEL: func.func @sums(
// CHECK:         tensor.collapse_shape %x {{.*}} : tensor<5x3x7xf32> into tensor<5x21xf32>
func.func @sums(%x: tensor<5x3x7xf32>) -> tensor<5xf32> {
  %e = tensor.empty() : tensor<5xf32>
  %y = kernel.launch @total ins(%x : tensor<5x3x7xf32>) outs(%e : tensor<5xf32>) -> tensor<5xf32>
  func.return %y : tensor<5xf32>
}

// A copy across rows that are too short for squares of vectors takes three of them as one.
// CHECK:       kernel.func @across(%x: tensor<63x17xf32>, %y: tensor<17x63xf32>) -> tensor<17x63xf32> attributes {kernel.shared = 2 : i64} {
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
kernel.func @across(%x: tensor<7x3x3x17xf32>, %y: tensor<17x7x3x3xf32>) -> tensor<17x7x3x3xf32> attributes {kernel.shared = 4} {
  %h = linalg.generic {indexing_maps = [affine_map<(i, r, o, s) -> (i, r, s, o)>, affine_map<(i, r, o, s) -> (o, i, r, s)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : tensor<7x3x3x17xf32>) outs(%y : tensor<17x7x3x3xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<17x7x3x3xf32>
  kernel.return %h : tensor<17x7x3x3xf32>
}
func.func @copies(%x: tensor<7x3x3x17xf32>) -> tensor<17x7x3x3xf32> {
  %e = tensor.empty() : tensor<17x7x3x3xf32>
  %y = kernel.launch @across ins(%x : tensor<7x3x3x17xf32>) outs(%e : tensor<17x7x3x3xf32>) -> tensor<17x7x3x3xf32>
  func.return %y : tensor<17x7x3x3xf32>
}
