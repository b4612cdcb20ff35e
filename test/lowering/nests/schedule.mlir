// RUN: %stepwell-opt %s -p 'outline-kernels,schedule{machine="vector_bits=512,vector_registers=32,fma=1,threads=2,l3=32M,lanes=32,local_memory=49152,compute_units=4,l2=0"}' | filecheck %s
// RUN: %stepwell-opt %s -p 'outline-kernels,schedule{machine="vector_bits=512,vector_registers=32,fma=1,threads=2,l3=32M,lanes=32,local_memory=2048,compute_units=1000,l2=0"}' | filecheck %s --check-prefix=SMALL

#row = affine_map<(d0, d1) -> (d0, d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>
#rows = affine_map<(d0, d1) -> (d0)>
#mk = affine_map<(d0, d1, d2) -> (d0, d2)>
#kn = affine_map<(d0, d1, d2) -> (d2, d1)>
#mn = affine_map<(d0, d1, d2) -> (d0, d1)>

// CHECK-LABEL: kernel.func @elements_neg
// CHECK-SAME:    #kernel.schedule<[group d0, group d1 by 1024, unroll d1 by 256, lane d1]>
func.func @elements(%x: tensor<900x900xf32>) -> tensor<900x900xf32> {
  %e = tensor.empty() : tensor<900x900xf32>
  %z = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<900x900xf32>) outs(%e : tensor<900x900xf32>) {
  ^bb0(%a: f32, %b: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<900x900xf32>
  func.return %z : tensor<900x900xf32>
}

// A short last axis shares the lanes with the one before.
// CHECK-LABEL: kernel.func @narrow_neg
// CHECK-SAME:    #kernel.schedule<[group d0 by 32, group d1 by 8, lane d0, lane d1]>
func.func @narrow(%x: tensor<900x7xf32>) -> tensor<900x7xf32> {
  %e = tensor.empty() : tensor<900x7xf32>
  %z = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<900x7xf32>) outs(%e : tensor<900x7xf32>) {
  ^bb0(%a: f32, %b: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<900x7xf32>
  func.return %z : tensor<900x7xf32>
}

// CHECK-LABEL: kernel.func @transposed_copy
// CHECK-SAME:    #kernel.schedule<[group d0 by 32, group d1 by 32 {stage 0}, lane d0 by 4, lane d1, unroll d0]>
func.func @transposed(%x: tensor<90x80xf32>) -> tensor<80x90xf32> {
  %e = tensor.empty() : tensor<80x90xf32>
  %z = linalg.generic {indexing_maps = [#turned, #row], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<90x80xf32>) outs(%e : tensor<80x90xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<80x90xf32>
  func.return %z : tensor<80x90xf32>
}

// CHECK-LABEL: kernel.func @rows_sum
// CHECK-SAME:    #kernel.schedule<[group d0], op 0 [for d1 by 256, lane d1]>
func.func @rows(%x: tensor<?x?xf32>, %n: index) -> tensor<?xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.generic {indexing_maps = [#row, #rows], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x?xf32>) outs(%f : tensor<?xf32>) {
  ^bb0(%a: f32, %s: f32):
    %n2 = arith.addf %s, %a : f32
    linalg.yield %n2 : f32
  } -> tensor<?xf32>
  func.return %sum : tensor<?xf32>
}

// The largest tile of which there are enough for all units; less of the sum where there is no room.
// CHECK-LABEL: kernel.func @product_matmul
// CHECK-SAME:    #kernel.schedule<[group d0 by 128, group d1 by 128], op 0 [for d2 by 16 {stage 0, stage 1}, lane d0 by 8, lane d1 by 8, for d2, unroll d0, unroll d1]>
// SMALL-LABEL: kernel.func @product_matmul
// SMALL-SAME:    #kernel.schedule<[group d0 by 32, group d1 by 32], op 0 [for d2 by 4 {stage 0, stage 1}, lane d0 by 2, lane d1 by 2, for d2, unroll d0, unroll d1]>
func.func @product(%x: tensor<300x200xf32>, %y: tensor<200x300xf32>) -> tensor<300x300xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<300x300xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<300x300xf32>) -> tensor<300x300xf32>
  %p = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : tensor<300x200xf32>, tensor<200x300xf32>) outs(%f : tensor<300x300xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %s, %m : f32
    linalg.yield %n : f32
  } -> tensor<300x300xf32>
  func.return %p : tensor<300x300xf32>
}
