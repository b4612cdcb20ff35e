// RUN: %stepwell-opt %s -p bufferize --verify-each | filecheck %s
// A part that is read of a tensor whose buffer was written in other parts is proved by the whole.

kernel.func @copy(%x: tensor<6x6xf32>, %y: tensor<6x6xf32>) -> tensor<6x6xf32> attributes {kernel.shared = 2 : i64} {
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<6x6xf32>) outs(%y : tensor<6x6xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<6x6xf32>
  kernel.return %r : tensor<6x6xf32>
}

// CHECK-LABEL: func.func @main
// CHECK: scf.for
// CHECK-NOT: memref.copy
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%u = %x) -> (tensor<8x8xf32>) {
    %part = tensor.extract_slice %u[0, 1] [6, 6] [1, 1] : tensor<8x8xf32> to tensor<6x6xf32>
    %e = tensor.empty() : tensor<6x6xf32>
    %inner = kernel.launch @copy ins(%part : tensor<6x6xf32>) outs(%e : tensor<6x6xf32>) -> tensor<6x6xf32>
    %next = tensor.insert_slice %inner into %u[1, 1] [6, 6] [1, 1] : tensor<6x6xf32> into tensor<8x8xf32>
    scf.yield %next : tensor<8x8xf32>
  }
  func.return %r : tensor<8x8xf32>
}
