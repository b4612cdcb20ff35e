// RUN: %stepwell-opt %s -p 'schedule{machine="vector_bits=512,vector_registers=32,fma=1,threads=2,l3=2097152,l2=65536"}' | filecheck %s
// RUN: %stepwell-opt %s -p 'schedule{machine="vector_bits=512,vector_registers=32,fma=1,threads=1,l3=2097152,l2=65536"}' | filecheck %s --check-prefix=ALONE
// RUN: %stepwell-opt %s -p 'schedule{machine="vector_bits=512,vector_registers=32,fma=1,threads=2,l3=1048576,l2=32768"}' | filecheck %s --check-prefix=FAR
// RUN: %stepwell-opt %s -p 'schedule{machine="vector_bits=512,vector_registers=32,fma=1,threads=2,l3=1048576,l2=32768"},bufferize,plan-memory,linalg-to-loops' | filecheck %s --check-prefix=ASKED
// RUN: %stepwell-opt %s -p 'schedule{machine="vector_bits=512,vector_registers=32,fma=1,threads=2,l3=2097152,l2=65536"},bufferize,plan-memory,linalg-to-loops' | filecheck %s --check-prefix=LOOPS

#mk = affine_map<(d0, d1, d2) -> (d0, d2)>
#kn = affine_map<(d0, d1, d2) -> (d2, d1)>
#mn = affine_map<(d0, d1, d2) -> (d0, d1)>

// One row waits for %w alone: eight rows of it at a time, along a strip for each thread, two vectors in a tile.
// Where %w comes from memory in every call the next rows are prefetched.
// CHECK-LABEL: kernel.func @row
// CHECK-SAME:  #kernel.schedule<[parallel d1 by 1088, for d2 by 8, for d1 by 32, for d0, for d2, unroll d1 by 16, vector d1 by 16]>
// ALONE-LABEL: kernel.func @row
// ALONE-SAME:  #kernel.schedule<[parallel d1 by 2112, for d2 by 8, for d1 by 32, for d0, for d2, unroll d1 by 16, vector d1 by 16]>
// FAR-LABEL:   kernel.func @row
// FAR-SAME:  #kernel.schedule<[parallel d1 by 1088, for d2 by 8 {prefetch}, for d1 by 32, for d0, for d2, unroll d1 by 16, vector d1 by 16]>
// ASKED-LABEL: kernel.func @row
// ASKED:         arith.cmpi slt
// ASKED-COUNT-2: arith.select
// ASKED-COUNT-2: kernel.prefetch %w[
// ASKED-NOT:     kernel.prefetch
// ASKED:         vector.load %w[
// LOOPS-LABEL: kernel.func @row
// LOOPS:         scf.parallel
// LOOPS:           memref.alloca() {{.*}} : memref<34x32xf32>
// LOOPS-NOT:       packed
kernel.func @row(%x: tensor<1x100xf32>, %w: tensor<100x2100xf32>, %y: tensor<1x2100xf32>) -> tensor<1x2100xf32> attributes {kernel.shared = 2} {
  %zero = arith.constant 0.0 : f32
  %s = linalg.fill ins(%zero : f32) outs(%y : tensor<1x2100xf32>) -> tensor<1x2100xf32>
  %r = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<1x100xf32>, tensor<100x2100xf32>) outs(%s : tensor<1x2100xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<1x2100xf32>
  kernel.return %r : tensor<1x2100xf32>
}

// From the last cache, three rows read %w in tiles; from memory in strips, and their part for eight rows of %w is packed.
// CHECK-LABEL: kernel.func @three
// CHECK-SAME:  #kernel.schedule<[parallel d0 by 3, parallel d1 by 112 overlap, for d2 {prefetch 32}, unroll d0, unroll d1 by 16, vector d1 by 16]>
// FAR-LABEL:   kernel.func @three
// FAR-SAME:    #kernel.schedule<[parallel d1 by 1088, for d2 by 8 {pack 0, prefetch}, for d1 by 16, for d0 by 3, for d2, unroll d0, vector d1 by 16]>
// ALONE-LABEL: kernel.func @three
// ASKED-LABEL: kernel.func @three
// ASKED:         scf.parallel
// ASKED:           %packed = memref.alloca() {{.*}} : memref<8x3xf32>
// ASKED:           memref.alloca() {{.*}} : memref<204x16xf32>
// ASKED:           memref.store %{{.*}}, %packed
kernel.func @three(%x: tensor<3x100xf32>, %w: tensor<100x2100xf32>, %y: tensor<3x2100xf32>) -> tensor<3x2100xf32> attributes {kernel.shared = 2} {
  %zero = arith.constant 0.0 : f32
  %s = linalg.fill ins(%zero : f32) outs(%y : tensor<3x2100xf32>) -> tensor<3x2100xf32>
  %r = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<3x100xf32>, tensor<100x2100xf32>) outs(%s : tensor<3x2100xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<3x2100xf32>
  kernel.return %r : tensor<3x2100xf32>
}

// So many rows keep the machine busy with what the last cache holds.
// CHECK-LABEL: kernel.func @rows
// CHECK-SAME:  #kernel.schedule<[parallel d0 by 6, parallel d1 by 64 overlap {grain 66}, for d2, unroll d0, unroll d1 by 16, vector d1 by 16]>
kernel.func @rows(%x: tensor<6x100xf32>, %w: tensor<100x2100xf32>, %y: tensor<6x2100xf32>) -> tensor<6x2100xf32> attributes {kernel.shared = 2} {
  %zero = arith.constant 0.0 : f32
  %s = linalg.fill ins(%zero : f32) outs(%y : tensor<6x2100xf32>) -> tensor<6x2100xf32>
  %r = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<6x100xf32>, tensor<100x2100xf32>) outs(%s : tensor<6x2100xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<6x2100xf32>
  kernel.return %r : tensor<6x2100xf32>
}

// Rows of both operands lie along the sum: several of each are summed at once.
// CHECK-LABEL: kernel.func @dots
// CHECK-SAME:  #kernel.schedule<[parallel d0 by 6, parallel d1 by 4 {grain 7}, for d2 by 16, unroll d0, unroll d1, vector d2 by 16]>
// LOOPS-LABEL: kernel.func @dots
// LOOPS-COUNT-24: vector.reduction
kernel.func @dots(%x: tensor<6x1000xf32>, %w: tensor<40x1000xf32>, %y: tensor<6x40xf32>) -> tensor<6x40xf32> attributes {kernel.shared = 2} {
  %zero = arith.constant 0.0 : f32
  %s = linalg.fill ins(%zero : f32) outs(%y : tensor<6x40xf32>) -> tensor<6x40xf32>
  %r = linalg.generic {indexing_maps = [#mk, affine_map<(d0, d1, d2) -> (d1, d2)>, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<6x1000xf32>, tensor<40x1000xf32>) outs(%s : tensor<6x40xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<6x40xf32>
  kernel.return %r : tensor<6x40xf32>
}
