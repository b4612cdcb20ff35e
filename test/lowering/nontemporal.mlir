// RUN: %stepwell-opt %s -p 'schedule{machine="vector_bits=512,vector_registers=32,threads=1,l3=4096"}' | filecheck %s
// RUN: %stepwell-opt %s -p 'schedule{machine="vector_bits=512,vector_registers=32,threads=1,l2=0,l3=4096"}' | filecheck %s --check-prefix=NONE
// RUN: %stepwell-opt %s --check -p 'schedule{machine="vector_bits=512,vector_registers=32,threads=1,l3=4096"},bufferize,plan-memory,linalg-to-loops' | filecheck %s --check-prefix=LOOPS

#id = affine_map<(d0) -> (d0)>
#row = affine_map<(d0, d1) -> (d0)>
#all = affine_map<(d0, d1) -> (d0, d1)>

// NONE-NOT:   nontemporal
// NONE-LABEL: kernel.func @by_hand

// The launch touches more than the last cache holds, and what it makes is only handed on.
// CHECK-LABEL: kernel.func @returned
// CHECK-SAME:    {nontemporal 0}
// LOOPS-LABEL: kernel.func @returned
// LOOPS:         vector.store %{{.*}}, %y[%{{.*}}] {nontemporal = true} : memref<520xf32>, vector<16xf32>
// LOOPS:         memref.store %{{.*}}, %y[%{{.*}}] : memref<520xf32>
kernel.func @returned(%x: tensor<520xf32>, %y: tensor<520xf32>) -> tensor<520xf32> attributes {kernel.shared = 1} {
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<520xf32>) outs(%y : tensor<520xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<520xf32>
  kernel.return %r : tensor<520xf32>
}

// One of its two launches is read again soon.
// CHECK-LABEL: kernel.func @read
// CHECK-NOT:     nontemporal
// LOOPS-LABEL: kernel.func @read
// LOOPS-NOT:     nontemporal
kernel.func @read(%x: tensor<520xf32>, %y: tensor<520xf32>) -> tensor<520xf32> attributes {kernel.shared = 1} {
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<520xf32>) outs(%y : tensor<520xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.mulf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<520xf32>
  kernel.return %r : tensor<520xf32>
}

// All it touches fits.
// CHECK-LABEL: kernel.func @small
// CHECK-NOT:     nontemporal
// LOOPS-LABEL: kernel.func @small
kernel.func @small(%x: tensor<512xf32>, %y: tensor<512xf32>) -> tensor<512xf32> attributes {kernel.shared = 1} {
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<512xf32>) outs(%y : tensor<512xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<512xf32>
  kernel.return %r : tensor<512xf32>
}

// Larger than the last cache, so nothing is left of it when it is read. The sums are too small to matter.
// CHECK-LABEL: kernel.func @large
// CHECK-SAME:    {nontemporal 0}
// LOOPS-LABEL: kernel.func @large
// LOOPS:         vector.store {{.*}} {nontemporal = true}
kernel.func @large(%x: tensor<8x160xf32>, %y: tensor<8x160xf32>, %z: tensor<8xf32>) -> (tensor<8x160xf32>, tensor<8xf32>) attributes {kernel.shared = 1} {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%z : tensor<8xf32>) -> tensor<8xf32>
  %r, %t = linalg.generic {indexing_maps = [#all, #all, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x160xf32>) outs(%y, %f : tensor<8x160xf32>, tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32, %u: f32):
    %s = arith.negf %a : f32
    %v = arith.addf %u, %s : f32
    linalg.yield %s, %v : f32, f32
  } -> (tensor<8x160xf32>, tensor<8xf32>)
  kernel.return %r, %t : tensor<8x160xf32>, tensor<8xf32>
}

// A schedule written by hand stays as it is.
// CHECK-LABEL: kernel.func @by_hand
// CHECK-SAME:    op 1 [for d1 by 16, vector d1 by 16 {nontemporal 0}]
// LOOPS-LABEL: kernel.func @by_hand
// LOOPS:         vector.store %{{.*}}, %y[%{{.*}}] :
// LOOPS:         vector.store %{{.*}}, %z[%{{.*}}] {nontemporal = true} :
kernel.func @by_hand(%x: tensor<4x32xf32>, %y: tensor<4x32xf32>, %z: tensor<4x32xf32>) -> (tensor<4x32xf32>, tensor<4x32xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[for d0], op 0 [for d1 by 16, vector d1 by 16], op 1 [for d1 by 16, vector d1 by 16 {nontemporal 0}]>} {
  %r = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x32xf32>) outs(%y : tensor<4x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.mulf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<4x32xf32>
  %q = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]} ins(%r : tensor<4x32xf32>) outs(%z : tensor<4x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<4x32xf32>
  kernel.return %r, %q : tensor<4x32xf32>, tensor<4x32xf32>
}

// A hundred and fifty operations for each byte keep the machine busy.
// CHECK-LABEL: kernel.func @busy
// CHECK-NOT:     nontemporal
// LOOPS-LABEL: kernel.func @busy
kernel.func @busy(%x: tensor<500x800xf32>, %y: tensor<500x500xf32>) -> tensor<500x500xf32> attributes {kernel.shared = 2} {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%y : tensor<500x500xf32>) -> tensor<500x500xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %x : tensor<500x800xf32>, tensor<500x800xf32>) outs(%f : tensor<500x500xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<500x500xf32>
  kernel.return %r : tensor<500x500xf32>
}

func.func @main(%x: tensor<520xf32>, %s: tensor<512xf32>, %m: tensor<8x160xf32>, %h: tensor<4x32xf32>) -> (tensor<2x520xf32>, tensor<520xf32>, tensor<512xf32>, tensor<8xf32>, tensor<4x32xf32>, tensor<4x32xf32>) {
  %e = tensor.empty() : tensor<520xf32>
  %r0 = kernel.launch @returned ins(%x : tensor<520xf32>) outs(%e : tensor<520xf32>) -> tensor<520xf32>
  %both = tensor.empty() : tensor<2x520xf32>
  %i0 = tensor.insert_slice %r0 into %both[0, 0] [1, 520] [1, 1] : tensor<520xf32> into tensor<2x520xf32>
  %e1 = tensor.empty() : tensor<520xf32>
  %r1 = kernel.launch @read ins(%x : tensor<520xf32>) outs(%e1 : tensor<520xf32>) -> tensor<520xf32>
  %e2 = tensor.empty() : tensor<520xf32>
  %r2 = kernel.launch @read ins(%r1 : tensor<520xf32>) outs(%e2 : tensor<520xf32>) -> tensor<520xf32>
  %i1 = tensor.insert_slice %r2 into %i0[1, 0] [1, 520] [1, 1] : tensor<520xf32> into tensor<2x520xf32>
  %e3 = tensor.empty() : tensor<512xf32>
  %r3 = kernel.launch @small ins(%s : tensor<512xf32>) outs(%e3 : tensor<512xf32>) -> tensor<512xf32>
  %e4 = tensor.empty() : tensor<8x160xf32>
  %e5 = tensor.empty() : tensor<8xf32>
  %r4, %r5 = kernel.launch @large ins(%m : tensor<8x160xf32>) outs(%e4, %e5 : tensor<8x160xf32>, tensor<8xf32>) -> tensor<8x160xf32>, tensor<8xf32>
  %e6 = tensor.empty() : tensor<8xf32>
  %e8 = tensor.empty() : tensor<8x160xf32>
  %r6, %r7 = kernel.launch @large ins(%r4 : tensor<8x160xf32>) outs(%e8, %e6 : tensor<8x160xf32>, tensor<8xf32>) -> tensor<8x160xf32>, tensor<8xf32>
  %e7 = tensor.empty() : tensor<4x32xf32>
  %e9 = tensor.empty() : tensor<4x32xf32>
  %r8, %r9 = kernel.launch @by_hand ins(%h : tensor<4x32xf32>) outs(%e7, %e9 : tensor<4x32xf32>, tensor<4x32xf32>) -> tensor<4x32xf32>, tensor<4x32xf32>
  func.return %i1, %r2, %r3, %r7, %r8, %r9 : tensor<2x520xf32>, tensor<520xf32>, tensor<512xf32>, tensor<8xf32>, tensor<4x32xf32>, tensor<4x32xf32>
}

func.func private @other(%x: tensor<500x800xf32>) -> tensor<500x500xf32> {
  %e = tensor.empty() : tensor<500x500xf32>
  %r = kernel.launch @busy ins(%x : tensor<500x800xf32>) outs(%e : tensor<500x500xf32>) -> tensor<500x500xf32>
  func.return %r : tensor<500x500xf32>
}
