// RUN: %stepwell-opt %s -p 'schedule{machine=zen4}' | filecheck %s

// An operand of unknown size may be large and is packed; as many columns as are read in place as fast have a version: 256 of a sum that is as long take a quarter of 1 MiB.
// CHECK-LABEL: kernel.func @product
// CHECK-SAME:    {pack 1}
// CHECK-SAME:    #kernel.version<d1 from 0 to 16,
// CHECK-SAME:    #kernel.version<d1 from 0 to 256, #kernel.schedule<[parallel d0 by 6, parallel d1 by 64 overlap
kernel.func @product(%x: tensor<?x?xf32>, %w: tensor<?x?xf32>, %y: tensor<?x?xf32>) -> tensor<?x?xf32> attributes {kernel.shared = 2 : i64} {
  %0 = arith.constant 0.0 : f32
  %1 = linalg.fill ins(%0 : f32) outs(%y : tensor<?x?xf32>) -> tensor<?x?xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<?x?xf32>, tensor<?x?xf32>) outs(%1 : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %3 = arith.mulf %a, %b : f32
    %4 = arith.addf %c, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<?x?xf32>
  kernel.return %2 : tensor<?x?xf32>
}

// So is one of known columns if the sum has an unknown length; sums up to the same size of it have a version.
// CHECK-LABEL: kernel.func @deep
// CHECK-SAME:    {pack 1
// CHECK-SAME:    kernel.versions = [#kernel.version<d2 from 0 to 128, #kernel.schedule<[parallel d0 by 6
kernel.func @deep(%x: tensor<512x?xf32>, %w: tensor<?x512xf32>, %y: tensor<512x512xf32>) -> tensor<512x512xf32> attributes {kernel.shared = 2 : i64} {
  %0 = arith.constant 0.0 : f32
  %1 = linalg.fill ins(%0 : f32) outs(%y : tensor<512x512xf32>) -> tensor<512x512xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<512x?xf32>, tensor<?x512xf32>) outs(%1 : tensor<512x512xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %3 = arith.mulf %a, %b : f32
    %4 = arith.addf %c, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<512x512xf32>
  kernel.return %2 : tensor<512x512xf32>
}
