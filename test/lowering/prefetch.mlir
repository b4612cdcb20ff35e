// RUN: %stepwell-opt %s --check -p linalg-to-loops,canonicalize,cse | filecheck %s

// Rows of 32 columns are two lines, or three where they do not begin with one: tiles take turns to ask for them.
// The next part is eight rows further on; behind the last, it is the first of the next panel.
// CHECK-LABEL: kernel.func @product
// CHECK:         %packed = memref.alloca()
// CHECK:         arith.select
// CHECK:         scf.for [[K:%k[_0-9]*]] =
// CHECK:           kernel.prefetch %w[{{%.*}}, {{%.*}}] : memref<16x64xf32>
// CHECK:           vector.load %packed
#rows = affine_map<(d0, d1, d2) -> (d0, d2)>
#columns = affine_map<(d0, d1, d2) -> (d2, d1)>
#result = affine_map<(d0, d1, d2) -> (d0, d1)>
kernel.func @product(%x: memref<24x16xf32>, %w: memref<16x64xf32>, %y: memref<24x64xf32>)
    attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[for d0 by 24, for d1 by 32, for d2 by 8 {pack 1, prefetch}, for d0 by 4, for d2, unroll d0, unroll d1 by 16, vector d1 by 16]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<24x64xf32>)
  linalg.generic {indexing_maps = [#rows, #columns, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<24x16xf32>, memref<16x64xf32>) outs(%y : memref<24x64xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  kernel.return
}

// A column's elements lie side by side: a step asks for a line of one of sixteen columns.
// CHECK-LABEL: kernel.func @filters
// CHECK:         [[W:%w_[0-9]+]] = memref.collapse_shape %w
// CHECK:         kernel.prefetch [[W]][{{%.*}}, {{%.*}}] : memref<16x144xf32>
#image = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 + d4, d2 + d5, d6)>
#filter = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d3, d6, d4, d5)>
#images = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>
kernel.func @filters(%x: memref<1x6x6x16xf32>, %w: memref<16x16x3x3xf32>, %y: memref<1x4x4x16xf32>)
    attributes {kernel.shared = 4, kernel.schedule = #kernel.schedule<[for d0, for d1 by 4, for d2 by 4, for d3 by 16, for d6 by 8 {pack 1, prefetch}, for d1, for d2 by 2, for d4, for d5, for d6, unroll d2, vector d3 by 16]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<1x4x4x16xf32>)
  linalg.generic {indexing_maps = [#image, #filter, #images],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : memref<1x6x6x16xf32>, memref<16x16x3x3xf32>) outs(%y : memref<1x4x4x16xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  kernel.return
}

// The first tile of a block packs what it reads; the others read what is packed.
// CHECK-LABEL: kernel.func @first
// CHECK:         %packed = memref.alloca()
// CHECK-NOT:     vector.store {{.*}}, %packed
// CHECK:         scf.if
// CHECK:           scf.for
// CHECK:             [[V:%w_[0-9]+]] = vector.load %w
// CHECK:             vector.store [[V]], %packed
// CHECK-NOT:         vector.load %packed
// CHECK:         } else {
// CHECK:             vector.load %packed
// CHECK-NOT:         vector.store {{.*}}, %packed
// CHECK:         kernel.return
kernel.func @first(%x: memref<24x16xf32>, %w: memref<16x64xf32>, %y: memref<24x64xf32>)
    attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[for d0 by 24, for d1 by 32, for d2 by 8 {pack 1 as first}, for d0 by 4, for d2, unroll d0, unroll d1 by 16, vector d1 by 16]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<24x64xf32>)
  linalg.generic {indexing_maps = [#rows, #columns, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<24x16xf32>, memref<16x64xf32>) outs(%y : memref<24x64xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  kernel.return
}

// A tile without blocks asks for the lines of a row thirty-two steps later, one more than it has, and in the last steps for those of the tile beside it.
// CHECK-LABEL: kernel.func @in_place
// CHECK:         scf.for [[K:%k[_0-9]*]] =
// CHECK:           [[L:%.*]] = arith.addi [[K]], {{.*}}32
// CHECK:           arith.cmpi slt, [[L]]
// CHECK-COUNT-2:   arith.select
// CHECK-COUNT-3:   kernel.prefetch %w[{{%.*}}, {{%.*}}] : memref<160x64xf32>
// CHECK-NOT:       kernel.prefetch
// CHECK:           vector.load %w
kernel.func @in_place(%x: memref<4x160xf32>, %w: memref<160x64xf32>, %y: memref<4x64xf32>)
    attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[for d0 by 4, for d1 by 32, for d2 {prefetch 32}, unroll d0, unroll d1 by 16, vector d1 by 16]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<4x64xf32>)
  linalg.generic {indexing_maps = [#rows, #columns, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<4x160xf32>, memref<160x64xf32>) outs(%y : memref<4x64xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  kernel.return
}

// Each tile copies three parts of rows of the next part of a block, two steps of the sum apart.
// CHECK-LABEL: kernel.func @next_part
// CHECK:         %packed = memref.alloca() {{.*}} : memref<32x32xf32>
// CHECK:         vector.store {{.*}}, %packed
// CHECK:         %sums = memref.alloca()
// CHECK:           vector.load %sums
// CHECK:           scf.for
// CHECK:             kernel.prefetch %w
// CHECK:             vector.load %w
// CHECK:             vector.store {{.*}}, %packed
// CHECK:             scf.for
// CHECK:               vector.load %packed
// CHECK:             kernel.unroll
// CHECK:           scf.for
// CHECK:             vector.load %packed
// CHECK-NOT:         vector.store {{.*}}, %packed
// CHECK:         kernel.return
kernel.func @next_part(%x: memref<12x16xf32>, %w: memref<16x64xf32>, %y: memref<12x64xf32>)
    attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[for d2 by 8 {pack 1 as double_buffered}, for d1 by 32, for d0 by 4, for d2, unroll d0, unroll d1 by 16, vector d1 by 16]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<12x64xf32>)
  linalg.generic {indexing_maps = [#rows, #columns, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<12x16xf32>, memref<16x64xf32>) outs(%y : memref<12x64xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  kernel.return
}

// An operand in panels of two lines a row: six tiles take turns, and each asks for a run of lines of the next part.
// CHECK-LABEL: kernel.func @panels
// CHECK:         scf.for
// CHECK:           kernel.prefetch %w[{{%.*}}, {{%.*}}, {{%.*}}] : memref<2x16x32xf32>
// CHECK-NOT:       kernel.prefetch
#in_panels = affine_map<(d0, d1, d2) -> (d1 floordiv 32, d2, d1 mod 32)>
kernel.func @panels(%x: memref<24x16xf32>, %w: memref<2x16x32xf32>, %y: memref<24x64xf32>)
    attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[for d0 by 24, for d1 by 32, for d2 by 8 {prefetch}, for d0 by 4, for d2, unroll d0, unroll d1 by 16, vector d1 by 16]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<24x64xf32>)
  linalg.generic {indexing_maps = [#rows, #in_panels, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<24x16xf32>, memref<2x16x32xf32>) outs(%y : memref<24x64xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  kernel.return
}

// The same in one of two steps of the sum, which are written out.
// CHECK-LABEL: kernel.func @panels_in_some_steps
// CHECK:         scf.for {{%.*}} = {{%.*}} to {{%.*}} step %{{.*}} iter_args({{.*}}vector<16xf32>
// CHECK:           kernel.prefetch %w
// CHECK-COUNT-4:   vector.load %w
// CHECK-NOT:       kernel.prefetch
kernel.func @panels_in_some_steps(%x: memref<24x16xf32>, %w: memref<2x16x32xf32>, %y: memref<24x64xf32>)
    attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[for d0 by 24, for d1 by 32, for d2 by 8 {prefetch 2}, for d0 by 4, for d2, unroll d0, unroll d1 by 16, vector d1 by 16]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<24x64xf32>)
  linalg.generic {indexing_maps = [#rows, #in_panels, #result], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : memref<24x16xf32>, memref<2x16x32xf32>) outs(%y : memref<24x64xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  kernel.return
}

// A window slides along rows of one image after another: a step prefetches rows of the image after the next, once for all
// steps of the window along a row; past the last image, those of the next tile.
// CHECK-LABEL: kernel.func @images
// CHECK:         scf.for
// CHECK:           arith.select
// CHECK:           arith.select
// CHECK-COUNT-4:   kernel.prefetch %x[{{%.*}}, {{%.*}}, {{%.*}}, {{%.*}}] : memref<1x9x6x34xf32>
// CHECK:           scf.for
#planes = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d1 + d5, d3 + d6)>
#taps = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d2, d4, d5, d6)>
#sums = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d2, d1, d3)>
kernel.func @images(%x: memref<1x9x6x34xf32>, %w: memref<4x9x3x3xf32>, %y: memref<1x4x4x32xf32>)
    attributes {kernel.shared = 4, kernel.schedule = #kernel.schedule<[for d0, for d1, for d2 by 4, for d3 by 32, for d4 {prefetch 2}, for d5, for d6, unroll d2, unroll d3 by 16, vector d3 by 16]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<1x4x4x32xf32>)
  linalg.generic {indexing_maps = [#planes, #taps, #sums],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : memref<1x9x6x34xf32>, memref<4x9x3x3xf32>) outs(%y : memref<1x4x4x32xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  }
  kernel.return
}
