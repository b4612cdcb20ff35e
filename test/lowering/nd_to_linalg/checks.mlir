// RUN: %stepwell-opt %s -p nd-to-linalg | filecheck %s
// RUN: %stepwell-opt %s -p nd-to-linalg | %stepwell-opt --print-op-generic | %stepwell-opt | filecheck %s
// RUN: %stepwell-opt %s --check -p 'nd-to-linalg,canonicalize,cse,fuse-elementwise,outline-kernels,schedule,bufferize,canonicalize,cse,plan-memory,linalg-to-loops,canonicalize,cse' | filecheck %s --check-prefix=LOOPS

// The host reads the condition and the numbers of the message where the check stands.
func.func @check(%x: tensor<8xf64>, %i: tensor<i64>) -> tensor<f64> {
  %eight = nd.full 8 : tensor<i64>
  %ok = nd.lt %i, %eight : tensor<i64> -> tensor<i1>
  nd.check %ok, %i : tensor<i64> {kind = "IndexError", words = ["index ", " is too large"]}
  %y = nd.gather %x, indices(%i) {axes = [0]} : (tensor<8xf64>, tensor<i64>) -> tensor<f64>
  func.return %y : tensor<f64>
}
// CHECK-LABEL: @check
// CHECK:         %[[OK:.*]] = tensor.extract %ok[] : tensor<i1>
// CHECK-NEXT:    %[[I:.*]] = tensor.extract %i[] : tensor<i64>
// CHECK-NEXT:    kernel.check %[[OK]], %[[I]] : i64 {kind = "IndexError", words = ["index ", " is too large"]}

// It comes before the kernel of what stands after it.
// LOOPS-LABEL: func.func @check
// LOOPS:         kernel.launch
// LOOPS:         kernel.check
// LOOPS:         kernel.launch
