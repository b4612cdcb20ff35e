// RUN: %stepwell-opt %s -p linalg-to-loops --split-input-file --verify-diagnostics
//
// Schedules that an op cannot follow, and ops that are not loops over buffers.

// expected-error@+1 {{'vector d2 by 4': there is no loop d2, the op has 2}}
kernel.func @k(%x: memref<8x8xf32>, %y: memref<8xf32>) attributes {kernel.schedule = #kernel.schedule<[for d0, for d1, vector d2 by 4]>} {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<8x8xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %s = arith.addf %acc, %a : f32
    linalg.yield %s : f32
  }
  kernel.return
}

// -----

// expected-error@+1 {{'vector d1 by 4': iterations of d1 run in order}}
kernel.func @k(%x: memref<8x8xf32>, %y: memref<8xf32>) attributes {kernel.schedule = #kernel.schedule<[for d0, for d1 by 4, vector d1 by 4]>} {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<8x8xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %s = arith.subf %a, %acc : f32
    linalg.yield %s : f32
  }
  kernel.return
}

// -----

kernel.func @k(%c: f32, %y: memref<8xf32>) attributes {kernel.shared = 2} {
  // expected-error@+1 {{the kernel shares 2 loops, but this op has 1}}
  linalg.fill ins(%c : f32) outs(%y : memref<8xf32>)
  kernel.return
}

// -----

// expected-error@+1 {{ops of a kernel must agree on how the loops that they share are vectors}}
kernel.func @k(%x: memref<8x8xf32>, %y: memref<8xf32>, %z: memref<8xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[for d0 by 4], op 0 [for d1, vector d0 by 4], op 1 [unroll d0]>} {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<8x8xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %s = arith.addf %acc, %a : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%y : memref<8xf32>) outs(%z : memref<8xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %s = arith.addf %acc, %a : f32
    linalg.yield %s : f32
  }
  kernel.return
}

// -----

// expected-error@+1 {{only full reductions by known}}
kernel.func @k(%x: memref<8x8xf32>, %y: memref<8xf32>) attributes {kernel.schedule = #kernel.schedule<[parallel d1 into 4, for d1]>} {
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<8x8xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %s = arith.addf %acc, %a : f32
    linalg.yield %s : f32
  }
  kernel.return
}

// -----

kernel.func @k(%c: f64, %y: memref<8xf32>) {
  // expected-error@+1 {{memref<8xf32> is not filled with f64}}
  linalg.fill ins(%c : f64) outs(%y : memref<8xf32>)
  kernel.return
}

// -----

kernel.func @k(%x: memref<8x8xf32>, %y: memref<8xf32>) {
  // expected-error@+1 {{output 0 of linalg.generic varies with some of the reduction loops only}}
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["reduction", "reduction"]}
      ins(%x : memref<8x8xf32>) outs(%y : memref<8xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %s = arith.addf %acc, %a : f32
    linalg.yield %s : f32
  }
  kernel.return
}

// -----

kernel.func @k(%c: f32, %y: tensor<8xf32>) {
  // expected-error@+1 {{linalg.fill works on tensor<8xf32>}}
  %r = linalg.fill ins(%c : f32) outs(%y : tensor<8xf32>) -> tensor<8xf32>
  kernel.return
}

// -----

// expected-error@+1 {{'for d0 by 3' is not made of whole tiles of 2}}
kernel.func @k(%c: f32, %x: memref<8x8xf32>, %w: memref<8x8xf32>, %y: memref<8x8xf32>) attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[for d0 by 3, for d1 by 8, for d2 by 4 {pack 1}, for d0 by 2, for d2, unroll d0, unroll d1 by 4, vector d1 by 4]>} {
  linalg.fill ins(%c : f32) outs(%y : memref<8x8xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<8x8xf32>, memref<8x8xf32>) outs(%y : memref<8x8xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  }
  kernel.return
}

// -----

// expected-error@+1 {{a sum in steps needs several}}
kernel.func @k(%c: f32, %x: memref<8x8xf32>, %w: memref<8x8xf32>, %y: memref<8x8xf32>) attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[for d0 by 4, for d1 by 8, for d1 by 4, for d2 by 4 {pack 1}, for d0, for d2, vector d1 by 4]>} {
  linalg.fill ins(%c : f32) outs(%y : memref<8x8xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<8x8xf32>, memref<8x8xf32>) outs(%y : memref<8x8xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  }
  kernel.return
}

// -----

kernel.func @k(%c: f32, %x: memref<8x8xf32>, %w: memref<8x8xf32>, %y: memref<8x8xf32>) attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[for d0 by 4, for d1 by 8, for d2 by 4 {pack 1}, for d0 by 2, for d2, unroll d0, unroll d1 by 4, vector d1 by 4]>} {
  // expected-error@+1 {{a sum in steps has one output, which a linalg.fill starts}}
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<8x8xf32>, memref<8x8xf32>) outs(%y : memref<8x8xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  }
  kernel.return
}

// -----

// expected-error@+1 {{524288 bytes of scratch are needed, more than 262144}}
kernel.func @k(%c: f32, %x: memref<8x16384xf32>, %w: memref<16384x8xf32>, %y: memref<8x8xf32>) attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[for d0 by 4, for d1 by 8, for d2 by 16384 {pack 1}, for d0 by 2, for d2, unroll d0, unroll d1 by 4, vector d1 by 4]>} {
  linalg.fill ins(%c : f32) outs(%y : memref<8x8xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<8x16384xf32>, memref<16384x8xf32>) outs(%y : memref<8x8xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  }
  kernel.return
}

// -----

// Partial sums have whole tiles, also where the last one is beyond the rows.

// expected-error@+1 {{264192 bytes of scratch are needed, more than 262144}}
kernel.func @k(%c: f32, %x: memref<256x16xf32>, %w: memref<16x256xf32>, %y: memref<256x256xf32>) attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[for d0 by 258, for d1 by 256, for d2 by 8 {pack 1}, for d1 by 8, for d0 by 6, for d2, unroll d0, vector d1 by 8]>} {
  linalg.fill ins(%c : f32) outs(%y : memref<256x256xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<256x16xf32>, memref<16x256xf32>) outs(%y : memref<256x256xf32>) {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  }
  kernel.return
}

// -----

#rows = affine_map<(d0, d1) -> (d0, d1)>
#panels = affine_map<(d0, d1) -> (d1 floordiv 8, d0, d1 mod 8)>

// Rows are packed in vectors, the last of which ends with the row.
kernel.func @narrow(%w: memref<5x3xf32>, %p: memref<1x5x8xf32>) attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[for d0, for d1 by 8, unroll d1 by 4, vector d1 by 4]>} {
  // expected-error@+1 {{rows are packed into panels only if their columns fill vectors}}
  linalg.generic {indexing_maps = [#rows, #panels], iterator_types = ["parallel", "parallel"]} ins(%w : memref<5x3xf32>) outs(%p : memref<1x5x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  kernel.return
}
