// RUN: %stepwell-opt %s --check -p 'decompose,nd-to-linalg,canonicalize,cse,propagate-layouts,fuse-elementwise,outline-kernels,schedule,bufferize' | filecheck %s
// A product that is made first, and is no result, stays in scratch: in the memory of a result it
// would be written before the argument is read that the result replaces.

// CHECK-LABEL: kernel.func @main_matmul_add_sub
// CHECK: %g = memref.alloc() : memref<32x48xf32>
// CHECK: linalg.fill {{.*}}outs(%g :
// CHECK-LABEL: func.func @main
// CHECK: memref.copy %m, [[M:%\w+]] :
// CHECK-NEXT: memref.copy %w, [[W:%\w+]] :
// CHECK-NEXT: kernel.launch @main_matmul_add_sub ins(%x, %d, [[M]], [[W]] :{{.*}}outs([[M]], [[W]] :
// CHECK-NEXT: func.return
func.func @main(%x: tensor<64x32xf32>, %d: tensor<64x48xf32>, %m: tensor<32x48xf32>, %w: tensor<32x48xf32>)
    -> (tensor<32x48xf32> {nd.into = 2 : i64}, tensor<32x48xf32> {nd.into = 3 : i64}) {
  %t = nd.transpose %x {permutation = [1, 0]} : tensor<64x32xf32> -> tensor<32x64xf32>
  %g = nd.matmul %t, %d : (tensor<32x64xf32>, tensor<64x48xf32>) -> tensor<32x48xf32>
  %mean = nd.add %m, %g : tensor<32x48xf32>
  %new = nd.sub %w, %mean : tensor<32x48xf32>
  func.return %mean, %new : tensor<32x48xf32>, tensor<32x48xf32>
}
