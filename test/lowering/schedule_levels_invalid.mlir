// RUN: %stepwell-opt %s -p schedule --verify-diagnostics --split-input-file

// Levels that a kernel's loops cannot be made from are refused where they stand.

// expected-error@+1 {{'for d1': there is no loop d1, the op has 1}}
kernel.func @k(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[for d0, for d1]>} {
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<64xf32>) outs(%y : tensor<64xf32>) {
  ^bb0(%a: f32, %c: f32):
    linalg.yield %a : f32
  } -> tensor<64xf32>
  kernel.return %r : tensor<64xf32>
}

// -----

// expected-error@+1 {{there is no op 1: the kernel has 1 with loops}}
kernel.func @k(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[for d0], op 1 [for d1]>} {
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<64xf32>) outs(%y : tensor<64xf32>) {
  ^bb0(%a: f32, %c: f32):
    linalg.yield %a : f32
  } -> tensor<64xf32>
  kernel.return %r : tensor<64xf32>
}

// -----

// expected-error@+1 {{'parallel d0 into 4': only a sum's loop is cut into parts}}
kernel.func @k(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[parallel d0 into 4, for d0]>} {
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<64xf32>) outs(%y : tensor<64xf32>) {
  ^bb0(%a: f32, %c: f32):
    linalg.yield %a : f32
  } -> tensor<64xf32>
  kernel.return %r : tensor<64xf32>
}

// -----

// What has no effect is refused: a loop in steps of 16 and, in it, one in steps of 8.
// expected-error@+1 {{no loops can be made so; the nearest are [for d0 by 8, unroll d0 by 4, vector d0 by 4]}}
kernel.func @k(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[for d0 by 16, for d0 by 8, unroll d0 by 4, vector d0 by 4]>} {
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<64xf32>) outs(%y : tensor<64xf32>) {
  ^bb0(%a: f32, %c: f32):
    linalg.yield %a : f32
  } -> tensor<64xf32>
  kernel.return %r : tensor<64xf32>
}

// -----

// A loop of whole vectors ends without a mask.
// expected-error@+1 {{d0 cannot 'mask': no part of a vector is left at its end}}
kernel.func @k(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[for d0 by 16 mask, vector d0 by 16]>} {
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<64xf32>) outs(%y : tensor<64xf32>) {
  ^bb0(%a: f32, %c: f32):
    linalg.yield %a : f32
  } -> tensor<64xf32>
  kernel.return %r : tensor<64xf32>
}
