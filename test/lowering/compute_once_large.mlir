// RUN: %stepwell-opt %s -p compute-once | filecheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

kernel.func @spread(%x: tensor<4xf32>, %d: tensor<4x400000xf32>) -> tensor<4x400000xf32> attributes {kernel.shared = 2} {
  %r = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4xf32>) outs(%d : tensor<4x400000xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<4x400000xf32>
  kernel.return %r : tensor<4x400000xf32>
}

// A large result of a small weight is not worth keeping.
// CHECK-LABEL: func.func @large(
// CHECK:         kernel.launch @spread
// CHECK-NOT:   @large.constants
func.func @large(%w: tensor<4xf32> {nd.resource = "v"}) -> tensor<4x400000xf32> {
  %e = tensor.empty() : tensor<4x400000xf32>
  %y = kernel.launch @spread ins(%w : tensor<4xf32>) outs(%e : tensor<4x400000xf32>) -> tensor<4x400000xf32>
  func.return %y : tensor<4x400000xf32>
}
