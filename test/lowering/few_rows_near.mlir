// RUN: %stepwell-opt %s -p 'schedule{machine="vector_bits=512,vector_registers=32,fma=1,threads=2,l3=2M,l2=65536"}' | filecheck %s
// RUN: %stepwell-opt %s -p 'schedule{machine="vector_bits=512,vector_registers=32,fma=1,threads=2,l3=2M,l2=65536,l3_latency=400,misses=16"}' | filecheck %s --check-prefix=SLOW

// Between two calls of @alone its own arrays are touched: the last cache, of 2 MB here, still holds
// %w. @beside also has a large %v, so that %w comes from memory in every call.
// Where a line holds its buffer longer than a tile's step takes, nothing is prefetched.
// CHECK-LABEL: kernel.func @near
// SLOW-LABEL:  kernel.func @near
// CHECK-SAME:  [parallel d0 by 3, parallel d1 by 112 overlap, for d2 {prefetch 32}, unroll d0, unroll d1 by 16, vector d1 by 16]
// SLOW-SAME:   [parallel d0 by 3, parallel d1 by 112 overlap, for d2, unroll d0, unroll d1 by 16, vector d1 by 16]
kernel.func @near(%x: tensor<3x100xf32>, %w: tensor<100x2100xf32>, %y: tensor<3x2100xf32>) -> tensor<3x2100xf32> attributes {kernel.shared = 2} {
  %zero = arith.constant 0.0 : f32
  %s = linalg.fill ins(%zero : f32) outs(%y : tensor<3x2100xf32>) -> tensor<3x2100xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<3x100xf32>, tensor<100x2100xf32>) outs(%s : tensor<3x2100xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<3x2100xf32>
  kernel.return %r : tensor<3x2100xf32>
}

// CHECK-LABEL: kernel.func @far
// CHECK-SAME:  [parallel d1 by 1088, for d2 by 8 {pack 0, prefetch}, for d1 by 16, for d0 by 3, for d2, unroll d0, vector d1 by 16]
kernel.func @far(%x: tensor<3x100xf32>, %w: tensor<100x2100xf32>, %y: tensor<3x2100xf32>) -> tensor<3x2100xf32> attributes {kernel.shared = 2} {
  %zero = arith.constant 0.0 : f32
  %s = linalg.fill ins(%zero : f32) outs(%y : tensor<3x2100xf32>) -> tensor<3x2100xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<3x100xf32>, tensor<100x2100xf32>) outs(%s : tensor<3x2100xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<3x2100xf32>
  kernel.return %r : tensor<3x2100xf32>
}

func.func @alone(%x: tensor<3x100xf32>, %w: tensor<100x2100xf32>) -> tensor<3x2100xf32> {
  %e = tensor.empty() : tensor<3x2100xf32>
  %y = kernel.launch @near ins(%x, %w : tensor<3x100xf32>, tensor<100x2100xf32>) outs(%e : tensor<3x2100xf32>) -> tensor<3x2100xf32>
  func.return %y : tensor<3x2100xf32>
}

kernel.func @twice(%v: tensor<1000x1000xf32>, %u: tensor<1000x1000xf32>) -> tensor<1000x1000xf32> attributes {kernel.shared = 2} {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%v : tensor<1000x1000xf32>) outs(%u : tensor<1000x1000xf32>) {
  ^bb0(%a: f32, %b: f32):
    %p = arith.addf %a, %a : f32
    linalg.yield %p : f32
  } -> tensor<1000x1000xf32>
  kernel.return %r : tensor<1000x1000xf32>
}

func.func @beside(%x: tensor<3x100xf32>, %w: tensor<100x2100xf32>, %v: tensor<1000x1000xf32>) -> (tensor<3x2100xf32>, tensor<1000x1000xf32>) {
  %e = tensor.empty() : tensor<3x2100xf32>
  %y = kernel.launch @far ins(%x, %w : tensor<3x100xf32>, tensor<100x2100xf32>) outs(%e : tensor<3x2100xf32>) -> tensor<3x2100xf32>
  %f = tensor.empty() : tensor<1000x1000xf32>
  %u = kernel.launch @twice ins(%v : tensor<1000x1000xf32>) outs(%f : tensor<1000x1000xf32>) -> tensor<1000x1000xf32>
  func.return %y, %u : tensor<3x2100xf32>, tensor<1000x1000xf32>
}
