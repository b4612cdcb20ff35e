// RUN: %stepwell-opt %s -p bufferize --verify-diagnostics

// A loop carries buffers, whose sizes stay.
func.func @main(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  // expected-error@+1 {{a tensor changes its size from one iteration to the next}}
  %y = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (tensor<?xf32>) {
    %size = tensor.dim %a, %zero : tensor<?xf32>
    %less = arith.subi %size, %one : index
    %b = tensor.extract_slice %a[1] [%less] [1] : tensor<?xf32> to tensor<?xf32>
    scf.yield %b : tensor<?xf32>
  }
  func.return %y : tensor<?xf32>
}
