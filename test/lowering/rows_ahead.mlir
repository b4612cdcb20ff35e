// RUN: %stepwell-opt %s -p linalg-to-loops,canonicalize,cse --check | filecheck %s

// The greatest of the next row is found while this row is summed up; what the sum has more of its
// row, 16 columns, comes after. The last run has fewer rows.
//
// CHECK-LABEL: kernel.func @rows(
//       CHECK: scf.parallel (%p) = (%c0) to (%c5) step (%c1) {
//       CHECK:   %[[END:.*]] = arith.minsi %{{.*}}, %c18 : index
//       CHECK:   scf.for %j = %c0 to %c64 step %c32
//       CHECK:     arith.maxnumf
//       CHECK:   %[[M:.*]] = arith.maximumf %low
//       CHECK:   scf.for %[[P:.*]] = %{{.*}} to %[[END]] step %c1 iter_args(%[[NOW:.*]] = %[[M]]) -> (f32) {
//       CHECK:     %[[NEXT:.*]] = arith.minsi
//       CHECK:     scf.for %[[J:.*]] = %c0 to %c64 step %c32
//       CHECK:       vector.load %x[%[[NEXT]], %[[J]]]
//       CHECK:       vector.load %x[%[[P]], %[[J]]]
//       CHECK:       vector.load %x[%[[P]], %{{.*}}]
//       CHECK:       scf.yield
//       CHECK:     vector.load %x[%[[P]], %c64]
//       CHECK:     vector.load %x[%[[NEXT]], %c64]
//       CHECK:     memref.store %{{.*}}, %y[%[[P]]]
//       CHECK:     scf.yield %{{.*}} : f32
//       CHECK: } {kernel.grain = 2 : i64}
kernel.func @rows(%x: memref<18x80xf32>, %y: memref<18xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[parallel d0 {grain 8, pipeline 4}], op 0 [for d1 by 32, unroll d1 by 16, vector d1 by 16], op 1 [for d1 by 16, vector d1 by 16]>} {
  %low = arith.constant 0xff800000 : f32
  %zero = arith.constant 0.0 : f32
  %m = memref.alloc() : memref<18xf32>
  linalg.fill ins(%low : f32) outs(%m : memref<18xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<18x80xf32>) outs(%m : memref<18xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maximumf %b, %a : f32
    linalg.yield %c : f32
  }
  linalg.fill ins(%zero : f32) outs(%y : memref<18xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x, %m : memref<18x80xf32>, memref<18xf32>) outs(%y : memref<18xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    %e = arith.addf %c, %d : f32
    linalg.yield %e : f32
  }
  kernel.return
}
func.func @main(%x: memref<18x80xf32>, %y: memref<18xf32> {kernel.role = "output"}) {
  kernel.launch @rows ins(%x : memref<18x80xf32>) outs(%y : memref<18xf32>)
  func.return
}
