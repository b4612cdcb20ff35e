// RUN: %stepwell-opt %s -p bufferize | filecheck %s
// A reduction over `?` elements that ignores its accumulator may leave it as it was.
kernel.func @last(%x: tensor<?xf32>, %y: tensor<f32>) -> tensor<f32> {
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>],
      iterator_types = ["reduction"]} ins(%x : tensor<?xf32>) outs(%y : tensor<f32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<f32>
  kernel.return %r : tensor<f32>
}

// CHECK-LABEL: func.func @main(
// CHECK: memref.copy %first, %r
// CHECK-NEXT: kernel.launch @last ins(%x : memref<?xf32>) outs(%r : memref<f32>)
func.func @main(%x: tensor<?xf32>, %first: tensor<f32>) -> tensor<f32> {
  %r = kernel.launch @last ins(%x : tensor<?xf32>) outs(%first : tensor<f32>) -> tensor<f32>
  func.return %r : tensor<f32>
}
