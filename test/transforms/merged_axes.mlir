// RUN: %stepwell-opt %s -p canonicalize --check | filecheck %s
// RUN: %stepwell-opt %s -p 'through(kernels)' | filecheck %s --check-prefix=KERNELS

// A group norm: the scale of each channel is applied before the axes of groups are merged, so that
// mean, distance from it and scale are one kernel.
func.func @group_norm(%x: tensor<?x6x5xf32>, %s: tensor<6xf32>) -> tensor<?x6x5xf32> {
  %n = nd.dim %x {axis = 0} : tensor<?x6x5xf32>
  %g = nd.reshape %x : tensor<?x6x5xf32> -> tensor<?x2x3x5xf32>
  %m = nd.mean %g {axes = [2, 3]} : tensor<?x2x3x5xf32> -> tensor<?x2xf32>
  %w = nd.broadcast %m {dims = [0, 1]} : tensor<?x2xf32> -> tensor<?x2x3x5xf32>
  %d = nd.sub %g, %w : tensor<?x2x3x5xf32>
  %r = nd.reshape %d : tensor<?x2x3x5xf32> -> tensor<?x6x5xf32>
  %b = nd.broadcast %s, sizes(%n) {dims = [1]} : tensor<6xf32> -> tensor<?x6x5xf32>
  %y = nd.mul %r, %b : tensor<?x6x5xf32>
  %t = nd.tanh %y : tensor<?x6x5xf32>
  func.return %t : tensor<?x6x5xf32>
}
// CHECK-LABEL: @group_norm(
//       CHECK:   %d = nd.sub %g, %w : tensor<?x2x3x5xf32>
//       CHECK:   %[[S:.*]] = nd.reshape %s : tensor<6xf32> -> tensor<2x3xf32>
//       CHECK:   %[[B:.*]] = nd.broadcast %[[S]], sizes(%n) {dims = [1, 2]} : tensor<2x3xf32> -> tensor<?x2x3x5xf32>
//       CHECK:   %y = nd.mul %d, %[[B]] : tensor<?x2x3x5xf32>
//       CHECK:   %t = nd.tanh %y : tensor<?x2x3x5xf32>
//       CHECK:   nd.reshape %t : tensor<?x2x3x5xf32> -> tensor<?x6x5xf32>
//
// KERNELS-LABEL: func.func @group_norm(
//       KERNELS:   kernel.launch
//   KERNELS-NOT:   kernel.launch
//       KERNELS:   func.return

// Not so where nothing was broadcast before, where what is needed beside it is computed, where axes
// are split and not merged, or where rows would be short.
func.func @others(%x: tensor<4x16xf32>, %a: tensor<64x3xf32>, %c: tensor<4xf32>, %s: tensor<2xf32>, %z: tensor<4x6xf32>)
    -> (tensor<64xf32>, tensor<64xf32>, tensor<4x8x2xf32>, tensor<24xf32>) {
  %e = nd.exp %x : tensor<4x16xf32>
  %p = nd.reshape %e : tensor<4x16xf32> -> tensor<64xf32>
  %f = nd.neg %p : tensor<64xf32>
  %m = nd.broadcast %c {dims = [0]} : tensor<4xf32> -> tensor<4x16xf32>
  %d = nd.sub %x, %m : tensor<4x16xf32>
  %q = nd.reshape %d : tensor<4x16xf32> -> tensor<64xf32>
  %v = nd.reduce_sum %a {axes = [1]} : tensor<64x3xf32> -> tensor<64xf32>
  %g = nd.add %q, %v : tensor<64xf32>
  %k = nd.div %x, %m : tensor<4x16xf32>
  %r = nd.reshape %k : tensor<4x16xf32> -> tensor<4x8x2xf32>
  %w = nd.broadcast %s {dims = [2]} : tensor<2xf32> -> tensor<4x8x2xf32>
  %h = nd.mul %r, %w : tensor<4x8x2xf32>
  %l = nd.broadcast %c {dims = [0]} : tensor<4xf32> -> tensor<4x6xf32>
  %o = nd.sub %z, %l : tensor<4x6xf32>
  %t = nd.reshape %o : tensor<4x6xf32> -> tensor<24xf32>
  %i = nd.neg %t : tensor<24xf32>
  func.return %f, %g, %h, %i : tensor<64xf32>, tensor<64xf32>, tensor<4x8x2xf32>, tensor<24xf32>
}
// CHECK-LABEL: @others(
//       CHECK:   %f = nd.neg %p : tensor<64xf32>
//       CHECK:   %g = nd.add %q, %v : tensor<64xf32>
//       CHECK:   %h = nd.mul %r, %w : tensor<4x8x2xf32>
//       CHECK:   %i = nd.neg %t : tensor<24xf32>
