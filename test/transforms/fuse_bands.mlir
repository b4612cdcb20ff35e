// RUN: %stepwell-opt %s -p 'fuse-bands{rows=32}' | filecheck %s

// Scores, their exponentials and what they weigh are computed for 32 queries of one head at a time;
// the keys and values of a head are taken outside of the loop over its bands.
//
// CHECK-LABEL: func.func @attention
//       CHECK:   scf.for %part
//       CHECK:     tensor.extract_slice %k{{.*}} to tensor<1x128x64xf32>
//       CHECK:     tensor.extract_slice %v{{.*}} to tensor<1x128x16xf32>
//       CHECK:     scf.for %band
//       CHECK:       tensor.extract_slice %q{{.*}} to tensor<1x32x64xf32>
//   CHECK-NOT:       tensor<4x512x128xf32>
//       CHECK:       tensor.insert_slice %y{{.*}} : tensor<1x32x16xf32> into tensor<4x512x16xf32>
//       CHECK:   } {kernel.schedule = #kernel.schedule<[parallel d0, parallel d1 by 32]>}
#hq = affine_map<(h, r, s, d) -> (h, r, d)>
#hk = affine_map<(h, r, s, d) -> (h, s, d)>
#hs = affine_map<(h, r, s, d) -> (h, r, s)>
#hv = affine_map<(h, r, s, d) -> (h, d, s)>
func.func @attention(%q: tensor<4x512x64xf32>, %k: tensor<4x128x64xf32>, %v: tensor<4x128x16xf32>) -> tensor<4x512x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<4x512x128xf32>
  %e1 = tensor.empty() : tensor<4x512x128xf32>
  %e2 = tensor.empty() : tensor<4x512x16xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<4x512x128xf32>) -> tensor<4x512x128xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<4x512x16xf32>) -> tensor<4x512x16xf32>
  %scores = linalg.generic {indexing_maps = [#hq, #hk, #hs], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%q, %k : tensor<4x512x64xf32>, tensor<4x128x64xf32>) outs(%f0 : tensor<4x512x128xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> tensor<4x512x128xf32>
  %r0 = tensor.empty() : tensor<4x512xf32>
  %r1 = linalg.fill ins(%zero : f32) outs(%r0 : tensor<4x512xf32>) -> tensor<4x512xf32>
  %top = linalg.generic {indexing_maps = [affine_map<(h, r, s) -> (h, r, s)>, affine_map<(h, r, s) -> (h, r)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%scores : tensor<4x512x128xf32>) outs(%r1 : tensor<4x512xf32>) {
  ^bb0(%a: f32, %c: f32):
    %n = arith.maximumf %c, %a : f32
    linalg.yield %n : f32
  } -> tensor<4x512xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(h, r, s) -> (h, r, s)>, affine_map<(h, r, s) -> (h, r)>, affine_map<(h, r, s) -> (h, r, s)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%scores, %top : tensor<4x512x128xf32>, tensor<4x512xf32>) outs(%e1 : tensor<4x512x128xf32>) {
  ^bb0(%a: f32, %t: f32, %c: f32):
    %d = arith.subf %a, %t : f32
    %n = math.exp %d : f32
    linalg.yield %n : f32
  } -> tensor<4x512x128xf32>
  %y = linalg.generic {indexing_maps = [#hq, #hv, #hs], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%p, %v : tensor<4x512x128xf32>, tensor<4x128x16xf32>) outs(%f2 : tensor<4x512x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %n = arith.addf %c, %m : f32
    linalg.yield %n : f32
  } -> tensor<4x512x16xf32>
  func.return %y : tensor<4x512x16xf32>
}
