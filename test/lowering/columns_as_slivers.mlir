// RUN: %stepwell-opt %s -p 'decompose,nd-to-linalg,canonicalize,cse,fuse-elementwise,outline-kernels,schedule{machine="vector_bits=512,vector_registers=32,fma=1,threads=2,l3=32M,vector_unit=256"}' | filecheck %s

// Columns of one tile lie as a packed operand would, so few rows read them in place, however long the sum is.
// CHECK-LABEL: kernel.func @deep_matmul(
// CHECK-NOT:     pack
// CHECK-SAME:    unroll d1 by 16
func.func @deep(%x: tensor<51x11161xf32>, %y: tensor<11161x47xf32>) -> tensor<51x47xf32> {
  %z = nd.matmul %x, %y : (tensor<51x11161xf32>, tensor<11161x47xf32>) -> tensor<51x47xf32>
  func.return %z : tensor<51x47xf32>
}

// Many rows repay packing.
// CHECK-LABEL: kernel.func @tall_matmul(
// CHECK-SAME:    pack
func.func @tall(%x: tensor<800x11161xf32>, %y: tensor<11161x100xf32>) -> tensor<800x100xf32> {
  %z = nd.matmul %x, %y : (tensor<800x11161xf32>, tensor<11161x100xf32>) -> tensor<800x100xf32>
  func.return %z : tensor<800x100xf32>
}

// Three halves of a vector hold seventeen columns.
// CHECK-LABEL: kernel.func @halves_matmul(
// CHECK-SAME:    unroll d1 by 8
func.func @halves(%x: tensor<51x11161xf32>, %y: tensor<11161x17xf32>) -> tensor<51x17xf32> {
  %z = nd.matmul %x, %y : (tensor<51x11161xf32>, tensor<11161x17xf32>) -> tensor<51x17xf32>
  func.return %z : tensor<51x17xf32>
}
