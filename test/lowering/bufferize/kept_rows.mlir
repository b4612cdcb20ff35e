// RUN: %stepwell-opt %s -p bufferize | filecheck %s
//
// A loop that carries a tensor and replaces only its inner rows exchanges two buffers. The rows that
// stay are copied once, before the loop, so that both buffers have them.

kernel.func @mean(%u: tensor<8x8xf32>, %y: tensor<6x8xf32>) -> tensor<6x8xf32> attributes {kernel.shared = 2 : i64} {
  %m = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0 + 1, d1)>, affine_map<(d0, d1) -> (d0 + 2, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%u, %u : tensor<8x8xf32>, tensor<8x8xf32>) outs(%y : tensor<6x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<6x8xf32>
  kernel.return %m : tensor<6x8xf32>
}

func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%u = %x) -> (tensor<8x8xf32>) {
    %e = tensor.empty() : tensor<6x8xf32>
    %inner = kernel.launch @mean ins(%u : tensor<8x8xf32>) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
    %first = tensor.extract_slice %u[0, 0] [1, 8] [1, 1] : tensor<8x8xf32> to tensor<1x8xf32>
    %last = tensor.extract_slice %u[7, 0] [1, 8] [1, 1] : tensor<8x8xf32> to tensor<1x8xf32>
    %0 = tensor.empty() : tensor<8x8xf32>
    %1 = tensor.insert_slice %first into %0[0, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<8x8xf32>
    %2 = tensor.insert_slice %inner into %1[1, 0] [6, 8] [1, 1] : tensor<6x8xf32> into tensor<8x8xf32>
    %3 = tensor.insert_slice %last into %2[7, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<8x8xf32>
    scf.yield %3 : tensor<8x8xf32>
  }
  func.return %r : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @main
// CHECK:         %[[NEXT:.*]] = memref.alloc() : memref<8x8xf32>
// CHECK:         memref.copy %x, %[[NEXT]] : memref<8x8xf32>
// CHECK:         memref.copy {{.*}} : memref<1x8xf32
// CHECK:         memref.copy {{.*}} : memref<1x8xf32
// CHECK:         scf.for {{.*}} iter_args(%[[NOW:.*]] = %[[NEXT]], %[[INTO:.*]] = %r)
// CHECK-NOT:       memref.copy
// CHECK:           %[[INNER:.*]] = memref.subview %[[INTO]][1, 0] [6, 8] [1, 1]
// CHECK:           kernel.launch @mean{{.*}} ins(%[[NOW]] : {{.*}}) outs(
// CHECK-NEXT:      scf.yield %[[INTO]], %[[NOW]]
