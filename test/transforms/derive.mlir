// RUN: %stepwell-opt %s -p 'vjp{function=loss wrt=0},jvp{function=loss}' | filecheck %s
// RUN: %stepwell-opt %s -p 'vjp{function=calls}' | filecheck %s --check-prefix CALLS
// RUN: %stepwell-opt %s --check -p 'vjp{function=loss},jvp{function=loss},decompose,canonicalize' 2>&1 | filecheck %s --check-prefix CHECKED
// CHECKED-NOT: not compared

// Arguments, then cotangents of results; results, then cotangents of arguments.
// CHECK-LABEL: func.func @loss_jvp(%w: tensor<3xf64>, %x: tensor<3xf64>, %t_w: tensor<3xf64>, %t_x: tensor<3xf64>) -> (tensor<f64>, tensor<f64>) {
// CHECK: %t_p = nd.add
// CHECK: func.return %y, %t_y
// CHECK-LABEL: func.func @loss_vjp(%w: tensor<3xf64>, %x: tensor<3xf64>, %d_y: tensor<f64>) -> (tensor<f64>, tensor<3xf64>) {
// CHECK-NEXT: %p = nd.mul %w, %x
// CHECK-NEXT: %y = nd.reduce_sum %p
// CHECK-NEXT: %d_p = nd.broadcast %d_y
// CHECK-NEXT: %d_w = nd.mul %d_p, %x
// CHECK-NEXT: func.return %y, %d_w
func.func @loss(%w: tensor<3xf64>, %x: tensor<3xf64>) -> tensor<f64> {
  %p = nd.mul %w, %x : tensor<3xf64>
  %y = nd.reduce_sum %p {axes = [0]} : tensor<3xf64> -> tensor<f64>
  func.return %y : tensor<f64>
}

// A function that is called twice is differentiated once.
// CALLS-LABEL: func.func @calls_vjp(
// CALLS: %[[A:.*]] = nd.call @g_vjp_0_of_0(
// CALLS-NEXT: %d_x = nd.call @g_vjp_0_of_0(
// CALLS-LABEL: func.func private @g_vjp_0_of_0(%x: tensor<f64>, %d_y: tensor<f64>) -> tensor<f64> {
// CALLS-NEXT: nd.cos
// CALLS-NOT: @g_vjp_0_of_0
func.func @calls(%x: tensor<f64>) -> tensor<f64> {
  %a = nd.call @g(%x) : (tensor<f64>) -> tensor<f64>
  %b = nd.call @g(%a) : (tensor<f64>) -> tensor<f64>
  func.return %b : tensor<f64>
}
func.func private @g(%x: tensor<f64>) -> tensor<f64> {
  %y = nd.sin %x : tensor<f64>
  func.return %y : tensor<f64>
}
