// RUN: %stepwell-opt %s -p expand-transformations --remarks 2>&1 | filecheck %s

// What follows by cheap ops from what is at hand is not kept: %p is, and the sine of it is not.
// CHECK: remark: the backward pass keeps nothing of the forward pass
// CHECK: remark: the backward pass keeps 1 value of the forward pass, 32 bytes: %p tensor<4xf64>
func.func @f(%a: tensor<4x3xf64>, %w: tensor<3xf64>, %g: tensor<4xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %y, %dw = nd.vjp (%v = %w) cotangents(%g : tensor<4xf64>) {wrt = [0], of = [0]} : (tensor<3xf64>) -> (tensor<4xf64>, tensor<3xf64>) {
    %p = nd.dot_general %a, %v contract [1] x [0] : (tensor<4x3xf64>, tensor<3xf64>) -> tensor<4xf64>
    %s = nd.sin %p : tensor<4xf64>
    %t = nd.tanh %s : tensor<4xf64>
    nd.yield %t : tensor<4xf64>
  }
  %z, %dz = nd.vjp (%v = %w) cotangents(%w : tensor<3xf64>) {wrt = [0], of = [0]} : (tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
    %s = nd.sin %v : tensor<3xf64>
    nd.yield %s : tensor<3xf64>
  }
  func.return %dw, %dz : tensor<3xf64>, tensor<3xf64>
}
