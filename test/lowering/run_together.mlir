// RUN: %stepwell-opt %s -p 'through(kernels),bufferize,run-together' | filecheck %s
// RUN: %stepwell-opt %s -p 'through(kernels),bufferize,run-together{machine="threads=1"}' | filecheck %s --check-prefix=ALONE
// RUN: %stepwell-opt %s -p 'through(kernels),bufferize,run-together,plan-memory' | filecheck %s --check-prefix=ARENA

// ALONE-NOT: kernel.concurrent

// Two chains of small products run side by side, in whatever order they were written.
// CHECK-LABEL: func.func @chains
// CHECK:         kernel.concurrent {
// CHECK-NEXT:      kernel.launch @chains_matmul ins(%a, %b {{.*}}) outs(%[[A:.*]] :
// CHECK-NEXT:      kernel.launch @chains_matmul ins(%[[A]], %b {{.*}}
// CHECK-NEXT:      kernel.launch @chains_matmul
// CHECK-NEXT:    } and {
// CHECK-NEXT:      kernel.launch @chains_matmul ins(%c, %b
// CHECK-NEXT:      kernel.launch @chains_matmul
// CHECK-NEXT:      kernel.launch @chains_matmul
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return

// No temporary of one branch lies in the memory of another's.
// ARENA-LABEL: func.func @chains
// ARENA-SAME:    kernel.arena_bytes = 65536
func.func @chains(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>, %c: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %a1 = nd.matmul %a, %b : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %a2 = nd.matmul %a1, %b : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %c1 = nd.matmul %c, %b : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %c2 = nd.matmul %c1, %b : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %a3 = nd.matmul %a2, %b : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %c3 = nd.matmul %c2, %b : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %a3, %c3 : tensor<64x64xf32>, tensor<64x64xf32>
}

// A chain whose parts need each other stays as it is, and so do kernels that are large enough.
// CHECK-LABEL: func.func @chain
// CHECK-NOT:     kernel.concurrent
func.func @chain(%a: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %a1 = nd.matmul %a, %a : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %a2 = nd.matmul %a1, %a : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %a3 = nd.matmul %a2, %a1 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %a3 : tensor<64x64xf32>
}

func.func @large(%a: tensor<512x512xf32>, %b: tensor<512x512xf32>) -> (tensor<512x512xf32>, tensor<512x512xf32>) {
  %x = nd.matmul %a, %a : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %y = nd.matmul %b, %b : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  func.return %x, %y : tensor<512x512xf32>, tensor<512x512xf32>
}
