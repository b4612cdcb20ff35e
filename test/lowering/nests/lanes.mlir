// RUN: %stepwell-opt %s -p "bufferize,linalg-to-loops" | filecheck %s

#row = affine_map<(d0, d1) -> (d0, d1)>
#rows = affine_map<(d0, d1) -> (d0)>
#one = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> ()>

// Four neighbours of each lane, as far apart as there are lanes; only the last may be beyond the end.
// CHECK-LABEL: kernel.func @elements
// CHECK:       scf.parallel (%g) = (%c0) to (%c4) step
// CHECK:         scf.parallel (%l) = (%c0) to (%c64) step
// CHECK:           %[[BASE:.*]] = arith.muli %g, %c256
// CHECK:           %[[AT:.*]] = arith.addi %[[BASE]], %l
// CHECK:           memref.load %x[%[[AT]]]
// CHECK-NOT:       arith.minsi
// CHECK:           %[[LAST:.*]] = arith.addi %[[AT]], %c192
// CHECK:           %[[SAFE:.*]] = arith.minsi %[[LAST]], %c999
// CHECK:           memref.load %x[%[[SAFE]]]
// CHECK:           arith.cmpi slt, %[[LAST]], %c1000
// CHECK:           scf.if
// CHECK:             memref.store %{{.*}}, %y[%[[LAST]]]
// CHECK:         } {kernel.lane}
// CHECK:       } {kernel.lanes = 64 : i64}
kernel.func @elements(%x: tensor<1000xf32>, %y: tensor<1000xf32>) -> tensor<1000xf32> attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[group d0 by 256, unroll d0 by 64, lane d0]>} {
  %z = linalg.generic {indexing_maps = [#one, #one], iterator_types = ["parallel"]} ins(%x : tensor<1000xf32>) outs(%y : tensor<1000xf32>) {
  ^bb0(%a: f32, %b: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<1000xf32>
  kernel.return %z : tensor<1000xf32>
}

// A row for each group. Lanes are opened outside of the loop over the row, so none waits within it;
// what they have is added up in halves, always in the same order.
// CHECK-LABEL: kernel.func @rows
// CHECK:       scf.parallel (%g) = (%c0) to (%{{.*}}) step
// CHECK:         %[[PARTS:.*]] = memref.alloca() {kernel.space = "local"{{.*}}} : memref<1x8xf32>
// CHECK:         scf.parallel (%l) = (%c0) to (%c8) step
// CHECK:           scf.for %{{.*}} = %l to %{{.*}} step %c8
// CHECK:           memref.store %{{.*}}, %[[PARTS]][%c0, %l]
// CHECK:         scf.parallel (%{{.*}}) = (%c0) to (%c4) step
// CHECK:           arith.addf
// CHECK:         scf.parallel (%{{.*}}) = (%c0) to (%c2) step
// CHECK:           arith.addf
// CHECK:         scf.parallel (%{{.*}}) = (%c0) to (%c1) step
// CHECK:           arith.addf
// CHECK:         scf.parallel (%{{.*}}) = (%c0) to (%c1) step
// CHECK:           memref.store %{{.*}}, %y[%g]
kernel.func @rows(%x: tensor<?x?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[group d0, for d1 by 8, lane d1]>} {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%y : tensor<?xf32>) -> tensor<?xf32>
  %z = linalg.generic {indexing_maps = [#row, #rows], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x?xf32>) outs(%f : tensor<?xf32>) {
  ^bb0(%a: f32, %s: f32):
    %n = arith.addf %s, %a : f32
    linalg.yield %n : f32
  } -> tensor<?xf32>
  kernel.return %z : tensor<?xf32>
}

// A sum in parts, one for each group, which one item adds up in order.
// CHECK-LABEL: kernel.func @parts
// CHECK:       %partial = memref.alloca() {{.*}}: memref<3xf32>
// CHECK:       scf.parallel (%g) = (%c0) to (%c3) step
// CHECK:         scf.for %{{.*}} step %c8
// CHECK:         memref.store %{{.*}}, %partial[%g]
// CHECK:       } {kernel.lanes = 8 : i64}
// CHECK:       scf.for %r = %c0 to %c3 step %c1
// CHECK:         memref.load %partial[%r]
kernel.func @parts(%x: tensor<100xf32>, %y: tensor<f32>) -> tensor<f32> attributes {kernel.schedule = #kernel.schedule<[group d0 into 3], op 0 [for d0 by 8, lane d0]>} {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%y : tensor<f32>) -> tensor<f32>
  %z = linalg.generic {indexing_maps = [#one, #none], iterator_types = ["reduction"]} ins(%x : tensor<100xf32>) outs(%f : tensor<f32>) {
  ^bb0(%a: f32, %s: f32):
    %n = arith.addf %s, %a : f32
    linalg.yield %n : f32
  } -> tensor<f32>
  kernel.return %z : tensor<f32>
}
func.func @main(%x: tensor<1000xf32>, %r: tensor<?x?xf32>, %e: tensor<?xf32>, %v: tensor<100xf32>) -> (tensor<1000xf32>, tensor<?xf32>, tensor<f32>) {
  %y = tensor.empty() : tensor<1000xf32>
  %z = kernel.launch @elements ins(%x : tensor<1000xf32>) outs(%y : tensor<1000xf32>) -> tensor<1000xf32>
  %c0 = arith.constant 0 : index
  %n = tensor.dim %r, %c0 : tensor<?x?xf32>
  %t = tensor.empty(%n) : tensor<?xf32>
  %s = kernel.launch @rows ins(%r : tensor<?x?xf32>) outs(%t : tensor<?xf32>) -> tensor<?xf32>
  %o = tensor.empty() : tensor<f32>
  %p = kernel.launch @parts ins(%v : tensor<100xf32>) outs(%o : tensor<f32>) -> tensor<f32>
  func.return %z, %s, %p : tensor<1000xf32>, tensor<?xf32>, tensor<f32>
}
