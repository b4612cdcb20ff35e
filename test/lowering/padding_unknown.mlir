// RUN: %stepwell-opt %s -p propagate-layouts | filecheck %s
//
// An argument that is put into a border is copied by a kernel, where only a call tells its sizes too.

// CHECK-LABEL: func.func @main
//       CHECK:   linalg.fill
//       CHECK:   [[ROOM:%.*]] = tensor.empty(%n) : tensor<4x?xf32>
//       CHECK:   [[COPY:%.*]] = linalg.generic {{.*}} ins(%x : tensor<4x?xf32>) outs([[ROOM]] : tensor<4x?xf32>) attrs = {{.*}}kernel.no_fuse
//       CHECK:   tensor.insert_slice [[COPY]] into
func.func @main(%x: tensor<4x?xf32>) -> tensor<6x?xf32> {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c1 : tensor<4x?xf32>
  %m = arith.addi %n, %c2 : index
  %e = tensor.empty(%m) : tensor<6x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x?xf32>) -> tensor<6x?xf32>
  %y = tensor.insert_slice %x into %f[1, 1] [4, %n] [1, 1] : tensor<4x?xf32> into tensor<6x?xf32>
  func.return %y : tensor<6x?xf32>
}
