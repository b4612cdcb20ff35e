// RUN: %stepwell-opt %s -p linalg-to-loops | filecheck %s
//
// Where the grain is 0, how many iterations are worth a thread is found at the launch: as many as
// do 32768 additions and accesses together.

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: kernel.func @twice
//       CHECK:   [[N:%.*]] = memref.dim %x, [[C1:%.*]] : memref<64x?xf32>
//       CHECK:   [[WORK:%.*]] = arith.muli [[N]], %c3 : index
//       CHECK:   [[EACH:%.*]] = arith.addi [[WORK]], %c1 : index
//       CHECK:   [[GRAIN:%.*]] = arith.divui %c32768, [[EACH]] : index
//  CHECK-NEXT:   kernel.grain [[GRAIN]]
//  CHECK-NEXT:   scf.parallel
kernel.func @twice(%x: memref<64x?xf32>, %y: memref<64x?xf32>) attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[parallel d0 {grain 0}, for d1]>} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : memref<64x?xf32>) outs(%y : memref<64x?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %z = arith.addf %a, %a : f32
    linalg.yield %z : f32
  }
  kernel.return
}
