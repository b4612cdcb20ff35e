// RUN: %stepwell-opt %s -p schedule | filecheck %s
// RUN: %stepwell-opt %s -p 'schedule{machine="vector_bits=512,vector_registers=32,fma=1,threads=2,l3=32M,l2=0"}' | filecheck %s --check-prefix=WHOLE
// RUN: %stepwell-opt %s -p 'schedule{machine="vector_bits=512,vector_registers=32,fma=1,threads=2,l3=2097152,l2=65536"}' | filecheck %s --check-prefix=FAR
// RUN: %stepwell-opt %s -p 'schedule{machine="vector_bits=512,vector_registers=32,fma=1,threads=2,l3=2097152,l2=65536"},bufferize,plan-memory,linalg-to-loops' | filecheck %s --check-prefix=ASKED
// RUN: %stepwell-opt %s -p "schedule,bufferize,plan-memory,linalg-to-loops" | filecheck %s --check-prefix=LOOPS

// Each of 64 runs reads its rows from end to end, eight at a time; then the runs are joined in order.
// CHECK-LABEL: kernel.func @many
// CHECK-SAME:  #kernel.schedule<[parallel d1 into 64, for d1 by 8, for d0 by 16, unroll d1, unroll d0 by 8, vector d0 by 8]>
// WHOLE-LABEL: kernel.func @many
// WHOLE-SAME:  #kernel.schedule<[parallel d0 by 32 overlap, for d1, unroll d0 by 8, vector d0 by 8]>
// What comes from memory in every call is asked for eight rows before.
// FAR-LABEL:   kernel.func @many
// FAR-SAME:  #kernel.schedule<[parallel d1 into 64 {prefetch}, for d1 by 8, for d0 by 16, unroll d1, unroll d0 by 8, vector d0 by 8]>
// ASKED-LABEL: kernel.func @many
// ASKED:         kernel.prefetch %x[%{{.*}}] : memref<20000x72xf32>
// ASKED:         vector.load %x[
// LOOPS-LABEL: kernel.func @many
// LOOPS:         memref.alloca() {{.*}} : memref<64x72xf32>
// LOOPS:         scf.parallel
// LOOPS:           scf.for %j{{[_0-9]*}} = %{{.*}} step %c8 {
// LOOPS:               scf.for %j{{[_0-9]*}} = %c0 to %c64 step %c16
// LOOPS:                 vector.load %partial
// LOOPS:             vector.load %x[%{{.*}}] : memref<20000x72xf32>, vector<8xf32>
// LOOPS:         scf.reduce
// LOOPS:         vector.store %{{.*}}, %y
kernel.func @many(%x: tensor<20000x72xf32>, %y: tensor<72xf32>) -> tensor<72xf32> attributes {kernel.shared = 1} {
  %zero = arith.constant 0.0 : f32
  %s = linalg.fill ins(%zero : f32) outs(%y : tensor<72xf32>) -> tensor<72xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<20000x72xf32>) outs(%s : tensor<72xf32>) {
  ^bb0(%a: f32, %b: f32):
    %q = arith.addf %b, %a : f32
    linalg.yield %q : f32
  } -> tensor<72xf32>
  kernel.return %r : tensor<72xf32>
}

// Few rows of many columns: threads share the columns. What is written by hand stays.
// CHECK-LABEL: kernel.func @wide
// CHECK-SAME:  #kernel.schedule<[parallel d0 by 256 overlap {grain 274}, for d1, unroll d0 by 16, vector d0 by 16]>
// CHECK-LABEL: kernel.func @by_hand
// CHECK-SAME:  #kernel.schedule<[parallel d0 by 32, for d1, unroll d0 by 8, vector d0 by 8]>
kernel.func @wide(%x: tensor<40x200000xf32>, %y: tensor<200000xf32>) -> tensor<200000xf32> attributes {kernel.shared = 1} {
  %zero = arith.constant 0.0 : f32
  %s = linalg.fill ins(%zero : f32) outs(%y : tensor<200000xf32>) -> tensor<200000xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<40x200000xf32>) outs(%s : tensor<200000xf32>) {
  ^bb0(%a: f32, %b: f32):
    %q = arith.addf %b, %a : f32
    linalg.yield %q : f32
  } -> tensor<200000xf32>
  kernel.return %r : tensor<200000xf32>
}
kernel.func @by_hand(%x: tensor<20000x72xf32>, %y: tensor<72xf32>) -> tensor<72xf32> attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[parallel d0 by 32, for d1, unroll d0 by 8, vector d0 by 8]>} {
  %zero = arith.constant 0.0 : f32
  %s = linalg.fill ins(%zero : f32) outs(%y : tensor<72xf32>) -> tensor<72xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<20000x72xf32>) outs(%s : tensor<72xf32>) {
  ^bb0(%a: f32, %b: f32):
    %q = arith.addf %b, %a : f32
    linalg.yield %q : f32
  } -> tensor<72xf32>
  kernel.return %r : tensor<72xf32>
}
