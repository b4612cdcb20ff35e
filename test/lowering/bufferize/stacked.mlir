// RUN: %stepwell-opt %s --check -p bufferize | filecheck %s
//
// What a kernel makes is made where it is stacked, and the kernel knows where in it everything is.

kernel.func @both(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>, %z: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) attributes {kernel.shared = 2 : i64} {
  %s, %t = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<2x3xf32>) outs(%y, %z : tensor<2x3xf32>, tensor<2x3xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %a : f32
    %n = arith.negf %a : f32
    linalg.yield %m, %n : f32, f32
  } -> (tensor<2x3xf32>, tensor<2x3xf32>)
  kernel.return %s, %t : tensor<2x3xf32>, tensor<2x3xf32>
}

// CHECK-LABEL: kernel.func @both_view(%x: memref<2x3xf32>, %{{.*}}: memref<2x8xf32>) attributes {kernel.shared = 2 : i64} {
// CHECK-NEXT:    %[[ROW:.*]] = memref.subview %{{.*}}[0, 0] [1, 6] [1, 1] : memref<2x8xf32> to memref<6xf32, strided<[1]>>
// CHECK-NEXT:    %[[SEEN:.*]] = memref.expand_shape %[[ROW]] {{.*}} into memref<2x3xf32, strided<[3, 1]>>
// CHECK-NEXT:    memref.subview %{{.*}}[1, 0] [1, 6] [1, 1]
// CHECK-NEXT:    %[[NEXT:.*]] = memref.expand_shape {{.*}} into memref<2x3xf32, strided<[3, 1], offset: 8>>
// CHECK-NEXT:    linalg.generic {{.*}} outs(%[[SEEN]], %[[NEXT]] :

// CHECK-LABEL: func.func @in_place
// CHECK-NEXT:    %[[ALL:.*]] = memref.alloc() : memref<2x8xf32>
// CHECK-NEXT:    kernel.launch @both_view ins(%x : memref<2x3xf32>) outs(%[[ALL]] : memref<2x8xf32>)
// CHECK-NEXT:    %[[CUT:.*]] = memref.subview %[[ALL]]
// CHECK-NEXT:    memref.copy %[[CUT]]
func.func @in_place(%x: tensor<2x3xf32>) -> tensor<2x6xf32> {
  %e = tensor.empty() : tensor<2x3xf32>
  %f = tensor.empty() : tensor<2x3xf32>
  %m, %n = kernel.launch @both ins(%x : tensor<2x3xf32>) outs(%e, %f : tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>, tensor<2x3xf32>
  %s = kernel.stack %m, %n : tensor<2x3xf32> -> tensor<2x8xf32>
  %r = tensor.extract_slice %s[0, 0] [2, 6] [1, 1] : tensor<2x8xf32> to tensor<2x6xf32>
  func.return %r : tensor<2x6xf32>
}

// An argument, and what is in another row already, are copied.
// CHECK-LABEL: func.func @copied
// CHECK-COUNT-2: memref.copy
// CHECK-NOT:     memref.copy
func.func @copied(%x: tensor<2x3xf32>) -> tensor<3x6xf32> {
  %e = tensor.empty() : tensor<2x3xf32>
  %f = tensor.empty() : tensor<2x3xf32>
  %m, %n = kernel.launch @both ins(%x : tensor<2x3xf32>) outs(%e, %f : tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>, tensor<2x3xf32>
  %s = kernel.stack %m, %x, %m : tensor<2x3xf32> -> tensor<3x6xf32>
  func.return %s : tensor<3x6xf32>
}
