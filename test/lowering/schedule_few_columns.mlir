// RUN: %stepwell-opt %s -p 'schedule{machine=zen4}' | filecheck %s

// An operand of up to a panel's columns is read in place: it lies as a panel does. If its columns are not side by side, only a vector's columns have a version.
// CHECK-LABEL: kernel.func @product
// CHECK-SAME:    #kernel.version<d1 from 2 to 2, #kernel.schedule<[parallel d0 by 8 {{[^<]*}}, for d1 by 2, for d2 by 16,
// CHECK-SAME:    #kernel.version<d1 from 4 to 4, #kernel.schedule<[parallel d0 by 6 {{[^<]*}}, for d1 by 4, for d2 by 16,
// CHECK-SAME:    #kernel.version<d1 from 0 to 16, #kernel.schedule<[parallel d0 by 10 {
// CHECK-SAME:    #kernel.version<d1 from 17 to 64, #kernel.schedule<[parallel d0 by 5 {
// CHECK-LABEL: kernel.func @turned
// CHECK-NOT:     from 17
kernel.func @product(%x: tensor<100x300xf32>, %w: tensor<300x?xf32>, %y: tensor<100x?xf32>) -> tensor<100x?xf32> attributes {kernel.shared = 2 : i64} {
  %0 = arith.constant 0.0 : f32
  %1 = linalg.fill ins(%0 : f32) outs(%y : tensor<100x?xf32>) -> tensor<100x?xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<100x300xf32>, tensor<300x?xf32>) outs(%1 : tensor<100x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %3 = arith.mulf %a, %b : f32
    %4 = arith.addf %c, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<100x?xf32>
  kernel.return %2 : tensor<100x?xf32>
}
kernel.func @turned(%x: tensor<100x300xf32>, %w: tensor<?x300xf32>, %y: tensor<100x?xf32>) -> tensor<100x?xf32> attributes {kernel.shared = 2 : i64} {
  %0 = arith.constant 0.0 : f32
  %1 = linalg.fill ins(%0 : f32) outs(%y : tensor<100x?xf32>) -> tensor<100x?xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<100x300xf32>, tensor<?x300xf32>) outs(%1 : tensor<100x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %3 = arith.mulf %a, %b : f32
    %4 = arith.addf %c, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<100x?xf32>
  kernel.return %2 : tensor<100x?xf32>
}

// What an op of the kernel allocates, by a size of an argument, does not matter.
// CHECK-LABEL: kernel.func @followed
// CHECK-SAME:    #kernel.version<d1 from 17 to 64,
kernel.func @followed(%x: tensor<100x300xf32>, %w: tensor<300x?xf32>, %y: tensor<100x?xf32>) -> tensor<100x?xf32> attributes {kernel.shared = 2 : i64} {
  %0 = arith.constant 0.0 : f32
  %one = arith.constant 1 : index
  %n = tensor.dim %w, %one : tensor<300x?xf32>
  %e = tensor.empty(%n) : tensor<100x?xf32>
  %1 = linalg.fill ins(%0 : f32) outs(%e : tensor<100x?xf32>) -> tensor<100x?xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<100x300xf32>, tensor<300x?xf32>) outs(%1 : tensor<100x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %3 = arith.mulf %a, %b : f32
    %4 = arith.addf %c, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<100x?xf32>
  %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<100x?xf32>) outs(%y : tensor<100x?xf32>) {
  ^bb0(%a: f32, %c: f32):
    %6 = arith.addf %a, %a : f32
    linalg.yield %6 : f32
  } -> tensor<100x?xf32>
  kernel.return %5 : tensor<100x?xf32>
}
