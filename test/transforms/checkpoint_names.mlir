// RUN: %stepwell-opt %s | %stepwell-opt | filecheck %s --check-prefix SPELLED
// RUN: %stepwell-opt %s -p expand-transformations --remarks 2>&1 | filecheck %s --check-prefix TOLD
// RUN: %stepwell-opt %s -p expand-transformations | filecheck %s

// What policies of checkpoints keep by name: here the first tanh of two.

// SPELLED: nd.checkpoint (%a = %v) {named = ["hidden"]}
// SPELLED: nd.checkpoint_name %t {called = "hidden"} : tensor<4xf32>
// SPELLED: nd.checkpoint (%a = %v) {policy = "everything", unnamed = ["hidden"]}

// TOLD: remark: beside its arguments the checkpoint keeps 1 value, 16 bytes: %s tensor<4xf32>
// TOLD: remark: beside its arguments the checkpoint keeps 1 value, 16 bytes: %t tensor<4xf32>

// CHECK-LABEL: @named
// CHECK: nd.exp
// CHECK-NOT: nd.exp
// CHECK: nd.tanh
// CHECK: func.return
func.func @named(%x: tensor<4xf32>, %g: tensor<4xf32>) -> tensor<4xf32> {
  %y, %d = nd.vjp (%v = %x) cotangents(%g : tensor<4xf32>) {wrt = [0], of = [0]} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %r = nd.checkpoint (%a = %v) {named = ["hidden"]} : (tensor<4xf32>) -> tensor<4xf32> {
      %t = nd.exp %a : tensor<4xf32>
      %h = nd.checkpoint_name %t {called = "hidden"} : tensor<4xf32>
      %s = nd.tanh %h : tensor<4xf32>
      nd.yield %s : tensor<4xf32>
    }
    nd.yield %r : tensor<4xf32>
  }
  func.return %d : tensor<4xf32>
}

// CHECK-LABEL: @unnamed
// CHECK: nd.exp
// CHECK: nd.tanh
// CHECK: nd.exp
// CHECK-NOT: nd.tanh
// CHECK: func.return
func.func @unnamed(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %y, %d = nd.vjp (%v = %x) cotangents(%g : tensor<4xf32>) {wrt = [0], of = [0]} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %r = nd.checkpoint (%a = %v) {policy = "everything", unnamed = ["hidden"]} : (tensor<4xf32>) -> tensor<4xf32> {
      %t = nd.exp %a : tensor<4xf32>
      %h = nd.checkpoint_name %t {called = "hidden"} : tensor<4xf32>
      %s = nd.tanh %h : tensor<4xf32>
      nd.yield %s : tensor<4xf32>
    }
    nd.yield %r : tensor<4xf32>
  }
  func.return %y, %d : tensor<4xf32>, tensor<4xf32>
}
