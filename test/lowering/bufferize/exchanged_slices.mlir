// RUN: %stepwell-opt %s -p bufferize | filecheck %s

// Two buffers that a loop exchanges have one type: neither is a column of a larger buffer in place, though both begin as that column.
// A third one, which the loop updates in place, is that column.
// CHECK:      %[[COLUMN:.*]] = memref.subview %x[0, 1] [8, 1] [1, 1]
// CHECK-NEXT: memref.copy %[[COLUMN]], %[[A:.*]] :
// CHECK-NEXT: memref.copy %[[COLUMN]], %[[B:.*]] :
// CHECK-NEXT: scf.for {{.*}} iter_args(%{{.*}} = %[[A]], %{{.*}} = %[[B]], %{{.*}} = %{{.*}}) -> (memref<8x1xf32>, memref<8x1xf32>, memref<8x1xf32>)
kernel.func @begin(%y: tensor<8x3xf32>) -> tensor<8x3xf32> attributes {kernel.shared = 2 : i64} {
  %0 = arith.constant 1.0 : f32
  %z = linalg.fill ins(%0 : f32) outs(%y : tensor<8x3xf32>) -> tensor<8x3xf32>
  kernel.return %z : tensor<8x3xf32>
}

kernel.func @add(%u: tensor<8x1xf32>, %w: tensor<8x1xf32>, %y: tensor<8x1xf32>) -> tensor<8x1xf32> attributes {kernel.shared = 2 : i64} {
  %s = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%u, %w : tensor<8x1xf32>, tensor<8x1xf32>) outs(%y : tensor<8x1xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<8x1xf32>
  kernel.return %s : tensor<8x1xf32>
}

func.func @main(%n: tensor<index>) -> tensor<8x1xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = tensor.extract %n[] : tensor<index>
  %e = tensor.empty() : tensor<8x3xf32>
  %x = kernel.launch @begin outs(%e : tensor<8x3xf32>) -> tensor<8x3xf32>
  %s = tensor.extract_slice %x[0, 1] [8, 1] [1, 1] : tensor<8x3xf32> to tensor<8x1xf32>
  %p, %q, %r = scf.for %i = %c0 to %k step %c1 iter_args(%a = %s, %b = %s, %c = %s) -> (tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>) {
    %f = tensor.empty() : tensor<8x1xf32>
    %m = kernel.launch @add ins(%a, %b : tensor<8x1xf32>, tensor<8x1xf32>) outs(%f : tensor<8x1xf32>) -> tensor<8x1xf32>
    %g = tensor.empty() : tensor<8x1xf32>
    %o = kernel.launch @add ins(%b, %c : tensor<8x1xf32>, tensor<8x1xf32>) outs(%g : tensor<8x1xf32>) -> tensor<8x1xf32>
    scf.yield %m, %a, %o : tensor<8x1xf32>, tensor<8x1xf32>, tensor<8x1xf32>
  }
  func.return %q : tensor<8x1xf32>
}
