// RUN: %stepwell-opt %s -p "through(kernels)" | filecheck %s

// The gradients of a norm over rows: sums over many rows read them from end to end, apart from what uses the sums; and what both make of
// x, shift and scale is made in both, not kept.
// CHECK:       kernel.func @tall_add_sub_sum(
// CHECK-SAME:  #kernel.schedule<[parallel d1 into 64, for d1 by 8, for d0 by 32, unroll d1, unroll d0 by 16, vector d0 by 16]>
// CHECK-NOT:     tensor.empty() : tensor<8192x96xf32>
// CHECK:       kernel.func @tall_sub_mul(
// CHECK-SAME:  #kernel.schedule<[parallel d0 {grain 29}, for d1 by 32, unroll d1 by 16, vector d1 by 16]>
// CHECK-LABEL: func.func @tall
func.func @tall(%x: tensor<8192x96xf32>, %d: tensor<8192x96xf32>, %shift: tensor<96xf32>, %scale: tensor<96xf32>) -> (tensor<8192x96xf32>, tensor<96xf32>, tensor<96xf32>) {
  %m = nd.broadcast %shift {dims = [1]} : tensor<96xf32> -> tensor<8192x96xf32>
  %r = nd.broadcast %scale {dims = [1]} : tensor<96xf32> -> tensor<8192x96xf32>
  %c = nd.sub %x, %m : tensor<8192x96xf32>
  %h = nd.mul %c, %r : tensor<8192x96xf32>
  %hd = nd.mul %h, %d : tensor<8192x96xf32>
  %b = nd.reduce_sum %d {axes = [0]} : tensor<8192x96xf32> -> tensor<96xf32>
  %w = nd.reduce_sum %hd {axes = [0]} : tensor<8192x96xf32> -> tensor<96xf32>
  %bs = nd.broadcast %b {dims = [1]} : tensor<96xf32> -> tensor<8192x96xf32>
  %ws = nd.broadcast %w {dims = [1]} : tensor<96xf32> -> tensor<8192x96xf32>
  %hw = nd.mul %h, %ws : tensor<8192x96xf32>
  %e = nd.sub %d, %bs : tensor<8192x96xf32>
  %y = nd.sub %e, %hw : tensor<8192x96xf32>
  func.return %y, %w, %b : tensor<8192x96xf32>, tensor<96xf32>, tensor<96xf32>
}
