// RUN: %stepwell-opt %s -p "pack-operands" | filecheck %s
// RUN: %stepwell-opt %s --check -p "pack-operands,bufferize,plan-memory,linalg-to-loops" | filecheck %s --check-prefix=LOOPS

#mk = affine_map<(d0, d1, d2) -> (d0, d2)>
#kn = affine_map<(d0, d1, d2) -> (d2, d1)>
#nk = affine_map<(d0, d1, d2) -> (d1, d2)>
#mn = affine_map<(d0, d1, d2) -> (d0, d1)>

// One packing kernel serves both weights of this layout, row by row; what lies beyond the last column
// is zero.
// CHECK-LABEL: kernel.func @main_pack(
// CHECK-SAME:    %w: tensor<5x11xf32>, %packed: tensor<2x5x8xf32>
// CHECK-SAME:  #kernel.schedule<[for d0, for d1 by 8, unroll d1 by 4, vector d1 by 4]>
// CHECK:         linalg.fill
// CHECK:         indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> ((d1 floordiv 8), d0, (d1 mod 8))>]

// An argument is not packed: its launch runs the kernel as it was.
// CHECK:       kernel.func @matmul(%x: tensor<3x5xf32>, %w: tensor<5x11xf32>
// CHECK:       kernel.func @matmul_packed(%x: tensor<3x5xf32>, %w_packed: tensor<2x5x8xf32>
// CHECK:         affine_map<(d0, d1, d2) -> ((d1 floordiv 8), d2, (d1 mod 8))>
// LOOPS-LABEL: kernel.func @matmul_packed
// LOOPS-NOT:     memref.alloca() {{.*}}packed
// LOOPS:         vector.load %w_packed
kernel.func @matmul(%x: tensor<3x5xf32>, %w: tensor<5x11xf32>, %y: tensor<3x11xf32>) -> tensor<3x11xf32> attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[for d0 by 4, for d1 by 8, for d2 by 4 {pack 1}, for d0 by 2, for d2, unroll d0, unroll d1 by 4, vector d1 by 4]>} {
  %zero = arith.constant 0.0 : f32
  %s = linalg.fill ins(%zero : f32) outs(%y : tensor<3x11xf32>) -> tensor<3x11xf32>
  %r = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<3x5xf32>, tensor<5x11xf32>) outs(%s : tensor<3x11xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<3x11xf32>
  kernel.return %r : tensor<3x11xf32>
}

// Rows of the operand lie along the sum: the packing kernel turns them over.
// CHECK:       kernel.func @main_pack_1(%w: tensor<11x5xf32>, %packed: tensor<2x5x8xf32>
// CHECK:         indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> ((d0 floordiv 8), d1, (d0 mod 8))>]
kernel.func @turned(%x: tensor<3x5xf32>, %w: tensor<11x5xf32>, %y: tensor<3x11xf32>) -> tensor<3x11xf32> attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[for d0 by 4, for d1 by 8, for d2 by 8 {pack 1}, for d0 by 2, for d2, unroll d0, unroll d1 by 4, vector d1 by 4]>} {
  %zero = arith.constant 0.0 : f32
  %s = linalg.fill ins(%zero : f32) outs(%y : tensor<3x11xf32>) -> tensor<3x11xf32>
  %r = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<3x5xf32>, tensor<11x5xf32>) outs(%s : tensor<3x11xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<3x11xf32>
  kernel.return %r : tensor<3x11xf32>
}

// A weight of two launches is packed once.
// CHECK-LABEL: func.func @main
// CHECK:         kernel.launch @main_pack_1 ins(%t :
// CHECK-COUNT-2: kernel.launch @main_pack ins(
// CHECK-NOT:     kernel.launch @main_pack
// CHECK:         kernel.launch @matmul_packed
// CHECK:         kernel.launch @matmul_packed
// CHECK:         kernel.launch @matmul_packed
// CHECK:         kernel.launch @matmul ins
// CHECK:         kernel.launch @turned
func.func @main(%x: tensor<3x5xf32>, %z: tensor<5x11xf32>, %v: tensor<5x11xf32> {nd.resource = "v"}, %w: tensor<5x11xf32> {nd.resource = "w"}, %t: tensor<11x5xf32> {nd.resource = "t"}) -> (tensor<3x11xf32>, tensor<3x11xf32>, tensor<3x11xf32>, tensor<3x11xf32>, tensor<3x11xf32>) {
  %e0 = tensor.empty() : tensor<3x11xf32>
  %a = kernel.launch @matmul ins(%x, %w : tensor<3x5xf32>, tensor<5x11xf32>) outs(%e0 : tensor<3x11xf32>) -> tensor<3x11xf32>
  %e1 = tensor.empty() : tensor<3x11xf32>
  %b = kernel.launch @matmul ins(%x, %v : tensor<3x5xf32>, tensor<5x11xf32>) outs(%e1 : tensor<3x11xf32>) -> tensor<3x11xf32>
  %e2 = tensor.empty() : tensor<3x11xf32>
  %c = kernel.launch @matmul ins(%x, %w : tensor<3x5xf32>, tensor<5x11xf32>) outs(%e2 : tensor<3x11xf32>) -> tensor<3x11xf32>
  %e3 = tensor.empty() : tensor<3x11xf32>
  %d = kernel.launch @matmul ins(%x, %z : tensor<3x5xf32>, tensor<5x11xf32>) outs(%e3 : tensor<3x11xf32>) -> tensor<3x11xf32>
  %e4 = tensor.empty() : tensor<3x11xf32>
  %e = kernel.launch @turned ins(%x, %t : tensor<3x5xf32>, tensor<11x5xf32>) outs(%e4 : tensor<3x11xf32>) -> tensor<3x11xf32>
  func.return %a, %b, %c, %d, %e : tensor<3x11xf32>, tensor<3x11xf32>, tensor<3x11xf32>, tensor<3x11xf32>, tensor<3x11xf32>
}

// What three blocks of rows would each pack anew is packed once, unless it is too large for the last cache.
// RUN: %stepwell-opt %s -p "pack-operands{l3=256}" | filecheck %s --check-prefix=SMALL
// CHECK-LABEL: func.func @args
// CHECK:         %z_packed = kernel.launch @main_pack ins(%z
// CHECK:         kernel.launch @tall ins(%x, %z_packed
// SMALL-LABEL: func.func @args
// SMALL-NEXT:    tensor.empty
// SMALL-NEXT:    kernel.launch @tall ins(%x, %z :
kernel.func @tall(%x: tensor<9x5xf32>, %w: tensor<5x11xf32>, %y: tensor<9x11xf32>) -> tensor<9x11xf32> attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[for d0 by 4, for d1 by 8, for d2 by 4 {pack 1}, for d0 by 2, for d2, unroll d0, unroll d1 by 4, vector d1 by 4]>} {
  %zero = arith.constant 0.0 : f32
  %s = linalg.fill ins(%zero : f32) outs(%y : tensor<9x11xf32>) -> tensor<9x11xf32>
  %r = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<9x5xf32>, tensor<5x11xf32>) outs(%s : tensor<9x11xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<9x11xf32>
  kernel.return %r : tensor<9x11xf32>
}
func.func @args(%x: tensor<9x5xf32>, %z: tensor<5x11xf32>) -> tensor<9x11xf32> {
  %e = tensor.empty() : tensor<9x11xf32>
  %a = kernel.launch @tall ins(%x, %z : tensor<9x5xf32>, tensor<5x11xf32>) outs(%e : tensor<9x11xf32>) -> tensor<9x11xf32>
  func.return %a : tensor<9x11xf32>
}

// Three blocks that pack while they compute do it themselves.
// CHECK-LABEL: func.func @at_once
// CHECK-NEXT:    tensor.empty
// CHECK-NEXT:    kernel.launch @packing ins(%x, %z :
kernel.func @packing(%x: tensor<9x5xf32>, %w: tensor<5x16xf32>, %y: tensor<9x16xf32>) -> tensor<9x16xf32> attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[for d0 by 4, for d1 by 8, for d2 by 4 {pack 1 as first}, for d0 by 2, for d2, unroll d0, unroll d1 by 4, vector d1 by 4]>} {
  %zero = arith.constant 0.0 : f32
  %s = linalg.fill ins(%zero : f32) outs(%y : tensor<9x16xf32>) -> tensor<9x16xf32>
  %r = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<9x5xf32>, tensor<5x16xf32>) outs(%s : tensor<9x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<9x16xf32>
  kernel.return %r : tensor<9x16xf32>
}
func.func @at_once(%x: tensor<9x5xf32>, %z: tensor<5x16xf32>) -> tensor<9x16xf32> {
  %e = tensor.empty() : tensor<9x16xf32>
  %a = kernel.launch @packing ins(%x, %z : tensor<9x5xf32>, tensor<5x16xf32>) outs(%e : tensor<9x16xf32>) -> tensor<9x16xf32>
  func.return %a : tensor<9x16xf32>
}

// What each of many iterations would pack anew is packed once, before the loop.
// CHECK-LABEL: func.func @again_and_again
// CHECK:         %z_packed = kernel.launch @{{.*}}_pack ins(%z
// CHECK:         scf.for
// CHECK:           kernel.launch @short_packed ins(%{{.*}}, %z_packed
// CHECK:         kernel.launch @short ins(%{{.*}}, %z :
kernel.func @short(%x: tensor<4x5xf32>, %w: tensor<5x5xf32>, %y: tensor<4x5xf32>) -> tensor<4x5xf32> attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[for d0 by 4, for d1 by 8, for d2 by 8 {pack 1}, for d0 by 2, for d2, unroll d0, unroll d1 by 4, vector d1 by 4]>} {
  %zero = arith.constant 0.0 : f32
  %s = linalg.fill ins(%zero : f32) outs(%y : tensor<4x5xf32>) -> tensor<4x5xf32>
  %r = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<4x5xf32>, tensor<5x5xf32>) outs(%s : tensor<4x5xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<4x5xf32>
  kernel.return %r : tensor<4x5xf32>
}
func.func @again_and_again(%x: tensor<4x5xf32>, %z: tensor<5x5xf32>) -> tensor<4x5xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 40 : index
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (tensor<4x5xf32>) {
    %e = tensor.empty() : tensor<4x5xf32>
    %b = kernel.launch @short ins(%a, %z : tensor<4x5xf32>, tensor<5x5xf32>) outs(%e : tensor<4x5xf32>) -> tensor<4x5xf32>
    scf.yield %b : tensor<4x5xf32>
  }
  %e = tensor.empty() : tensor<4x5xf32>
  %b = kernel.launch @short ins(%y, %z : tensor<4x5xf32>, tensor<5x5xf32>) outs(%e : tensor<4x5xf32>) -> tensor<4x5xf32>
  func.return %b : tensor<4x5xf32>
}
