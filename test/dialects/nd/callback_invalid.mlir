// RUN: %stepwell-opt %s --split-input-file --verify-diagnostics

// callback_c1
func.func @sizes(%x: tensor<?xf64>) {
  // expected-error@+1 {{arguments and results of a callback must have known sizes}}
  nd.callback(%x) {name = "f#0"} : (tensor<?xf64>) -> ()
  func.return
}

// -----

// kernel_callback_c1
func.func @floors(%x: memref<3xf64>) {
  // expected-error@+1 {{it is on tensors, or on buffers}}
  %y = kernel.callback "f#0" ins(%x : memref<3xf64>) -> tensor<3xf64>
  func.return
}
