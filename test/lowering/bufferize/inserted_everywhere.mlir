// RUN: %stepwell-opt %s -p bufferize --check | filecheck %s
//
// What is inserted everywhere is the result: nothing of the destination is copied.

#id = affine_map<(d0) -> (d0)>
kernel.func @neg(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%y : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  kernel.return %r : tensor<8xf32>
}

func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %0 = tensor.empty() : tensor<8xf32>
  %e = kernel.launch @neg ins(%x : tensor<8xf32>) outs(%0 : tensor<8xf32>) -> tensor<8xf32>
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%c = %x) -> (tensor<8xf32>) {
    %u = tensor.insert_slice %c into %e[0] [8] [1] : tensor<8xf32> into tensor<8xf32>
    scf.yield %u : tensor<8xf32>
  }
  func.return %r : tensor<8xf32>
}

// CHECK:      memref.copy %x, %[[U:.*]] :
// CHECK-NEXT: scf.for
// CHECK-NEXT: }
// CHECK-NEXT: func.return
