// RUN: %stepwell-opt %s -p schedule | filecheck %s
// RUN: %stepwell-opt %s -p 'schedule{machine="vector_bits=256,vector_registers=16,fma=1,threads=2,l3=32M"}' | filecheck %s --check-prefix=NARROW

#id1 = affine_map<(d0) -> (d0)>
#none1 = affine_map<(d0) -> ()>
#id2 = affine_map<(d0, d1) -> (d0, d1)>
#tr = affine_map<(d0, d1) -> (d1, d0)>
#row = affine_map<(d0, d1) -> (d0)>
#mk = affine_map<(d0, d1, d2) -> (d0, d2)>
#kn = affine_map<(d0, d1, d2) -> (d2, d1)>
#nk = affine_map<(d0, d1, d2) -> (d1, d2)>
#mn = affine_map<(d0, d1, d2) -> (d0, d1)>

// A streaming op: innermost loop in vectors, several at once; grain from the work of a row.
// CHECK-LABEL:  kernel.func @stream
// CHECK-SAME:  #kernel.schedule<[parallel d0 {grain 8}, for d1 by 64, unroll d1 by 16, vector d1 by 16]>
// NARROW-LABEL: kernel.func @stream
// NARROW-SAME:  #kernel.schedule<[parallel d0 {grain 8}, for d1 by 32, unroll d1 by 8, vector d1 by 8]>
kernel.func @stream(%x: tensor<512x1024xf32>, %y: tensor<512x1024xf32>, %d: tensor<512x1024xf32>) -> tensor<512x1024xf32> attributes {kernel.shared = 2} {
  %r = linalg.generic {indexing_maps = [#id2, #id2, #id2], iterator_types = ["parallel", "parallel"]} ins(%x, %y : tensor<512x1024xf32>, tensor<512x1024xf32>) outs(%d : tensor<512x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %z = arith.addf %a, %b : f32
    linalg.yield %z : f32
  } -> tensor<512x1024xf32>
  kernel.return %r : tensor<512x1024xf32>
}

// bf16 computes in f32, so lanes are those of f32; a long body takes one vector at a time.
// CHECK-LABEL:  kernel.func @half
// CHECK-SAME:  #kernel.schedule<[parallel d0 by 1024 {grain 1261}, for d0 by 16, vector d0 by 16]>
kernel.func @half(%x: tensor<4096xbf16>, %d: tensor<4096xbf16>) -> tensor<4096xbf16> attributes {kernel.shared = 1} {
  %r = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]} ins(%x : tensor<4096xbf16>) outs(%d : tensor<4096xbf16>) {
  ^bb0(%a: bf16, %o: bf16):
    %w = arith.extf %a : bf16 to f32
    %z = math.tanh %w : f32
    %n = arith.truncf %z : f32 to bf16
    linalg.yield %n : bf16
  } -> tensor<4096xbf16>
  kernel.return %r : tensor<4096xbf16>
}

// A large full reduction is cut in runs; small work stays on one thread.
// CHECK-LABEL:  kernel.func @sum
// CHECK-SAME:  #kernel.schedule<[parallel d0 into 64, for d0 by 64, unroll d0 by 16, vector d0 by 16]>
kernel.func @sum(%x: tensor<1048576xf32>, %d: tensor<f32>) -> tensor<f32> attributes {kernel.shared = 0} {
  %r = linalg.generic {indexing_maps = [#id1, #none1], iterator_types = ["reduction"]} ins(%x : tensor<1048576xf32>) outs(%d : tensor<f32>) {
  ^bb0(%a: f32, %b: f32):
    %z = arith.addf %a, %b : f32
    linalg.yield %z : f32
  } -> tensor<f32>
  kernel.return %r : tensor<f32>
}

// CHECK-LABEL:  kernel.func @small_sum
// CHECK-SAME:  #kernel.schedule<[for d0 by 8, vector d0 by 8]>
kernel.func @small_sum(%x: tensor<10xf32>, %d: tensor<f32>) -> tensor<f32> attributes {kernel.shared = 0} {
  %r = linalg.generic {indexing_maps = [#id1, #none1], iterator_types = ["reduction"]} ins(%x : tensor<10xf32>) outs(%d : tensor<f32>) {
  ^bb0(%a: f32, %b: f32):
    %z = arith.addf %a, %b : f32
    linalg.yield %z : f32
  } -> tensor<f32>
  kernel.return %r : tensor<f32>
}

// A running sum goes in order: no vectors along it.
// CHECK-LABEL:  kernel.func @cumulative
// CHECK-SAME:  #kernel.schedule<[parallel d0 by 4 {grain 8}, for d1, unroll d0]>
// CHECK:          kernel.return
kernel.func @cumulative(%x: tensor<512x1024xf32>, %d: tensor<512x1024xf32>, %e: tensor<512xf32>) -> (tensor<512x1024xf32>, tensor<512xf32>) attributes {kernel.shared = 1} {
  %r, %q = linalg.generic {indexing_maps = [#id2, #id2, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<512x1024xf32>) outs(%d, %e : tensor<512x1024xf32>, tensor<512xf32>) {
  ^bb0(%a: f32, %o: f32, %b: f32):
    %z = arith.addf %a, %b : f32
    linalg.yield %z, %z : f32, f32
  } -> (tensor<512x1024xf32>, tensor<512xf32>)
  kernel.return %r, %q : tensor<512x1024xf32>, tensor<512xf32>
}

// A contraction: the result's unit-stride loop in vectors, a tile of registers. Of few rows, which
// only the launch counts, there are versions.
// CHECK-LABEL:  kernel.func @matmul
// CHECK-SAME:  #kernel.schedule<[parallel d0 by 6, parallel d1 by 64 {grain 26}, for d2, unroll d0, unroll d1 by 16, vector d1 by 16]>,
// CHECK-SAME:  #kernel.version<d0 from 1 to 1, #kernel.schedule<[parallel d0, parallel d1 by 64 {grain 26}, for d2, unroll d1 by 16, vector d1 by 16]>>
// CHECK-SAME:  #kernel.version<d0 from 4 to 4, #kernel.schedule<[parallel d0 by 4, parallel d1 by 64 {grain 26}, for d2, unroll d0, unroll d1 by 16, vector d1 by 16]>>
// CHECK-SAME:  #kernel.version<d0 from 7 to 8, #kernel.schedule<[parallel d0 by 8, parallel d1 by 48 {grain 26}, for d2, unroll d0, unroll d1 by 16, vector d1 by 16]>>
// NARROW-LABEL: kernel.func @matmul
// NARROW-SAME:  #kernel.schedule<[parallel d0 by 6, parallel d1 by 16 {grain 26}, for d2, unroll d0, unroll d1 by 8, vector d1 by 8]>
kernel.func @matmul(%x: tensor<?x256xf32>, %w: tensor<256x100xf32>, %d: tensor<?x100xf32>) -> tensor<?x100xf32> attributes {kernel.shared = 2} {
  %r = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<?x256xf32>, tensor<256x100xf32>) outs(%d : tensor<?x100xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %z = arith.addf %o, %p : f32
    linalg.yield %z : f32
  } -> tensor<?x100xf32>
  kernel.return %r : tensor<?x100xf32>
}

// Rows of unknown length: vectors along them end under a mask, so few elements have versions of their
// number, and those of one, two and four vectors have ones that run one vector at a time.
// CHECK-LABEL:  kernel.func @unknown_rows
// CHECK-SAME:  kernel.schedule = #kernel.schedule<[parallel d0 {grain 0}, for d1 by 64 mask, unroll d1 by 16, vector d1 by 16]>
// CHECK-SAME:  kernel.versions = [#kernel.version<d1 from 1 to 1, #kernel.schedule<[for d0, for d1]>>,
// CHECK-SAME:  #kernel.version<d1 from 2 to 2, #kernel.schedule<[for d0, for d1]>>,
// CHECK-SAME:  #kernel.version<d1 from 3 to 3, #kernel.schedule<[for d0, for d1]>>,
// CHECK-SAME:  #kernel.version<d1 from 4 to 4, #kernel.schedule<[for d0, for d1 by 4, vector d1 by 4]>>,
// CHECK-SAME:  #kernel.version<d1 from 8 to 8, #kernel.schedule<[for d0, for d1 by 8, vector d1 by 8]>>,
// CHECK-SAME:  #kernel.version<d1 from 2 to 16, #kernel.schedule<[parallel d0 {grain 0}, for d1 by 16 mask, vector d1 by 16]>>,
// CHECK-SAME:  #kernel.version<d1 from 17 to 32, #kernel.schedule<[parallel d0 {grain 0}, for d1 by 16 mask, vector d1 by 16]>>,
// CHECK-SAME:  #kernel.version<d1 from 33 to 64, #kernel.schedule<[parallel d0 {grain 0}, for d1 by 16 mask, vector d1 by 16]>>]
kernel.func @unknown_rows(%x: tensor<1000x?xf32>, %d: tensor<1000xf32>) -> tensor<1000xf32> attributes {kernel.shared = 1} {
  %r = linalg.generic {indexing_maps = [#id2, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<1000x?xf32>) outs(%d : tensor<1000xf32>) {
  ^bb0(%a: f32, %b: f32):
    %z = arith.addf %a, %b : f32
    linalg.yield %z : f32
  } -> tensor<1000xf32>
  kernel.return %r : tensor<1000xf32>
}

// Rows of 31: two vectors under the model take less than narrower vectors and single iterations,
// in all ops of the kernel.
// CHECK-LABEL:  kernel.func @known_rows
// CHECK-SAME:  #kernel.schedule<[parallel d0 {grain 152}, for d1 by 16 mask, vector d1 by 16]>
kernel.func @known_rows(%x: tensor<1000x31xf32>, %d: tensor<1000xf32>, %y: tensor<1000x31xf32>) -> tensor<1000x31xf32> attributes {kernel.shared = 1} {
  %r = linalg.generic {indexing_maps = [#id2, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<1000x31xf32>) outs(%d : tensor<1000xf32>) {
  ^bb0(%a: f32, %b: f32):
    %z = arith.addf %a, %b : f32
    linalg.yield %z : f32
  } -> tensor<1000xf32>
  %s = linalg.generic {indexing_maps = [#id2, #row, #id2], iterator_types = ["parallel", "parallel"]} ins(%x, %r : tensor<1000x31xf32>, tensor<1000xf32>) outs(%y : tensor<1000x31xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %z = arith.subf %a, %b : f32
    linalg.yield %z : f32
  } -> tensor<1000x31xf32>
  kernel.return %s : tensor<1000x31xf32>
}

// With the second operand transposed the contracting loop is the contiguous one.
// CHECK-LABEL:  kernel.func @matmul_transposed
// CHECK-SAME:  #kernel.schedule<[parallel d0, parallel d1 {grain 26}, for d2 by 64, unroll d2 by 16, vector d2 by 16]>
kernel.func @matmul_transposed(%x: tensor<?x256xf32>, %w: tensor<100x256xf32>, %d: tensor<?x100xf32>) -> tensor<?x100xf32> attributes {kernel.shared = 2} {
  %r = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<?x256xf32>, tensor<100x256xf32>) outs(%d : tensor<?x100xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %z = arith.addf %o, %p : f32
    linalg.yield %z : f32
  } -> tensor<?x100xf32>
  kernel.return %r : tensor<?x100xf32>
}

// Shared loops that are contiguous are vectors for all ops of the kernel: as many as let rows be
// read a run at a time, and the second cache hold what both read.
// CHECK-LABEL:  kernel.func @columns
// CHECK-SAME:  #kernel.schedule<[parallel d0 by 128 {grain 7}, for d1, unroll d0 by 16, vector d0 by 16]>
kernel.func @columns(%x: tensor<512x1024xf32>, %d: tensor<512x1024xf32>) -> tensor<512x1024xf32> attributes {kernel.shared = 1} {
  %e = tensor.empty() : tensor<1024xf32>
  %s = linalg.generic {indexing_maps = [#tr, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<512x1024xf32>) outs(%e : tensor<1024xf32>) {
  ^bb0(%a: f32, %b: f32):
    %z = arith.addf %a, %b : f32
    linalg.yield %z : f32
  } -> tensor<1024xf32>
  %r = linalg.generic {indexing_maps = [#tr, #row, #tr], iterator_types = ["parallel", "parallel"]} ins(%x, %s : tensor<512x1024xf32>, tensor<1024xf32>) outs(%d : tensor<512x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %z = arith.divf %a, %b : f32
    linalg.yield %z : f32
  } -> tensor<512x1024xf32>
  kernel.return %r : tensor<512x1024xf32>
}

// Rows searched in order: vectors across rows would gather every lane.
// CHECK-LABEL:  kernel.func @last_of_row
// CHECK-SAME:  #kernel.schedule<[parallel d0 by 4 {grain 71}, for d1, unroll d0]>
// CHECK:          kernel.return
kernel.func @last_of_row(%x: tensor<1000x77xf32>, %d: tensor<1000xf32>, %e: tensor<1000xf32>) -> (tensor<1000xf32>, tensor<1000xf32>) attributes {kernel.shared = 1} {
  %r, %s = linalg.generic {indexing_maps = [#id2, #row, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<1000x77xf32>) outs(%d, %e : tensor<1000xf32>, tensor<1000xf32>) {
  ^bb0(%a: f32, %o: f32, %p: f32):
    %c = arith.cmpf ogt, %a, %o : f32
    %z = arith.select %c, %a, %o : f32
    %q = arith.select %c, %o, %p : f32
    linalg.yield %z, %q : f32, f32
  } -> (tensor<1000xf32>, tensor<1000xf32>)
  kernel.return %r, %s : tensor<1000xf32>, tensor<1000xf32>
}

// What is written by hand is kept.
// CHECK-LABEL:  kernel.func @by_hand
// CHECK-SAME:  #kernel.schedule<[parallel d0 by 1024, parallel d1 {grain 7}, for d0 by 4, vector d0 by 4]>
kernel.func @by_hand(%x: tensor<1024x512xf32>, %d: tensor<512x1024xf32>) -> tensor<512x1024xf32> attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[parallel d0 by 1024, parallel d1 {grain 7}, for d0 by 4, vector d0 by 4]>} {
  %r = linalg.generic {indexing_maps = [#tr, #id2], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<1024x512xf32>) outs(%d : tensor<512x1024xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<512x1024xf32>
  kernel.return %r : tensor<512x1024xf32>
}

// Few rows read an operand in place; one beyond the second cache is asked for before it is read.
// CHECK-LABEL:  kernel.func @few_rows
// CHECK-SAME:  #kernel.schedule<[parallel d0 by 8, parallel d1 by 48 {grain 9}, for d2 {prefetch}, unroll d0, unroll d1 by 16, vector d1 by 16]>
kernel.func @few_rows(%x: tensor<8x768xf32>, %w: tensor<768x3072xf32>, %d: tensor<8x3072xf32>) -> tensor<8x3072xf32> attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[parallel d0 by 8, parallel d1 by 48 {grain 9}, for d2 {prefetch}, unroll d0, unroll d1 by 16, vector d1 by 16]>} {
  %0 = arith.constant 0.0 : f32
  %f = linalg.fill ins(%0 : f32) outs(%d : tensor<8x3072xf32>) -> tensor<8x3072xf32>
  %r = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<8x768xf32>, tensor<768x3072xf32>) outs(%f : tensor<8x3072xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %z = arith.addf %o, %p : f32
    linalg.yield %z : f32
  } -> tensor<8x3072xf32>
  kernel.return %r : tensor<8x3072xf32>
}

// A large contraction runs in blocks, whichever way the packed operand lies; equal depths cover the sum.
// CHECK-LABEL:  kernel.func @blocked
// CHECK-SAME:  #kernel.schedule<[parallel d0 by 336, parallel d1 by 64, for d2 by 304 {pack 1, prefetch}, for d0 by 6, for d2, unroll d0, unroll d1 by 16, vector d1 by 16]>
// CHECK-LABEL:  kernel.func @blocked_transposed
// CHECK-SAME:  #kernel.schedule<[parallel d0 by 336, parallel d1 by 64, for d2 by 304 {pack 1, prefetch}, for d0 by 6, for d2, unroll d0, unroll d1 by 16, vector d1 by 16]>
// NARROW-LABEL: kernel.func @blocked
// NARROW-SAME:  #kernel.schedule<[parallel d0 by 336, parallel d1 by 64, for d2 by 304 {pack 1, prefetch}, for d0 by 6, for d2, unroll d0, unroll d1 by 16, vector d1 by 16]>
kernel.func @blocked(%x: tensor<1000x600xf32>, %w: tensor<600x1000xf32>, %d: tensor<1000x1000xf32>) -> tensor<1000x1000xf32> attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[parallel d0 by 336, parallel d1 by 64, for d2 by 304 {pack 1, prefetch}, for d0 by 6, for d2, unroll d0, unroll d1 by 16, vector d1 by 16]>} {
  %0 = arith.constant 0.0 : f32
  %f = linalg.fill ins(%0 : f32) outs(%d : tensor<1000x1000xf32>) -> tensor<1000x1000xf32>
  %r = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<1000x600xf32>, tensor<600x1000xf32>) outs(%f : tensor<1000x1000xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %z = arith.addf %o, %p : f32
    linalg.yield %z : f32
  } -> tensor<1000x1000xf32>
  kernel.return %r : tensor<1000x1000xf32>
}

kernel.func @blocked_transposed(%x: tensor<1000x600xf32>, %w: tensor<1000x600xf32>, %d: tensor<1000x1000xf32>) -> tensor<1000x1000xf32> attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[parallel d0 by 336, parallel d1 by 64, for d2 by 304 {pack 1, prefetch}, for d0 by 6, for d2, unroll d0, unroll d1 by 16, vector d1 by 16]>} {
  %0 = arith.constant 0.0 : f32
  %f = linalg.fill ins(%0 : f32) outs(%d : tensor<1000x1000xf32>) -> tensor<1000x1000xf32>
  %r = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<1000x600xf32>, tensor<1000x600xf32>) outs(%f : tensor<1000x1000xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %z = arith.addf %o, %p : f32
    linalg.yield %z : f32
  } -> tensor<1000x1000xf32>
  kernel.return %r : tensor<1000x1000xf32>
}

// A tile written by hand is kept, and no blocks are added to it.
// CHECK-LABEL:  kernel.func @blocked_by_hand
// CHECK-SAME:  #kernel.schedule<[parallel d0 by 2, for d1 by 32, for d2 {prefetch}, unroll d0, unroll d1 by 16, vector d1 by 16]>
// CHECK:          kernel.return
kernel.func @blocked_by_hand(%x: tensor<1000x600xf32>, %w: tensor<600x1000xf32>, %d: tensor<1000x1000xf32>) -> tensor<1000x1000xf32> attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[parallel d0 by 2, for d1 by 32, for d2 {prefetch}, unroll d0, unroll d1 by 16, vector d1 by 16]>} {
  %0 = arith.constant 0.0 : f32
  %f = linalg.fill ins(%0 : f32) outs(%d : tensor<1000x1000xf32>) -> tensor<1000x1000xf32>
  %r = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<1000x600xf32>, tensor<600x1000xf32>) outs(%f : tensor<1000x1000xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %z = arith.addf %o, %p : f32
    linalg.yield %z : f32
  } -> tensor<1000x1000xf32>
  kernel.return %r : tensor<1000x1000xf32>
}

// A sum over the rows of a matrix keeps many vectors in flight, so that runs of a row are long.
// CHECK-LABEL:  kernel.func @rows_of_matrix
// CHECK-SAME:  #kernel.schedule<[parallel d0 by 256 {grain 26}, for d1, unroll d0 by 16, vector d0 by 16]>
kernel.func @rows_of_matrix(%x: tensor<256xf32>, %w: tensor<256x1024xf32>, %d: tensor<1024xf32>) -> tensor<1024xf32> attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[parallel d0 by 256 {grain 26}, for d1, unroll d0 by 16, vector d0 by 16]>} {
  %0 = arith.constant 0.0 : f32
  %f = linalg.fill ins(%0 : f32) outs(%d : tensor<1024xf32>) -> tensor<1024xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x, %w : tensor<256xf32>, tensor<256x1024xf32>) outs(%f : tensor<1024xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %z = arith.addf %o, %p : f32
    linalg.yield %z : f32
  } -> tensor<1024xf32>
  kernel.return %r : tensor<1024xf32>
}

// What must be taken in order runs for a few rows at a time.
// CHECK-LABEL:  kernel.func @running
// CHECK-SAME:  #kernel.schedule<[parallel d0 by 4 {grain 8}, for d1, unroll d0]>
// CHECK:          kernel.return
kernel.func @running(%x: tensor<64x1024xf32>, %y: tensor<64x1024xf32>) -> tensor<64x1024xf32> attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[parallel d0 by 4 {grain 8}, for d1, unroll d0]>} {
  %e = tensor.empty() : tensor<64xf32>
  %0 = arith.constant 0.0 : f32
  %f = linalg.fill ins(%0 : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %r, %t = linalg.generic {indexing_maps = [#id2, #id2, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<64x1024xf32>) outs(%y, %f : tensor<64x1024xf32>, tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32, %s: f32):
    %z = arith.addf %s, %a : f32
    linalg.yield %z, %z : f32, f32
  } -> (tensor<64x1024xf32>, tensor<64xf32>)
  kernel.return %r : tensor<64x1024xf32>
}

// The sides of a border, which lie in many places, are filled in parallel however few they are; other small fills are not.
// CHECK-LABEL: kernel.func @sides
// CHECK-SAME:  #kernel.schedule<[parallel d0, parallel d1 {grain 16}, for d2, for d3]>
kernel.func @sides(%d: tensor<1x128x28x1xf32>) -> tensor<1x128x28x1xf32> attributes {kernel.shared = 4, kernel.schedule = #kernel.schedule<[parallel d0, parallel d1 {grain 16}, for d2, for d3]>} {
  %0 = arith.constant 0.0 : f32
  %f = linalg.fill {kernel.no_fuse} ins(%0 : f32) outs(%d : tensor<1x128x28x1xf32>) -> tensor<1x128x28x1xf32>
  kernel.return %f : tensor<1x128x28x1xf32>
}

// CHECK-LABEL: kernel.func @small_fill
// CHECK-SAME:  #kernel.schedule<[for d0, for d1, for d2, for d3]>
kernel.func @small_fill(%d: tensor<1x128x28x1xf32>) -> tensor<1x128x28x1xf32> attributes {kernel.shared = 4} {
  %0 = arith.constant 0.0 : f32
  %f = linalg.fill ins(%0 : f32) outs(%d : tensor<1x128x28x1xf32>) -> tensor<1x128x28x1xf32>
  kernel.return %f : tensor<1x128x28x1xf32>
}
