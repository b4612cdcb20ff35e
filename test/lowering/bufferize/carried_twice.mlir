// RUN: %stepwell-opt %s -p bufferize | filecheck %s
//
// Two buffers that a loop exchanges are two, though one value is what both begin as.

kernel.func @zero(%y: tensor<8xf32>) -> tensor<8xf32> attributes {kernel.shared = 1 : i64} {
  %0 = arith.constant 0.0 : f32
  %z = linalg.fill ins(%0 : f32) outs(%y : tensor<8xf32>) -> tensor<8xf32>
  kernel.return %z : tensor<8xf32>
}

kernel.func @add(%u: tensor<8xf32>, %w: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> attributes {kernel.shared = 1 : i64} {
  %s = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%u, %w : tensor<8xf32>, tensor<8xf32>) outs(%y : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  kernel.return %s : tensor<8xf32>
}

// CHECK-LABEL: func.func @of_while
// CHECK:         kernel.launch @zero outs(%[[A:.*]] :
// CHECK-NEXT:    memref.copy %[[A]], %[[B:.*]] :
// CHECK-NEXT:    scf.while (%{{.*}} = %[[A]], %{{.*}} = %[[B]],
func.func @of_while(%go: tensor<i1>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %z = kernel.launch @zero outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %r, %q = scf.while (%a = %z, %b = %z) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
    %c = tensor.extract %go[] : tensor<i1>
    scf.condition(%c) %a, %b : tensor<8xf32>, tensor<8xf32>
  } do {
  ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
    %f = tensor.empty() : tensor<8xf32>
    %n = kernel.launch @add ins(%a, %b : tensor<8xf32>, tensor<8xf32>) outs(%f : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %n, %a : tensor<8xf32>, tensor<8xf32>
  }
  func.return %r, %q : tensor<8xf32>, tensor<8xf32>
}

// One value that two sums of a kernel begin as is copied, in vectors as the kernel's other ops.
// CHECK-LABEL: kernel.func @sums
// CHECK-SAME:    #kernel.schedule<[for d0 by 8], op 0 [vector d0 by 8], op 1 [vector d0 by 8], op 2 [for d1, vector d0 by 8]>
// CHECK:         %[[C:.*]] = memref.alloc() : memref<8xf32>
// CHECK-NEXT:    linalg.generic {{.*}} outs(%[[C]] : memref<8xf32>)
kernel.func @sums(%y: tensor<8xf32>, %xs: tensor<2x8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> attributes {kernel.shared = 1 : i64, kernel.schedule = #kernel.schedule<[for d0 by 8], op 0 [vector d0 by 8], op 1 [for d1, vector d0 by 8]>} {
  %0 = tensor.empty() : tensor<8xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%y : tensor<8xf32>) outs(%0 : tensor<8xf32>) {
  ^bb0(%v: f32, %o: f32):
    %n = arith.negf %v : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  %p, %q = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%xs : tensor<2x8xf32>) outs(%t, %t : tensor<8xf32>, tensor<8xf32>) {
  ^bb0(%x: f32, %c: f32, %d: f32):
    linalg.yield %x, %c : f32, f32
  } -> (tensor<8xf32>, tensor<8xf32>)
  kernel.return %q : tensor<8xf32>
}
