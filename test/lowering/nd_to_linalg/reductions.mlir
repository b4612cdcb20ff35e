// RUN: %stepwell-opt %s -p nd-to-linalg | filecheck %s

// A reduction folds into a destination filled with its identity; f16 accumulates in f32.

// CHECK-LABEL: func.func @reduce
func.func @reduce(%x: tensor<?x4xf32>, %h: tensor<4xf16>) -> (tensor<?xf32>, tensor<f16>) {
  // CHECK: %[[LEAST:.*]] = arith.constant 0xff800000 : f32
  // CHECK: %[[INIT:.*]] = linalg.fill ins(%[[LEAST]] : f32)
  // CHECK: iterator_types = ["parallel", "reduction"]{{.*}} outs(%[[INIT]] : tensor<?xf32>)
  // CHECK: arith.maximumf
  %0 = nd.reduce_max %x {axes = [1]} : tensor<?x4xf32> -> tensor<?xf32>
  // CHECK: outs(%{{.*}} : tensor<f32>)
  // CHECK: arith.extf
  // CHECK: arith.addf
  // CHECK: arith.truncf
  %1 = nd.reduce_sum %h {axes = [0]} : tensor<4xf16> -> tensor<f16>
  func.return %0, %1 : tensor<?xf32>, tensor<f16>
}

// argmax carries value and place; a cumulative op the running result and the accumulator.

// CHECK-LABEL: func.func @two_outputs
func.func @two_outputs(%x: tensor<3x4xf32>) -> (tensor<4xi32>, tensor<3x4xf32>) {
  // CHECK: %{{.*}}, %[[AT:.*]] = linalg.generic {{.*}} outs(%{{.*}}, %{{.*}} : tensor<4xf32>, tensor<4xi32>)
  // CHECK: arith.cmpf ogt
  // CHECK: linalg.index 0
  %0 = nd.argmax %x {axis = 0} : tensor<3x4xf32> -> tensor<4xi32>
  // CHECK: linalg.generic {{.*}} outs(%{{.*}}, %{{.*}} : tensor<3x4xf32>, tensor<3xf32>)
  // CHECK: ^bb0(%[[X:.*]]: f32, %{{.*}}: f32, %[[BEFORE:.*]]: f32):
  // CHECK-NEXT: %[[AFTER:.*]] = arith.addf %[[BEFORE]], %[[X]]
  // CHECK-NEXT: linalg.yield %[[BEFORE]], %[[AFTER]]
  %1 = nd.cumulative_sum %x {axis = 1, exclusive} : tensor<3x4xf32>
  func.return %0, %1 : tensor<4xi32>, tensor<3x4xf32>
}

// Along the last axis the best is found first, then the first place of its like; the last place is
// where the search starts.

// CHECK-LABEL: func.func @first_place
func.func @first_place(%x: tensor<3x?xf32>) -> tensor<3xi32> {
  // CHECK: %[[BEST:.*]] = linalg.generic
  // CHECK: arith.maximumf
  // CHECK: %[[N:.*]] = arith.maxsi %{{.*}}, %{{.*}} : index
  // CHECK: %[[LAST:.*]] = arith.subi %[[N]], %{{.*}} : index
  // CHECK: arith.index_cast %[[LAST]] : index to i32
  // CHECK: linalg.generic {{.*}} ins(%x, %[[BEST]] : tensor<3x?xf32>, tensor<3xf32>)
  // CHECK: arith.cmpf oeq
  // CHECK: arith.minsi
  %0 = nd.argmax %x {axis = 1} : tensor<3x?xf32> -> tensor<3xi32>
  func.return %0 : tensor<3xi32>
}

// A window adds loops whose sizes an unused tensor tells; its border holds the identity.

// CHECK-LABEL: func.func @window
func.func @window(%x: tensor<1x7xf32>) -> tensor<1x4xf32> {
  // CHECK: tensor.insert_slice %x into %{{.*}}[0, 1] [1, 7] [1, 1] : tensor<1x7xf32> into tensor<1x9xf32>
  // CHECK: %[[SHAPE:.*]] = tensor.empty() : tensor<3xf32>
  // CHECK: affine_map<(d0, d1, d2) -> (d0, ((d1 * 2) + d2))>, affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>
  // CHECK-SAME: iterator_types = ["parallel", "parallel", "reduction"]
  // CHECK-SAME: ins(%{{.*}}, %[[SHAPE]] : tensor<1x9xf32>, tensor<3xf32>)
  %0 = nd.window_max %x {window = [1, 3], strides = [1, 2], low = [0, 1], high = [0, 1]} : tensor<1x7xf32> -> tensor<1x4xf32>
  func.return %0 : tensor<1x4xf32>
}
