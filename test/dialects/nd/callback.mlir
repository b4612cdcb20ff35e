// RUN: %stepwell-opt %s | %stepwell-opt --print-op-generic | %stepwell-opt | filecheck %s
// RUN: %stepwell-opt %s -p 'canonicalize,cse,dce' | filecheck %s
// RUN: %stepwell-opt %s --check -p 'nd-to-linalg,canonicalize,cse,fuse-elementwise,outline-kernels,schedule,bufferize,plan-memory,linalg-to-loops' | filecheck %s --check-prefix=LOOPS

// A Python function is called as often as it stands there.
func.func @main(%x: tensor<3xf64>) -> tensor<3xf64> {
  %a = nd.callback(%x) {name = "sorted#0"} : (tensor<3xf64>) -> tensor<3xf64>
  %b = nd.callback(%x) {name = "sorted#0"} : (tensor<3xf64>) -> tensor<3xf64>
  nd.callback() {name = "noted#0"} : () -> ()
  %y = nd.add %a, %x : tensor<3xf64>
  func.return %y : tensor<3xf64>
}
// CHECK-LABEL: @main
// CHECK-NEXT:    %a = nd.callback(%x) {name = "sorted#0"} : (tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT:    %b = nd.callback(%x) {name = "sorted#0"} : (tensor<3xf64>) -> tensor<3xf64>
// CHECK-NEXT:    nd.callback() {name = "noted#0"} : () -> ()

// LOOPS-LABEL: func.func @main
// LOOPS:         kernel.callback "sorted#0" ins(%x : memref<3xf64>) outs(%{{.*}} : memref<3xf64>)
// LOOPS:         kernel.callback "sorted#0" ins(%x : memref<3xf64>) outs(%{{.*}} : memref<3xf64>)
// LOOPS:         kernel.callback "noted#0"
// LOOPS:         kernel.launch
