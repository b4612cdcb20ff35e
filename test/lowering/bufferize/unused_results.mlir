// RUN: %stepwell-opt %s -p bufferize | filecheck %s

// A kernel that begins two results with one tensor updates each of them, whether they are used later or not: they are not in one buffer.
// CHECK:      func.func @main
// CHECK:      kernel.launch @begin
// CHECK:      memref.copy %x, %[[SECOND:.*]] :
// CHECK:      kernel.launch @both outs(%x, %[[SECOND]], %{{.*}} :
kernel.func @begin(%d: tensor<8xf32>) -> tensor<8xf32> attributes {kernel.shared = 1 : i64} {
  %one = arith.constant 1.0 : f32
  %r = linalg.fill ins(%one : f32) outs(%d : tensor<8xf32>) -> tensor<8xf32>
  kernel.return %r : tensor<8xf32>
}

kernel.func @both(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) attributes {kernel.shared = 1 : i64} {
  %two = arith.constant 2.0 : f32
  %p, %q, %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%a, %b, %c : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.addf %x, %two : f32
    %1 = arith.mulf %y, %two : f32
    %2 = arith.addf %0, %1 : f32
    linalg.yield %0, %1, %2 : f32, f32, f32
  } -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  kernel.return %p, %q, %r : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

func.func @main() -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %x = kernel.launch @begin outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %o = tensor.empty() : tensor<8xf32>
  %p, %q, %r = kernel.launch @both outs(%x, %x, %o : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  func.return %r : tensor<8xf32>
}
