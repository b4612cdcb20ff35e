// RUN: %stepwell-opt %s -p split-derivatives | filecheck %s
// RUN: %stepwell-opt %s -p split-derivatives --remarks 2>&1 | filecheck %s --check-prefix TOLD

// TOLD: remark: the second program is passed 1 value, 16 bytes: %y tensor<4xf32>
// TOLD: remark: the second program is passed nothing

// The derivative is made of the result, not of the argument.
// CHECK: func.func @before(%x: tensor<4xf32>) -> (tensor<4xf32> {nd.name = "y"}, tensor<4xf32>) {
// CHECK-NEXT: %y = nd.exp %x : tensor<4xf32>
// CHECK-NEXT: func.return %y, %y : tensor<4xf32>, tensor<4xf32>
func.func @before(%x: tensor<4xf32>, %d_y: tensor<4xf32>) -> (tensor<4xf32> {nd.name = "y"}, tensor<4xf32>) attributes {nd.part = "before", nd.later = [1, 1]} {
  %y = nd.exp %x : tensor<4xf32>
  %d_x = nd.mul %d_y, %y : tensor<4xf32>
  func.return %y, %d_x : tensor<4xf32>, tensor<4xf32>
}

// CHECK: func.func @after(%y: tensor<4xf32>, %d_y: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT: %d_x = nd.mul %d_y, %y : tensor<4xf32>
// CHECK-NEXT: func.return %d_x : tensor<4xf32>
func.func @after(%x: tensor<4xf32>, %d_y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {nd.part = "after", nd.later = [1, 1]} {
  %y = nd.exp %x : tensor<4xf32>
  %d_x = nd.mul %d_y, %y : tensor<4xf32>
  func.return %y, %d_x : tensor<4xf32>, tensor<4xf32>
}

// A mask of 4 bytes is handed on, and what is cheap is made of it again. A product is not done twice.
// CHECK: func.func @cheap(%p: tensor<4xf32>, %c: tensor<4xi1>, %g: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT: %f = nd.cast %c
// CHECK-NOT: nd.dot_general
func.func @cheap(%x: tensor<4x3xf32>, %w: tensor<3xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {nd.part = "after", nd.later = [1, 1]} {
  %p = nd.dot_general %x, %w contract [1] x [0] : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4xf32>
  %q = nd.dot_general %x, %x batch [0] x [0] contract [1] x [1] : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4xf32>
  %c = nd.lt %p, %q : tensor<4xf32> -> tensor<4xi1>
  %f = nd.cast %c : tensor<4xi1> -> tensor<4xf32>
  %u = nd.mul %f, %g : tensor<4xf32>
  %s = nd.mul %u, %p : tensor<4xf32>
  func.return %p, %s : tensor<4xf32>, tensor<4xf32>
}

// What needs nothing of before.
// CHECK: func.func @linear(%x: tensor<4xf32>) -> tensor<4xf32> {
func.func @linear(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {nd.part = "before", nd.later = [1, 1]} {
  %y = nd.neg %x : tensor<4xf32>
  %d = nd.neg %g : tensor<4xf32>
  func.return %y, %d : tensor<4xf32>, tensor<4xf32>
}
