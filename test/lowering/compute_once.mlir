// RUN: %stepwell-opt %s -p compute-once | filecheck %s
// RUN: %stepwell-opt %s -p "compute-once{hoist-constants=0}" | filecheck %s --check-prefix=LATER
// RUN: %stepwell-opt %s --check -p "compute-once,bufferize,plan-memory" | filecheck %s --check-prefix=BUFFERS

#id = affine_map<(d0, d1) -> (d0, d1)>
#tr = affine_map<(d0, d1) -> (d1, d0)>

kernel.func @turn(%w: tensor<3x4xf32>, %d: tensor<4x3xf32>) -> tensor<4x3xf32> attributes {kernel.shared = 2} {
  %r = linalg.generic {indexing_maps = [#tr, #id], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<3x4xf32>) outs(%d : tensor<4x3xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<4x3xf32>
  kernel.return %r : tensor<4x3xf32>
}
kernel.func @add(%x: tensor<4x3xf32>, %w: tensor<4x3xf32>, %d: tensor<4x3xf32>) -> tensor<4x3xf32> attributes {kernel.shared = 2} {
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %w : tensor<4x3xf32>, tensor<4x3xf32>) outs(%d : tensor<4x3xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4x3xf32>
  kernel.return %r : tensor<4x3xf32>
}

// Only the weight that the call itself needs is still its argument; of a chain, only the end is.
// CHECK-LABEL: func.func @chain(
// CHECK-SAME:    %x: tensor<4x3xf32>, %b: tensor<4x3xf32> {nd.resource = "b"},
// CHECK-SAME:    %sum: tensor<4x3xf32> {nd.resource = "sum", kernel.computed_constant = 0 : i64}) -> tensor<4x3xf32>
// CHECK-NOT:     @turn
// CHECK:         kernel.launch @add ins(%x, %sum
// CHECK:         kernel.launch @add ins({{.*}}, %b
// CHECK-LABEL: func.func @chain.constants(
// CHECK-SAME:    %b: tensor<4x3xf32> {nd.resource = "b"}, %w: tensor<3x4xf32> {nd.resource = "w"}) -> tensor<4x3xf32>
// CHECK:         kernel.launch @turn ins(%w
// CHECK:         kernel.launch @add ins({{.*}}, %b
// LATER-LABEL: func.func @chain(
// LATER:         kernel.launch @turn
// LATER-NOT:     func.func @chain.constants
// BUFFERS:     func.func @chain(%x: memref<4x3xf32> {kernel.role = "input"}, %b: {{.*}}kernel.role = "constant"}, %sum: memref<4x3xf32> {{.*}}kernel.computed_constant = 0 : i64, kernel.role = "constant"}
func.func @chain(%x: tensor<4x3xf32>, %b: tensor<4x3xf32> {nd.resource = "b"}, %w: tensor<3x4xf32> {nd.resource = "w"}) -> tensor<4x3xf32> {
  %e0 = tensor.empty() : tensor<4x3xf32>
  %t = kernel.launch @turn ins(%w : tensor<3x4xf32>) outs(%e0 : tensor<4x3xf32>) -> tensor<4x3xf32>
  %e1 = tensor.empty() : tensor<4x3xf32>
  %sum = kernel.launch @add ins(%t, %b : tensor<4x3xf32>, tensor<4x3xf32>) outs(%e1 : tensor<4x3xf32>) -> tensor<4x3xf32>
  %e2 = tensor.empty() : tensor<4x3xf32>
  %y = kernel.launch @add ins(%x, %sum : tensor<4x3xf32>, tensor<4x3xf32>) outs(%e2 : tensor<4x3xf32>) -> tensor<4x3xf32>
  %e3 = tensor.empty() : tensor<4x3xf32>
  %z = kernel.launch @add ins(%y, %b : tensor<4x3xf32>, tensor<4x3xf32>) outs(%e3 : tensor<4x3xf32>) -> tensor<4x3xf32>
  func.return %z : tensor<4x3xf32>
}

// A launch that gives the same in every iteration runs before the loop, which needs it not at all.
// CHECK-LABEL: func.func @loop(
// CHECK:         kernel.launch @turn ins(%w
// CHECK:         scf.for
// CHECK-NOT:     kernel.launch @turn
// CHECK:         kernel.launch @add
// LATER-LABEL: func.func @loop(
// LATER:         kernel.launch @turn ins(%w
// LATER:         scf.for
func.func @loop(%x: tensor<4x3xf32>, %w: tensor<3x4xf32>) -> tensor<4x3xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %y = scf.for %i = %c0 to %c5 step %c1 iter_args(%c = %x) -> (tensor<4x3xf32>) {
    %e0 = tensor.empty() : tensor<4x3xf32>
    %t = kernel.launch @turn ins(%w : tensor<3x4xf32>) outs(%e0 : tensor<4x3xf32>) -> tensor<4x3xf32>
    %e1 = tensor.empty() : tensor<4x3xf32>
    %s = kernel.launch @add ins(%c, %t : tensor<4x3xf32>, tensor<4x3xf32>) outs(%e1 : tensor<4x3xf32>) -> tensor<4x3xf32>
    scf.yield %s : tensor<4x3xf32>
  }
  func.return %y : tensor<4x3xf32>
}

// Matrices that are stacked are computed in their rows: the entry takes the stack, and copies nothing.
// CHECK-LABEL: func.func @stacked(
// CHECK-SAME:    %x: tensor<4x3xf32>, %stack: tensor<2x12xf32> {nd.resource = "stack", kernel.computed_constant = 0 : i64})
// CHECK-NOT:     kernel.stack
// CHECK-LABEL: func.func @stacked.constants(
// CHECK:         kernel.stack
// BUFFERS-LABEL: func.func @stacked(
// BUFFERS-NOT:   memref.copy
func.func @stacked(%x: tensor<4x3xf32>, %w: tensor<3x4xf32> {nd.resource = "w"}) -> tensor<4x3xf32> {
  %e0 = tensor.empty() : tensor<4x3xf32>
  %a = kernel.launch @turn ins(%w : tensor<3x4xf32>) outs(%e0 : tensor<4x3xf32>) -> tensor<4x3xf32>
  %e1 = tensor.empty() : tensor<4x3xf32>
  %b = kernel.launch @add ins(%a, %a : tensor<4x3xf32>, tensor<4x3xf32>) outs(%e1 : tensor<4x3xf32>) -> tensor<4x3xf32>
  %stack = kernel.stack %a, %b : tensor<4x3xf32> -> tensor<2x12xf32>
  %row = tensor.extract_slice %stack[1, 0] [1, 12] [1, 1] : tensor<2x12xf32> to tensor<12xf32>
  %part = tensor.expand_shape %row [[0, 1]] output_shape [4, 3] : tensor<12xf32> into tensor<4x3xf32>
  %e2 = tensor.empty() : tensor<4x3xf32>
  %y = kernel.launch @add ins(%x, %part : tensor<4x3xf32>, tensor<4x3xf32>) outs(%e2 : tensor<4x3xf32>) -> tensor<4x3xf32>
  func.return %y : tensor<4x3xf32>
}
