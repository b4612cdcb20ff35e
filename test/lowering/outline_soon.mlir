// RUN: %stepwell-opt %s -p decompose,nd-to-linalg,canonicalize,fuse-elementwise,outline-kernels | filecheck %s

// The update of a parameter, written last, runs behind its gradient, but not before others have read the parameter.
// CHECK-LABEL: func.func @behind(
// CHECK:         %d_h = kernel.launch @behind_matmul ins(%g, %w1
// CHECK:         %new1 = kernel.launch @behind_matmul_mul_sub ins(%h, %g, %rate, %w1
// CHECK:         %d_x = kernel.launch @behind_matmul_1 ins(%d_h, %w0
// CHECK:         %new0 = kernel.launch @behind_{{.*}} ins(%d_x, %w0
// CHECK:         func.return %new0, %new1
func.func @behind(%w1: tensor<96x80xf32>, %w0: tensor<128x96xf32>, %h: tensor<64x96xf32>, %g: tensor<64x80xf32>, %rate: tensor<96x80xf32>) -> (tensor<64x96xf32>, tensor<96x80xf32> {nd.into = 0}) {
  %d_w = nd.dot_general %h, %g contract [0] x [0] : (tensor<64x96xf32>, tensor<64x80xf32>) -> tensor<96x80xf32>
  %d_h = nd.dot_general %g, %w1 contract [1] x [1] : (tensor<64x80xf32>, tensor<96x80xf32>) -> tensor<64x96xf32>
  %d_x = nd.dot_general %d_h, %w0 contract [1] x [1] : (tensor<64x96xf32>, tensor<128x96xf32>) -> tensor<64x128xf32>
  %new0 = nd.dot_general %d_x, %w0 contract [1] x [0] : (tensor<64x128xf32>, tensor<128x96xf32>) -> tensor<64x96xf32>
  %step = nd.mul %d_w, %rate : tensor<96x80xf32>
  %new1 = nd.sub %w1, %step : tensor<96x80xf32>
  func.return %new0, %new1 : tensor<64x96xf32>, tensor<96x80xf32>
}

// A number that two updates want is made by itself: neither has to wait for the other's gradient.
// CHECK-LABEL: func.func @apart(
// CHECK:         %{{.*}}, %rate = kernel.launch @apart_add_div ins(%count
// CHECK:         %new_a = kernel.launch @apart_sum_{{.*}} ins(%a
// CHECK:         %new_b = kernel.launch @apart_sum_{{.*}} ins(%b
// CHECK:         func.return
func.func @apart(%count: tensor<f32>, %a: tensor<512x64xf32>, %b: tensor<512x64xf32>, %p: tensor<64xf32>, %q: tensor<64xf32>) -> (tensor<f32> {nd.into = 0}, tensor<64xf32> {nd.into = 3}, tensor<64xf32> {nd.into = 4}) {
  %sum_a = nd.reduce_sum %a {axes = [0]} : tensor<512x64xf32> -> tensor<64xf32>
  %sum_b = nd.reduce_sum %b {axes = [0]} : tensor<512x64xf32> -> tensor<64xf32>
  %one = nd.full 1.0 : tensor<f32>
  %next = nd.add %count, %one : tensor<f32>
  %rate = nd.reciprocal %next : tensor<f32>
  %rates = nd.broadcast %rate {dims = []} : tensor<f32> -> tensor<64xf32>
  %step_a = nd.mul %sum_a, %rates : tensor<64xf32>
  %new_a = nd.sub %p, %step_a : tensor<64xf32>
  %step_b = nd.mul %sum_b, %rates : tensor<64xf32>
  %new_b = nd.sub %q, %step_b : tensor<64xf32>
  func.return %next, %new_a, %new_b : tensor<f32>, tensor<64xf32>, tensor<64xf32>
}

// What is laid out another way takes the place of what only it reads: it goes along.
// CHECK-LABEL: func.func @turned(
// CHECK:         %d_w = kernel.launch
// CHECK-NEXT:    tensor.empty
// CHECK-NEXT:    %turned = kernel.launch @turned_copy ins(%d_w
// CHECK:         %h = kernel.launch
// CHECK:         %new = kernel.launch @turned_mul_sub
func.func @turned(%x: tensor<64x96xf32>, %g: tensor<64x80xf32>, %w: tensor<80x96xf32>, %rate: tensor<80x96xf32>) -> (tensor<80x96xf32> {nd.into = 2}, tensor<64xf32>) {
  %d_w = nd.dot_general %x, %g contract [0] x [0] : (tensor<64x96xf32>, tensor<64x80xf32>) -> tensor<96x80xf32>
  %e = nd.dot_general %g, %w contract [1] x [0] : (tensor<64x80xf32>, tensor<80x96xf32>) -> tensor<64x96xf32>
  %h = nd.dot_general %e, %w contract [1] x [1] : (tensor<64x96xf32>, tensor<80x96xf32>) -> tensor<64x80xf32>
  %a = nd.exp %h : tensor<64x80xf32>
  %sum = nd.reduce_sum %a {axes = [1]} : tensor<64x80xf32> -> tensor<64xf32>
  %empty = tensor.empty() : tensor<80x96xf32>
  %turned = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%d_w : tensor<96x80xf32>) outs(%empty : tensor<80x96xf32>) attrs = {kernel.no_fuse} {
  ^bb0(%in: f32, %o: f32):
    linalg.yield %in : f32
  } -> tensor<80x96xf32>
  %step = nd.mul %turned, %rate : tensor<80x96xf32>
  %new = nd.sub %w, %step : tensor<80x96xf32>
  func.return %new, %sum : tensor<80x96xf32>, tensor<64xf32>
}
