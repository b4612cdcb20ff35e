// RUN: %stepwell-opt %s | %stepwell-opt | filecheck %s
// RUN: %stepwell-opt %s --print-op-generic | %stepwell-opt | filecheck %s

// One type is written for all operands and the result; another for a result of other elements.
func.func @elementwise(%x: tensor<?x4xf32>, %c: tensor<?x4xi1>, %i: tensor<4xui8>) {
  %a = nd.neg %x : tensor<?x4xf32>
  %b = nd.add %x, %a {note = "kept"} : tensor<?x4xf32>
  %d = nd.fma %x, %a, %b : tensor<?x4xf32>
  %e = nd.clamp %x, %a, %b : tensor<?x4xf32>
  %f = nd.lt %x, %a : tensor<?x4xf32> -> tensor<?x4xi1>
  %g = nd.isnan %x : tensor<?x4xf32> -> tensor<?x4xi1>
  %h = nd.select %c, %x, %a : tensor<?x4xf32>
  %j = nd.cast %x : tensor<?x4xf32> -> tensor<?x4xbf16>
  %k = nd.bitcast %i : tensor<4xui8> -> tensor<4xi8>
  func.return
}
// CHECK-LABEL: @elementwise(
//  CHECK-NEXT:   %a = nd.neg %x : tensor<?x4xf32>
//  CHECK-NEXT:   %b = nd.add %x, %a {note = "kept"} : tensor<?x4xf32>
//  CHECK-NEXT:   %d = nd.fma %x, %a, %b : tensor<?x4xf32>
//  CHECK-NEXT:   %e = nd.clamp %x, %a, %b : tensor<?x4xf32>
//  CHECK-NEXT:   %f = nd.lt %x, %a : tensor<?x4xf32> -> tensor<?x4xi1>
//  CHECK-NEXT:   %g = nd.isnan %x : tensor<?x4xf32> -> tensor<?x4xi1>
//  CHECK-NEXT:   %h = nd.select %c, %x, %a : tensor<?x4xf32>
//  CHECK-NEXT:   %j = nd.cast %x : tensor<?x4xf32> -> tensor<?x4xbf16>
//  CHECK-NEXT:   %k = nd.bitcast %i : tensor<4xui8> -> tensor<4xi8>

// A value is written as its type has it: hex digits are the bits of a float.
func.func @creation(%n: index, %key: tensor<2xui32>, %start: tensor<ui64>) {
  %a = nd.constant dense<[1, 200]> : tensor<2xui8>
  %b = nd.constant #nd.resource<"weight", "9f86"> : tensor<64x10xf32>
  %c = nd.full 1.5, sizes(%n) : tensor<?x4xf32>
  %d = nd.full 0x7FC0 : tensor<4xbf16>
  %e = nd.full true : tensor<i1>
  %f = nd.full 255 : tensor<4xui8>
  %g = nd.iota {axis = 1} : tensor<4x8xi32>
  %h = nd.iota sizes(%n) {axis = 0} : tensor<?x8xf16>
  %i = nd.random_bits %key, %start, sizes(%n) : tensor<?xui64>
  func.return
}
// CHECK-LABEL: @creation(
//  CHECK-NEXT:   %a = nd.constant dense<[1, 200]> : tensor<2xui8>
//  CHECK-NEXT:   %b = nd.constant #nd.resource<"weight", "9f86"> : tensor<64x10xf32>
//  CHECK-NEXT:   %c = nd.full 1.500000e+00, sizes(%n) : tensor<?x4xf32>
//  CHECK-NEXT:   %d = nd.full 0x7fc0 : tensor<4xbf16>
//  CHECK-NEXT:   %e = nd.full true : tensor<i1>
//  CHECK-NEXT:   %f = nd.full 255 : tensor<4xui8>
//  CHECK-NEXT:   %g = nd.iota {axis = 1} : tensor<4x8xi32>
//  CHECK-NEXT:   %h = nd.iota sizes(%n) {axis = 0} : tensor<?x8xf16>
//  CHECK-NEXT:   %i = nd.random_bits %key, %start, sizes(%n) : tensor<?xui64>
