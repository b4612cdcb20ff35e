// RUN: %stepwell-opt %s --check -p linalg-to-loops,canonicalize,cse | filecheck %s

// Rows lie along the sum and are copied as they are, eight words and two bytes more, their sign turned over;
// columns are joined of four bytes each. The sums begin with what their columns have too much.
// CHECK-LABEL: kernel.func @product
// CHECK:         %packed = memref.alloca() {alignment = 64 : i64} : memref<9x16xi32>
// CHECK:         %packed_1 = memref.alloca() {alignment = 64 : i64} : memref<4x25xi32>
// CHECK:         %offsets = memref.alloca() {alignment = 64 : i64} : memref<16xi32>
// CHECK:         vector.load %x[{{.*}}] : memref<4x34xi8>, vector<32xi8>
// CHECK:         vector.bitcast {{.*}} : vector<32xi8> to vector<8xi32>
// CHECK:         arith.xori
// CHECK:         arith.extui {{.*}} : vector<8xi8> to vector<8xi32>
// CHECK:         arith.shli
// CHECK:         arith.ori
// CHECK:         kernel.dot {{.*}} of ui8, {{.*}} of i8 : vector<8xi32>
// CHECK:         vector.store {{.*}}, %offsets
// CHECK:         arith.subi
// CHECK:         scf.for
// CHECK:           memref.load %packed_1
// CHECK:           vector.load %packed[
// CHECK:           kernel.dot %s{{.*}}, {{.*}} of ui8, {{.*}} of i8 : vector<8xi32>
#rows = affine_map<(d0, d1, d2) -> (d0, d2)>
#columns = affine_map<(d0, d1, d2) -> (d2, d1)>
#turned = affine_map<(d0, d1, d2) -> (d1, d2)>
#result = affine_map<(d0, d1, d2) -> (d0, d1)>
kernel.func @product(%x: memref<4x34xi8>, %w: memref<34x16xi8>, %y: memref<4x16xi32>)
    attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[for d0 by 4, for d1 by 16, for d2 by 40 {pack 0 as biased_dot, pack 1 as dot}, for d0 by 2, for d2, unroll d0, unroll d1 by 8, vector d1 by 8]>} {
  %zero = arith.constant 0 : i32
  linalg.fill ins(%zero : i32) outs(%y : memref<4x16xi32>)
  linalg.generic {indexing_maps = [#rows, #columns, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<4x34xi8>, memref<34x16xi8>) outs(%y : memref<4x16xi32>)
      {
  ^bb0(%a: i8, %b: i8, %s: i32):
    %e = arith.extsi %a : i8 to i32
    %f = arith.extsi %b : i8 to i32
    %p = arith.muli %e, %f : i32
    %t = arith.addi %s, %p : i32
    linalg.yield %t : i32
  }
  kernel.return
}

// Columns that lie along the sum are turned over in squares of words. Unsigned rows need no offset.
// CHECK-LABEL: kernel.func @turned
// CHECK-NOT:     offsets
// CHECK:         vector.load %w[{{.*}}] : memref<16x32xi8>, vector<32xi8>
// CHECK:         vector.shuffle
// CHECK:         kernel.dot %s{{.*}}, {{.*}} of ui8, {{.*}} of i8 : vector<8xi32>
kernel.func @turned(%x: memref<4x32xi8>, %w: memref<16x32xi8>, %y: memref<4x16xi32>)
    attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[for d0 by 4, for d1 by 16, for d2 by 32 {pack 0 as dot, pack 1 as dot}, for d0 by 2, for d2, unroll d0, unroll d1 by 8, vector d1 by 8]>} {
  %zero = arith.constant 0 : i32
  linalg.fill ins(%zero : i32) outs(%y : memref<4x16xi32>)
  linalg.generic {indexing_maps = [#rows, #turned, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<4x32xi8>, memref<16x32xi8>) outs(%y : memref<4x16xi32>)
      {
  ^bb0(%a: i8, %b: i8, %s: i32):
    %e = arith.extui %a : i8 to i32
    %f = arith.extsi %b : i8 to i32
    %p = arith.muli %e, %f : i32
    %t = arith.addi %s, %p : i32
    linalg.yield %t : i32
  }
  kernel.return
}

// A window: what each line of an image needs of it is copied for that line, filters once for all lines of a block.
// CHECK-LABEL: kernel.func @window
// CHECK:         %packed = memref.alloca() {alignment = 64 : i64} : memref<3x2x3x8xi32>
// CHECK:         %packed_1 = memref.alloca() {alignment = 64 : i64} : memref<4x3x2x3xi32>
// CHECK:         scf.for %j
// CHECK:           scf.for [[A:%k[_0-9]*]] = %c0 to %c3
// CHECK:             scf.for [[B:%k[_0-9]*]] = %c0 to %c2
// CHECK:               vector.load %w
// CHECK:           memref.store {{.*}}, %packed_1
// CHECK:           kernel.dot %s{{.*}}, {{.*}} of ui8, {{.*}} of i8 : vector<8xi32>
#image = affine_map<(n, h, w, f, kh, kw, c) -> (n, h + kh, w * 2 + kw, c)>
#filter = affine_map<(n, h, w, f, kh, kw, c) -> (kh, kw, c, f)>
#places = affine_map<(n, h, w, f, kh, kw, c) -> (n, h, w, f)>
kernel.func @window(%x: memref<2x6x8x9xi8>, %w: memref<3x2x9x16xi8>, %y: memref<2x4x4x16xi32>)
    attributes {kernel.shared = 4, kernel.schedule = #kernel.schedule<[parallel d0, parallel d1 by 3, parallel d2 by 4, parallel d3 by 16, for d3 by 8, for d6 by 9 {pack 1 as dot}, for d1 {pack 0 as biased_dot}, for d2 by 2, for d4, for d5, for d6, unroll d2, vector d3 by 8]>} {
  %zero = arith.constant 0 : i32
  linalg.fill ins(%zero : i32) outs(%y : memref<2x4x4x16xi32>)
  linalg.generic {indexing_maps = [#image, #filter, #places],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : memref<2x6x8x9xi8>, memref<3x2x9x16xi8>) outs(%y : memref<2x4x4x16xi32>)
      {
  ^bb0(%a: i8, %b: i8, %s: i32):
    %e = arith.extsi %a : i8 to i32
    %f = arith.extsi %b : i8 to i32
    %p = arith.muli %e, %f : i32
    %t = arith.addi %s, %p : i32
    linalg.yield %t : i32
  }
  kernel.return
}

// bf16: words of two. An odd end of the sum is filled up with zeros in both operands, so NaN times what is not there is not added.
// CHECK-LABEL: kernel.func @halves
// CHECK:         %packed = memref.alloca() {alignment = 64 : i64} : memref<9x16xi32>
// CHECK:         %packed_1 = memref.alloca() {alignment = 64 : i64} : memref<4x25xi32>
// CHECK-NOT:     offsets
// CHECK:         vector.load %x[{{.*}}] : memref<4x17xbf16>, vector<16xbf16>
// CHECK:         vector.bitcast {{.*}} : vector<16xbf16> to vector<8xi32>
// CHECK:         arith.bitcast {{.*}} : bf16 to i16
// CHECK:         arith.extui {{.*}} : i16 to i32
// CHECK:         memref.store {{.*}}, %packed_1
// CHECK:         vector.load %w[{{.*}}] : memref<17x16xbf16>, vector<8xbf16>
// CHECK:         vector.bitcast {{.*}} : vector<8xbf16> to vector<8xi16>
// CHECK:         arith.extui {{.*}} : vector<8xi16> to vector<8xi32>
// CHECK:         arith.shli
// CHECK:         arith.ori
// CHECK:         kernel.dot %s{{.*}}, {{.*}} of bf16, {{.*}} of bf16 : vector<8xi32> -> vector<8xf32>
kernel.func @halves(%x: memref<4x17xbf16>, %w: memref<17x16xbf16>, %y: memref<4x16xf32>)
    attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[for d0 by 4, for d1 by 16, for d2 by 20 {pack 0 as dot, pack 1 as dot}, for d0 by 2, for d2, unroll d0, unroll d1 by 8, vector d1 by 8]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<4x16xf32>)
  linalg.generic {indexing_maps = [#rows, #columns, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<4x17xbf16>, memref<17x16xbf16>) outs(%y : memref<4x16xf32>) {
  ^bb0(%a: bf16, %b: bf16, %s: f32):
    %e = arith.extf %a : bf16 to f32
    %f = arith.extf %b : bf16 to f32
    %p = arith.mulf %e, %f : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  kernel.return
}

// A tile of 32 rows is for a unit that multiplies whole tiles: rows of words lie one behind the other, whatever the layout of the
// operand. Without an epilogue the sums are written where they belong.
// CHECK-LABEL: kernel.func @unit
// CHECK:         %shapes = memref.alloca() {alignment = 64 : i64} : memref<1xi64>
// CHECK:         memref.store {{.*}}, %shapes
// CHECK:         %packed = memref.alloca() {alignment = 64 : i64} : memref<5x32xi32>
// CHECK:         %packed_1 = memref.alloca() {alignment = 64 : i64} : memref<64x21xi32>
// CHECK:         memref.store {{.*}}, %packed_1
// CHECK:         scf.for %i
// CHECK:           kernel.dot_tile %y[%{{.*}}], %packed_1[%{{.*}}] of i8, %packed of i8, %{{.*}} rows %{{.*}} of 32 shapes %shapes from_zero
// CHECK:         kernel.release_tiles %shapes
#across = affine_map<(d0, d1, d2) -> (d2, d0)>
kernel.func @unit(%x: memref<18x64xi8>, %w: memref<18x32xi8>, %y: memref<64x32xi32>)
    attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[for d0 by 64, for d1 by 32, for d2 by 20 {pack 0 as dot, pack 1 as dot}, for d0 by 32, for d2, unroll d0, unroll d1 by 16, vector d1 by 16]>} {
  %zero = arith.constant 0 : i32
  linalg.fill ins(%zero : i32) outs(%y : memref<64x32xi32>)
  linalg.generic {indexing_maps = [#across, #columns, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<18x64xi8>, memref<18x32xi8>) outs(%y : memref<64x32xi32>) {
  ^bb0(%a: i8, %b: i8, %s: i32):
    %e = arith.extsi %a : i8 to i32
    %f = arith.extsi %b : i8 to i32
    %p = arith.muli %e, %f : i32
    %t = arith.addi %s, %p : i32
    linalg.yield %t : i32
  }
  kernel.return
}

// Rows of whole words are read in place. An epilogue finds the sums in scratch, which hold those of one tile.
// CHECK-LABEL: kernel.func @unit_in_place
// CHECK:         %packed = memref.alloca() {alignment = 64 : i64} : memref<32x32xi32>
// CHECK:         %sums = memref.alloca() {alignment = 64 : i64} : memref<32x32xf32>
// CHECK:         scf.for %i
// CHECK:           kernel.dot_tile %sums[%{{.*}}], %x[%i, %{{.*}}] of bf16, %packed of bf16, %{{.*}} rows %{{.*}} of 32 shapes %shapes from_zero
// CHECK:           vector.load %sums
// CHECK:           vector.store {{.*}}, %z
#both = affine_map<(d0, d1) -> (d0, d1)>
kernel.func @unit_in_place(%x: memref<64x64xbf16>, %w: memref<64x32xbf16>, %y: memref<64x32xf32>, %z: memref<64x32xf32>)
    attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[for d0 by 64, for d1 by 32, for d2 by 64 {pack 1 as dot}, for d0 by 32], op 0 [for d2, unroll d0, unroll d1 by 16, vector d1 by 16], op 1 [unroll d0, unroll d1 by 16, vector d1 by 16]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<64x32xf32>)
  linalg.generic {indexing_maps = [#rows, #columns, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<64x64xbf16>, memref<64x32xbf16>) outs(%y : memref<64x32xf32>) {
  ^bb0(%a: bf16, %b: bf16, %s: f32):
    %e = arith.extf %a : bf16 to f32
    %f = arith.extf %b : bf16 to f32
    %p = arith.mulf %e, %f : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [#both, #both], iterator_types = ["parallel", "parallel"]}
      ins(%y : memref<64x32xf32>) outs(%z : memref<64x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  }
  kernel.return
}
