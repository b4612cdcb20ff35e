// RUN: %stepwell-opt %s -p inline-layers | filecheck %s

// Calls of layers are replaced by their launches; other calls stay.
kernel.func @main_exp(%a: tensor<4xf32>, %into: tensor<4xf32>) -> tensor<4xf32> attributes {kernel.shared = 1} {
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%a : tensor<4xf32>) outs(%into : tensor<4xf32>) {
  ^bb0(%p: f32, %q: f32):
    %e = math.exp %p : f32
    linalg.yield %e : f32
  } -> tensor<4xf32>
  kernel.return %r : tensor<4xf32>
}
func.func private @main.layer(%x: tensor<4xf32>) -> tensor<4xf32> attributes {nd.layer_of = "main"} {
  %e = tensor.empty() : tensor<4xf32>
  %y = kernel.launch @main_exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
func.func private @other(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
func.func private @declared(tensor<4xf32>) -> tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = func.call @main.layer(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %z = func.call @main.layer(%y) : (tensor<4xf32>) -> tensor<4xf32>
  %o = func.call @other(%z) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %o : tensor<4xf32>
}
// CHECK-NOT:  layer
// CHECK:      func.func @main
// CHECK-NEXT:   tensor.empty
// CHECK-NEXT:   %y = kernel.launch @main_exp ins(%x
// CHECK-NEXT:   tensor.empty
// CHECK-NEXT:   %z = kernel.launch @main_exp ins(%y
// CHECK-NEXT:   func.call @other(%z)
