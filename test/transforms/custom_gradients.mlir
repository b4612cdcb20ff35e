// RUN: %stepwell-opt %s -p expand-transformations,cse | filecheck %s

// The rule's first part takes the place of the function, the second one stands in the backward pass.
// CHECK-LABEL: @vjp
// CHECK-NEXT: %y = nd.sin %x
// CHECK-NEXT: %k = nd.cos %x
// CHECK-NEXT: %d = nd.mul %g, %k
// CHECK-NEXT: func.return %y, %d
func.func @vjp(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %y, %d = nd.vjp (%v = %x) cotangents(%g : tensor<4xf32>) {wrt = [0], of = [0]} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %r = nd.custom_vjp (%a = %v) : (tensor<4xf32>) -> tensor<4xf32> {
      %s = nd.exp %a : tensor<4xf32>
      nd.yield %s : tensor<4xf32>
    } forward {
    ^bb0(%a: tensor<4xf32>):
      %s = nd.sin %a : tensor<4xf32>
      %k = nd.cos %a : tensor<4xf32>
      nd.yield %s, %k : tensor<4xf32>, tensor<4xf32>
    } backward {
    ^bb0(%k: tensor<4xf32>, %c: tensor<4xf32>):
      %m = nd.mul %c, %k : tensor<4xf32>
      nd.yield %m : tensor<4xf32>
    }
    nd.yield %r : tensor<4xf32>
  }
  func.return %y, %d : tensor<4xf32>, tensor<4xf32>
}

// The linear part of a rule forward is transposed.
// CHECK-LABEL: @jvp
// CHECK-NEXT: %y = nd.sin %x
// CHECK-NEXT: %k = nd.cos %x
// CHECK-NEXT: %d = nd.mul %g, %k
// CHECK-NEXT: func.return %y, %d
func.func @jvp(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %y, %d = nd.vjp (%v = %x) cotangents(%g : tensor<4xf32>) {wrt = [0], of = [0]} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %r = nd.custom_jvp (%a = %v) : (tensor<4xf32>) -> tensor<4xf32> {
      %s = nd.exp %a : tensor<4xf32>
      nd.yield %s : tensor<4xf32>
    } tangents {
    ^bb0(%a: tensor<4xf32>, %t: tensor<4xf32>):
      %s = nd.sin %a : tensor<4xf32>
      %k = nd.cos %a : tensor<4xf32>
      %m = nd.mul %t, %k : tensor<4xf32>
      nd.yield %s, %m : tensor<4xf32>, tensor<4xf32>
    }
    nd.yield %r : tensor<4xf32>
  }
  func.return %y, %d : tensor<4xf32>, tensor<4xf32>
}

// What a checkpoint computes again is not merged with what it computed first; with merged it is.
// CHECK-LABEL: @again
// CHECK: nd.exp %x
// CHECK: nd.exp %x
// CHECK: func.return
// CHECK-LABEL: @merged
// CHECK: nd.exp %x
// CHECK-NOT: nd.exp %x
// CHECK: func.return
func.func @again(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %y, %d = nd.vjp (%v = %x) cotangents(%g : tensor<4xf32>) {wrt = [0], of = [0]} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %r = nd.checkpoint (%a = %v) : (tensor<4xf32>) -> tensor<4xf32> {
      %e = nd.exp %a : tensor<4xf32>
      %s = nd.sin %e : tensor<4xf32>
      nd.yield %s : tensor<4xf32>
    }
    nd.yield %r : tensor<4xf32>
  }
  func.return %y, %d : tensor<4xf32>, tensor<4xf32>
}
func.func @merged(%x: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %y, %d = nd.vjp (%v = %x) cotangents(%g : tensor<4xf32>) {wrt = [0], of = [0]} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %r = nd.checkpoint (%a = %v) {merged} : (tensor<4xf32>) -> tensor<4xf32> {
      %e = nd.exp %a : tensor<4xf32>
      %s = nd.sin %e : tensor<4xf32>
      nd.yield %s : tensor<4xf32>
    }
    nd.yield %r : tensor<4xf32>
  }
  func.return %y, %d : tensor<4xf32>, tensor<4xf32>
}

// What a policy keeps is computed once, and so is what has an effect.
// CHECK-LABEL: @kept
// CHECK: nd.dot_general %x, %w
// CHECK: nd.tanh
// CHECK-NOT: nd.dot_general %x, %w
// CHECK: nd.tanh
// CHECK: func.return
func.func @kept(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>, %g: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %y, %d = nd.vjp (%v = %x) cotangents(%g : tensor<4x4xf32>) {wrt = [0], of = [0]} : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
    %r = nd.checkpoint (%a = %v) {policy = "dots_without_batch"} : (tensor<4x4xf32>) -> tensor<4x4xf32> {
      %p = nd.matmul %a, %w : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %t = nd.tanh %p : tensor<4x4xf32>
      %s = nd.sin %t : tensor<4x4xf32>
      nd.yield %s : tensor<4x4xf32>
    }
    nd.yield %r : tensor<4x4xf32>
  }
  func.return %y, %d : tensor<4x4xf32>, tensor<4x4xf32>
}

// An exact rule makes the derivative that the body has: forward mode goes through the body.
// CHECK-LABEL: @exact
// CHECK: nd.exp
// CHECK: nd.mul
// CHECK-NOT: nd.neg
// CHECK: func.return
func.func @exact(%x: tensor<4xf32>, %t: tensor<4xf32>) -> tensor<4xf32> {
  %y, %d = nd.jvp (%v = %x) tangents(%t : tensor<4xf32>) {wrt = [0], of = [0]} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %r = nd.custom_vjp (%a = %v) {exact} : (tensor<4xf32>) -> tensor<4xf32> {
      %e = nd.exp %a : tensor<4xf32>
      nd.yield %e : tensor<4xf32>
    } forward {
    ^bb0(%a: tensor<4xf32>):
      %e = nd.exp %a : tensor<4xf32>
      nd.yield %e, %e : tensor<4xf32>, tensor<4xf32>
    } backward {
    ^bb0(%k: tensor<4xf32>, %g: tensor<4xf32>):
      %n = nd.neg %k : tensor<4xf32>
      %s = nd.mul %n, %g : tensor<4xf32>
      nd.yield %s : tensor<4xf32>
    }
    nd.yield %r : tensor<4xf32>
  }
  func.return %d : tensor<4xf32>
}
