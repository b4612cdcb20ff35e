// RUN: not %stepwell-opt %s -p 'vjp{function=less}' 2>&1 | filecheck %s
// RUN: not %stepwell-opt %s -p 'vjp{function=loss wrt=1}' 2>&1 | filecheck %s --check-prefix INTEGER
// RUN: not %stepwell-opt %s -p 'jvp{function=loss wrt=7}' 2>&1 | filecheck %s --check-prefix NONE
// RUN: not %stepwell-opt %s -p 'vjp{function=place}' 2>&1 | filecheck %s --check-prefix PLACE
// RUN: not %stepwell-opt %s -p vjp 2>&1 | filecheck %s --check-prefix WHICH

// CHECK: error: there is no function @less to differentiate
// CHECK-NEXT: help: did you mean 'loss'?
// INTEGER: derive_invalid.mlir:16:1: error: argument 1 of @loss is tensor<3xi32>, which has no derivative
// INTEGER: help: only tensors of floats have one
// NONE: error: @loss has no argument 7
// NONE: help: it has 2, counted from 0
// PLACE: error: @place has no result with a derivative: none is a tensor of floats
// WHICH: help: say which: vjp{function=NAME}; there is loss, place

func.func @loss(%w: tensor<3xf64>, %n: tensor<3xi32>) -> tensor<3xf64> {
  func.return %w : tensor<3xf64>
}
func.func @place(%w: tensor<3xf64>) -> tensor<i64> {
  %y = nd.argmax %w {axis = 0} : tensor<3xf64> -> tensor<i64>
  func.return %y : tensor<i64>
}
