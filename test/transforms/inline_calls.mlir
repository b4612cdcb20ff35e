// RUN: %stepwell-opt %s -p inline-calls --split-input-file --verify-diagnostics | filecheck %s

// Called before or after its definition, from a region, through another function: all is inlined,
// and private functions that nothing calls any more are gone.
func.func @main(%c: tensor<i1>, %a: tensor<4xf32>) -> tensor<4xf32> {
  %b = nd.if %c -> tensor<4xf32> {
    %r = nd.call @twice(%a) : (tensor<4xf32>) -> tensor<4xf32>
    nd.yield %r : tensor<4xf32>
  } else {
    %s = func.call @four_times(%a) : (tensor<4xf32>) -> tensor<4xf32>
    nd.yield %s : tensor<4xf32>
  }
  func.return %b : tensor<4xf32>
}
func.func private @four_times(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = nd.call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %z = nd.call @twice(%y) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %z : tensor<4xf32>
}
func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = nd.add %x, %x : tensor<4xf32>
  func.return %y : tensor<4xf32>
}
// CHECK-LABEL: @main
// CHECK-NEXT:   %b = nd.if %c -> tensor<4xf32> {
// CHECK-NEXT:     %r = nd.add %a, %a : tensor<4xf32>
// CHECK-NEXT:     nd.yield %r : tensor<4xf32>
// CHECK-NEXT:   } else {
// CHECK-NEXT:     %y = nd.add %a, %a : tensor<4xf32>
// CHECK-NEXT:     %s = nd.add %y, %y : tensor<4xf32>
// CHECK-NEXT:     nd.yield %s : tensor<4xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   func.return %b : tensor<4xf32>
// CHECK-NEXT: }
// CHECK-NOT:  func.func private

// -----

// A result that is an argument is what was passed. Public functions and declarations stay.
func.func @swap(%x: tensor<f32>, %y: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  func.return %y, %x : tensor<f32>, tensor<f32>
}
func.func private @elsewhere(tensor<f32>) -> tensor<f32>
func.func @uses(%a: tensor<f32>, %b: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %c, %d = nd.call @swap(%a, %b) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  %e = nd.call @elsewhere(%d) : (tensor<f32>) -> tensor<f32>
  func.return %c, %e : tensor<f32>, tensor<f32>
}
// CHECK:      func.func @swap
// CHECK:      func.func private @elsewhere
// CHECK:      func.func @uses
// CHECK-NEXT:   %e = nd.call @elsewhere(%a) : (tensor<f32>) -> tensor<f32>
// CHECK-NEXT:   func.return %b, %e : tensor<f32>, tensor<f32>

// -----

func.func private @even(%x: tensor<f32>) -> tensor<f32> {
  %y = nd.call @odd(%x) : (tensor<f32>) -> tensor<f32>
  func.return %y : tensor<f32>
}
func.func private @odd(%x: tensor<f32>) -> tensor<f32> {
  // expected-error@+1 {{recursion: @even calls @odd calls @even}}
  %y = nd.call @even(%x) : (tensor<f32>) -> tensor<f32>
  func.return %y : tensor<f32>
}
