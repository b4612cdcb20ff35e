// RUN: %stepwell-opt %s | %stepwell-opt --print-op-generic | %stepwell-opt | filecheck %s

// A choice; regions may use what is outside.
func.func @if(%c: tensor<i1>, %x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %r, %s = nd.if %c -> tensor<?xf32>, tensor<i1> {
    nd.yield %x, %c : tensor<?xf32>, tensor<i1>
  } else {
    nd.yield %y, %c : tensor<?xf32>, tensor<i1>
  }
  nd.if %c {
    nd.yield
  } else {
    nd.yield
  }
  func.return %r : tensor<?xf32>
}
// CHECK-LABEL: @if
// CHECK-NEXT:   %r, %s = nd.if %c -> tensor<?xf32>, tensor<i1> {
// CHECK-NEXT:     nd.yield %x, %c : tensor<?xf32>, tensor<i1>
// CHECK-NEXT:   } else {
// CHECK-NEXT:     nd.yield %y, %c : tensor<?xf32>, tensor<i1>
// CHECK-NEXT:   }
// CHECK-NEXT:   nd.if %c {

// A loop: the test sees the carried values, then the body does, under names of its own.
func.func @while(%n: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %i, %r = nd.while (%go = %n, %a = %x) : tensor<i1>, tensor<4xf32> {
    nd.condition %go
  } do (%gone, %b) {
    nd.yield %gone, %b : tensor<i1>, tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}
// CHECK-LABEL: @while
// CHECK-NEXT:   %i, %r = nd.while (%go = %n, %a = %x) : tensor<i1>, tensor<4xf32> {
// CHECK-NEXT:     nd.condition %go
// CHECK-NEXT:   } do (%gone, %b) {
// CHECK-NEXT:     nd.yield %gone, %b : tensor<i1>, tensor<4xf32>
// CHECK-NEXT:   }

// A scan: carried values, slices of what it runs over, results that are stacked.
func.func @scan(%c: tensor<f32>, %xs: tensor<?x3xf32>, %n: index) {
  %last, %ys = nd.scan (%s = %c) over (%x = %xs) {reverse} : (tensor<f32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<?x3xf32>) {
    nd.yield %s, %x : tensor<f32>, tensor<3xf32>
  }
  %seven = nd.scan (%s2 = %c) {length = 7} : (tensor<f32>) -> tensor<f32> {
    nd.yield %s2 : tensor<f32>
  }
  %all = nd.scan () length(%n) sizes(%n) : () -> tensor<?x?x3xf32> {
    nd.yield %xs : tensor<?x3xf32>
  }
  func.return
}
// CHECK-LABEL: @scan
// CHECK-NEXT:   %last, %ys = nd.scan (%s = %c) over (%x = %xs) {reverse} : (tensor<f32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<?x3xf32>) {
// CHECK-NEXT:     nd.yield %s, %x : tensor<f32>, tensor<3xf32>
// CHECK-NEXT:   }
// CHECK-NEXT:   %seven = nd.scan (%s2 = %c) {length = 7} : (tensor<f32>) -> tensor<f32> {
// CHECK:        %all = nd.scan () length(%n) sizes(%n) : () -> tensor<?x?x3xf32> {

func.func @call(%c: tensor<i1>, %x: tensor<?xf32>) -> tensor<?xf32> {
  %y = nd.call @if(%c, %x, %x) : (tensor<i1>, tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}
// CHECK-LABEL: @call
// CHECK-NEXT:   %y = nd.call @if(%c, %x, %x) : (tensor<i1>, tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
