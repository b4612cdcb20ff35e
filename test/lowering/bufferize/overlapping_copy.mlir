// RUN: %stepwell-opt %s -p bufferize --verify-each | filecheck %s

// What a loop carries is a slice of the buffer that its iterations write. Two rows from a run-time offset may overlap rows 6 and 7 in part: they go through a temporary.
// One row cannot.
// CHECK:      func.func @two_rows
// CHECK:      scf.for
// CHECK:      %[[ROWS:.*]] = memref.subview %{{.*}}[%{{.*}}, 0] [2, 4] [1, 1]
// CHECK:      memref.copy %[[ROWS]], %[[ASIDE:.*]] :
// CHECK-NEXT: memref.copy %[[ASIDE]], %[[CARRIED:.*]] :
// CHECK:      func.func @one_row
// CHECK:      scf.for
// CHECK:      %[[ROW:.*]] = memref.subview %{{.*}}[%{{.*}}, 0] [1, 4] [1, 1]
// CHECK-NEXT: memref.copy %[[ROW]], %[[CARRIED:.*]] :
// CHECK-NEXT: }
kernel.func @fill(%y: tensor<6x4xf32>) -> tensor<6x4xf32> attributes {kernel.shared = 2 : i64} {
  %0 = arith.constant 1.0 : f32
  %z = linalg.fill ins(%0 : f32) outs(%y : tensor<6x4xf32>) -> tensor<6x4xf32>
  kernel.return %z : tensor<6x4xf32>
}

func.func @two_rows(%x: tensor<2x4xf32>, %q: tensor<8xindex>, %n: tensor<index>) -> tensor<2x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = tensor.extract %n[] : tensor<index>
  %r = scf.for %i = %c0 to %k step %c1 iter_args(%a = %x) -> (tensor<2x4xf32>) {
    %e = tensor.empty() : tensor<6x4xf32>
    %w = kernel.launch @fill outs(%e : tensor<6x4xf32>) -> tensor<6x4xf32>
    %f = tensor.empty() : tensor<8x4xf32>
    %s = tensor.insert_slice %w into %f[0, 0] [6, 4] [1, 1] : tensor<6x4xf32> into tensor<8x4xf32>
    %t = tensor.insert_slice %a into %s[6, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<8x4xf32>
    %j = tensor.extract %q[%i] : tensor<8xindex>
    %u = tensor.extract_slice %t[%j, 0] [2, 4] [1, 1] : tensor<8x4xf32> to tensor<2x4xf32>
    scf.yield %u : tensor<2x4xf32>
  }
  func.return %r : tensor<2x4xf32>
}

func.func @one_row(%x: tensor<1x4xf32>, %q: tensor<8xindex>, %n: tensor<index>) -> tensor<1x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = tensor.extract %n[] : tensor<index>
  %r = scf.for %i = %c0 to %k step %c1 iter_args(%a = %x) -> (tensor<1x4xf32>) {
    %e = tensor.empty() : tensor<6x4xf32>
    %w = kernel.launch @fill outs(%e : tensor<6x4xf32>) -> tensor<6x4xf32>
    %f = tensor.empty() : tensor<7x4xf32>
    %s = tensor.insert_slice %w into %f[0, 0] [6, 4] [1, 1] : tensor<6x4xf32> into tensor<7x4xf32>
    %t = tensor.insert_slice %a into %s[6, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<7x4xf32>
    %j = tensor.extract %q[%i] : tensor<8xindex>
    %u = tensor.extract_slice %t[%j, 0] [1, 4] [1, 1] : tensor<7x4xf32> to tensor<1x4xf32>
    scf.yield %u : tensor<1x4xf32>
  }
  func.return %r : tensor<1x4xf32>
}
