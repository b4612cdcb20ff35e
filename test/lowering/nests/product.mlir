// RUN: %stepwell-opt %s -p "bufferize,plan-memory,linalg-to-loops" | filecheck %s
// RUN: %stepwell-opt %s -p "bufferize,plan-memory,linalg-to-loops" -t opencl | filecheck %s --check-prefix=TEXT

#mk = affine_map<(d0, d1, d2) -> (d0, d2)>
#kn = affine_map<(d0, d1, d2) -> (d2, d1)>
#mn = affine_map<(d0, d1, d2) -> (d0, d1)>
#same = affine_map<(d0, d1) -> (d0, d1)>

// A tile for each group: 3 x 2 of them. What is staged, and who has it.
// CHECK-LABEL: kernel.func @product
// CHECK:       scf.parallel (%[[G:.*]]) = (%{{.*}}) to (%c6) step
// CHECK-DAG:     %y_local = memref.alloca() {kernel.space = "local"{{.*}}} : memref<8x32xf32>
// CHECK-DAG:     %x_local = memref.alloca() {kernel.space = "local"{{.*}}} : memref<16x9xf32>
// CHECK-DAG:     %[[SUMS:.*]] = memref.alloca() {kernel.space = "lanes"{{.*}}} : memref<64x8xf32>
// Lanes begin, ...
// CHECK:         scf.parallel (%[[L:.*]]) = (%{{.*}}) to (%c64) step
// CHECK-COUNT-8:   memref.store %zero
// CHECK:         } {kernel.lane}
// ... copy what eight steps of the sum read, no further than %x goes, ...
// CHECK:         scf.for %k = %c0 to %c20 step %c8
// CHECK:           scf.parallel
// CHECK:             arith.minsi
// CHECK:             memref.load %x[
// CHECK:             memref.store %{{.*}}, %x_local[
// CHECK:           } {kernel.lane}
// CHECK:           scf.parallel
// CHECK:             memref.store %{{.*}}, %y_local[
// CHECK:           } {kernel.lane}
// ... add up two rows of four columns each, ...
// CHECK:           scf.parallel
// CHECK:             scf.for
// CHECK-COUNT-8:       arith.mulf
// CHECK-NOT:           arith.mulf
// CHECK:           } {kernel.lane}
// ... and keep what is within the result.
// CHECK:         scf.parallel
// CHECK:           arith.cmpi slt
// CHECK:           scf.if
// CHECK:             memref.store %{{.*}}, %z[
// CHECK:         } {kernel.lane}
// CHECK:       } {kernel.lanes = 64 : i64}

// One kernel, whose lanes wait for each other between these, and not after the last.
// TEXT:       __kernel void kernel_product(
// TEXT:         const long g = (long)get_group_id(0);
// TEXT-DAG:     __local float y_local[256]
// TEXT-DAG:     __local float x_local[144]
// TEXT-DAG:     float {{.*}}[8];
// TEXT-COUNT-4: barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
// TEXT-NOT:     barrier
kernel.func @product(%x: tensor<40x20xf32>, %y: tensor<20x50xf32>, %z: tensor<40x50xf32>) -> tensor<40x50xf32> attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[group d0 by 16, group d1 by 32], op 0 [for d2 by 8 {stage 0, stage 1}, lane d0 by 2, lane d1 by 4, for d2, unroll d0, unroll d1]>} {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%z : tensor<40x50xf32>) -> tensor<40x50xf32>
  %p = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : tensor<40x20xf32>, tensor<20x50xf32>) outs(%f : tensor<40x50xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %s, %m : f32
    linalg.yield %n : f32
  } -> tensor<40x50xf32>
  kernel.return %p : tensor<40x50xf32>
}
func.func @main(%x: tensor<40x20xf32>, %y: tensor<20x50xf32>) -> tensor<40x50xf32> {
  %e = tensor.empty() : tensor<40x50xf32>
  %z = kernel.launch @product ins(%x, %y : tensor<40x20xf32>, tensor<20x50xf32>) outs(%e : tensor<40x50xf32>) -> tensor<40x50xf32>
  func.return %z : tensor<40x50xf32>
}
