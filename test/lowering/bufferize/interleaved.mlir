// RUN: %stepwell-opt %s -p bufferize | filecheck %s
//
// Results that are inserted by strides of two never meet: one launch writes both where they belong,
// columns of even number and columns of odd number. Every third and every second column do meet.

#id = affine_map<(d0, d1) -> (d0, d1)>
kernel.func @both(%x: tensor<4x3xf32>, %y: tensor<4x3xf32>, %z: tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) attributes {kernel.shared = 2 : i64} {
  %r:2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x3xf32>) outs(%y, %z : tensor<4x3xf32>, tensor<4x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %1 = arith.addf %a, %a : f32
    %2 = arith.mulf %a, %a : f32
    linalg.yield %1, %2 : f32, f32
  } -> (tensor<4x3xf32>, tensor<4x3xf32>)
  kernel.return %r#0, %r#1 : tensor<4x3xf32>, tensor<4x3xf32>
}

// CHECK-LABEL: func.func @twos(
// CHECK-NOT:     memref.copy
// CHECK:         kernel.launch @both_view {{.*}} outs(%{{.*}}, %{{.*}} : memref<4x3xf32, strided<[6, 2], offset: ?>>, memref<4x3xf32, strided<[6, 2], offset: ?>>)
// CHECK-NOT:     memref.copy
// CHECK:         func.return
func.func @twos(%x: tensor<4x3xf32>) -> tensor<4x6xf32> {
  %e = tensor.empty() : tensor<4x3xf32>
  %f = tensor.empty() : tensor<4x3xf32>
  %y, %z = kernel.launch @both ins(%x : tensor<4x3xf32>) outs(%e, %f : tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>, tensor<4x3xf32>
  %w = tensor.empty() : tensor<4x6xf32>
  %even = tensor.insert_slice %y into %w[0, 0] [4, 3] [1, 2] : tensor<4x3xf32> into tensor<4x6xf32>
  %odd = tensor.insert_slice %z into %even[0, 1] [4, 3] [1, 2] : tensor<4x3xf32> into tensor<4x6xf32>
  func.return %odd : tensor<4x6xf32>
}

// CHECK-LABEL: func.func @threes_and_twos(
// CHECK:         memref.copy
// CHECK:         func.return
func.func @threes_and_twos(%x: tensor<4x3xf32>) -> tensor<4x7xf32> {
  %e = tensor.empty() : tensor<4x3xf32>
  %f = tensor.empty() : tensor<4x3xf32>
  %y, %z = kernel.launch @both ins(%x : tensor<4x3xf32>) outs(%e, %f : tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>, tensor<4x3xf32>
  %w = tensor.empty() : tensor<4x7xf32>
  %third = tensor.insert_slice %y into %w[0, 0] [4, 3] [1, 3] : tensor<4x3xf32> into tensor<4x7xf32>
  %odd = tensor.insert_slice %z into %third[0, 1] [4, 3] [1, 2] : tensor<4x3xf32> into tensor<4x7xf32>
  func.return %odd : tensor<4x7xf32>
}
