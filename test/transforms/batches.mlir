// RUN: %stepwell-opt %s -p expand-transformations,canonicalize,cse | filecheck %s

// What differs from example to example decides: both branches run, the check looks at those that
// take the branch, and the loop goes on as long as any of these wants.
// CHECK-LABEL: @checked
// CHECK: %c = nd.gt %x, %{{.*}} : tensor<4xi64> -> tensor<4xi1>
// CHECK: %ok = nd.lt %x
// CHECK: %[[OUT:.*]] = nd.not %c
// CHECK: %[[HOLDS:.*]] = nd.or %ok, %[[OUT]]
// CHECK: %[[ALL:.*]] = nd.reduce_and %[[HOLDS]] {axes = [0]}
// CHECK: nd.check %[[ALL]], %{{.*}}, %t
// CHECK: %[[GO:.*]] = nd.and %c, %ok
// CHECK: nd.while (%going = %[[GO]], %a = %x)
// CHECK: nd.reduce_or %going {axes = [0]}
// CHECK: %b = nd.add
// CHECK: nd.select %going_1, %b, %a_1
// CHECK: %y = nd.select %c, %w, %x
func.func @checked(%x: tensor<4xi64>, %n: tensor<i64>) -> tensor<4xi64> {
  %y = nd.vmap (%v = %x) {in_axes = [0], out_axes = [0], size = 4} : (tensor<4xi64>) -> tensor<4xi64> {
    %c = nd.gt %v, %n : tensor<i64> -> tensor<i1>
    %r = nd.if %c -> tensor<i64> {
      %t = nd.full 100 : tensor<i64>
      %ok = nd.lt %v, %t : tensor<i64> -> tensor<i1>
      nd.check %ok, %v, %t : tensor<i64>, tensor<i64> {kind = "IndexError", words = ["index ", " is out of ", ""]}
      %w = nd.while (%a = %v) : tensor<i64> {
        %go = nd.lt %a, %t : tensor<i64> -> tensor<i1>
        nd.condition %go
      } do (%a) {
        %b = nd.add %a, %a : tensor<i64>
        nd.yield %b : tensor<i64>
      }
      nd.yield %w : tensor<i64>
    } else {
      nd.yield %v : tensor<i64>
    }
    nd.yield %r : tensor<i64>
  }
  func.return %y : tensor<4xi64>
}

// A condition that is one for all stays a branch; what both give is made alike.
// CHECK-LABEL: @branch
// CHECK: nd.if %c -> tensor<4xf32> {
// CHECK: nd.sin %x : tensor<4xf32>
// CHECK: } else {
// CHECK: nd.broadcast %w {dims = []} : tensor<f32> -> tensor<4xf32>
func.func @branch(%c: tensor<i1>, %x: tensor<4xf32>, %w: tensor<f32>) -> tensor<4xf32> {
  %y = nd.vmap (%v = %x) {in_axes = [0], out_axes = [0], size = 4} : (tensor<4xf32>) -> tensor<4xf32> {
    %r = nd.if %c -> tensor<f32> {
      %s = nd.sin %v : tensor<f32>
      nd.yield %s : tensor<f32>
    } else {
      nd.yield %w : tensor<f32>
    }
    nd.yield %r : tensor<f32>
  }
  func.return %y : tensor<4xf32>
}

// A loop that is as long for all counts once; only what differs is carried for each.
// CHECK-LABEL: @counted
// CHECK: nd.while (%i = %{{.*}}, %a = %x) : tensor<i32>, tensor<4xf32> {
func.func @counted(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = nd.vmap (%v = %x) {in_axes = [0], out_axes = [0], size = 4} : (tensor<4xf32>) -> tensor<4xf32> {
    %zero = nd.full 0 : tensor<i32>
    %one = nd.full 1 : tensor<i32>
    %ten = nd.full 10 : tensor<i32>
    %n, %r = nd.while (%i = %zero, %a = %v) : tensor<i32>, tensor<f32> {
      %go = nd.lt %i, %ten : tensor<i32> -> tensor<i1>
      nd.condition %go
    } do (%i, %a) {
      %j = nd.add %i, %one : tensor<i32>
      %b = nd.mul %a, %v : tensor<f32>
      nd.yield %j, %b : tensor<i32>, tensor<f32>
    }
    nd.yield %r : tensor<f32>
  }
  func.return %y : tensor<4xf32>
}

// Batches of batches of dot products are a product of matrices.
// CHECK-LABEL: @nested
// CHECK-NEXT: %y = nd.dot_general %x, %w contract [1] x [1]
// CHECK-NEXT: func.return %y
func.func @nested(%x: tensor<4x3xf32>, %w: tensor<5x3xf32>) -> tensor<4x5xf32> {
  %y = nd.vmap (%v = %x) {in_axes = [0], out_axes = [0], size = 4} : (tensor<4x3xf32>) -> tensor<4x5xf32> {
    %z = nd.vmap (%u = %w) {in_axes = [0], out_axes = [0], size = 5} : (tensor<5x3xf32>) -> tensor<5xf32> {
      %d = nd.matmul %u, %v : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
      nd.yield %d : tensor<f32>
    }
    nd.yield %z : tensor<5xf32>
  }
  func.return %y : tensor<4x5xf32>
}

// Gradients of each example, without a loop.
// CHECK-LABEL: @gradients
// CHECK-NEXT: %[[W:.*]] = nd.broadcast %w {dims = [1]}
// CHECK-NEXT: %p = nd.mul %[[W]], %x
// CHECK-NEXT: %cos = nd.cos %p
// CHECK-NEXT: %y = nd.mul %cos, %x
func.func @gradients(%x: tensor<4x3xf32>, %w: tensor<3xf32>) -> tensor<4x3xf32> {
  %y = nd.vmap (%v = %x, %k = %w) {in_axes = [0, -1], out_axes = [0], size = 4} : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32> {
    %one = nd.full 1.0 : tensor<f32>
    %l, %g = nd.vjp (%a = %k) cotangents(%one : tensor<f32>) {wrt = [0], of = [0]} : (tensor<3xf32>) -> (tensor<f32>, tensor<3xf32>) {
      %p = nd.mul %a, %v : tensor<3xf32>
      %s = nd.sin %p : tensor<3xf32>
      %t = nd.reduce_sum %s {axes = [0]} : tensor<3xf32> -> tensor<f32>
      nd.yield %t : tensor<f32>
    }
    nd.yield %g : tensor<3xf32>
  }
  func.return %y : tensor<4x3xf32>
}

// A call is written out for the batch, whose size may be known only at run time.
// CHECK-LABEL: @calls
// CHECK-NEXT: %y = nd.add %x, %x : tensor<?xf32>
func.func private @twice(%x: tensor<f32>) -> tensor<f32> {
  %y = nd.add %x, %x : tensor<f32>
  func.return %y : tensor<f32>
}
func.func @calls(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %y = nd.vmap (%v = %x) count(%n : index) {in_axes = [0], out_axes = [0]} : (tensor<?xf32>) -> tensor<?xf32> {
    %z = nd.call @twice(%v) : (tensor<f32>) -> tensor<f32>
    nd.yield %z : tensor<f32>
  }
  func.return %y : tensor<?xf32>
}

// Weights of each example over an image of each: groups.
// CHECK-LABEL: @convolutions
// CHECK: nd.convolution %{{.*}} {groups = 2} : (tensor<1x6x8x8xf32>, tensor<8x3x3x3xf32>) -> tensor<1x8x6x6xf32>
func.func @convolutions(%x: tensor<2x1x3x8x8xf32>, %w: tensor<2x4x3x3x3xf32>) -> tensor<2x1x4x6x6xf32> {
  %y = nd.vmap (%a = %x, %b = %w) {in_axes = [0, 0], out_axes = [0], size = 2} : (tensor<2x1x3x8x8xf32>, tensor<2x4x3x3x3xf32>) -> tensor<2x1x4x6x6xf32> {
    %c = nd.convolution %a, %b : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
    nd.yield %c : tensor<1x4x6x6xf32>
  }
  func.return %y : tensor<2x1x4x6x6xf32>
}

// Python is called for one example after the other, of those that take the branch.
// CHECK-LABEL: @callbacks
// CHECK: nd.scan () over (%{{.*}} = %{{.*}}, %{{.*}} = %c)
// CHECK: nd.if
// CHECK: nd.callback
func.func @callbacks(%c: tensor<4xi1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %y = nd.vmap (%d = %c, %v = %x) {in_axes = [0, 0], out_axes = [0], size = 4} : (tensor<4xi1>, tensor<4xf32>) -> tensor<4xf32> {
    %r = nd.if %d -> tensor<f32> {
      %s = nd.callback(%v) {name = "f"} : (tensor<f32>) -> tensor<f32>
      nd.yield %s : tensor<f32>
    } else {
      nd.yield %v : tensor<f32>
    }
    nd.yield %r : tensor<f32>
  }
  func.return %y : tensor<4xf32>
}

// Backward through a loop of unknown length, which uses a value from outside of it.
// CHECK-LABEL: @gradient_of_loop
// CHECK-COUNT-5: = nd.while
// CHECK: %d_c = nd.mul
// CHECK: func.return
func.func @gradient_of_loop(%x: tensor<2x3xf32>, %n: tensor<i64>) -> tensor<2x3xf32> {
  %y = nd.vmap (%v = %x, %k = %n) {in_axes = [0, -1], out_axes = [0], size = 2} : (tensor<2x3xf32>, tensor<i64>) -> tensor<2x3xf32> {
    %one = nd.full 1.0 : tensor<f32>
    %r, %d = nd.vjp (%a = %v) cotangents(%one : tensor<f32>) {wrt = [0], of = [0]} : (tensor<3xf32>) -> (tensor<f32>, tensor<3xf32>) {
      %b = nd.exp %a : tensor<3xf32>
      %first = nd.full 0 : tensor<i64>
      %last, %w = nd.while (%i = %first, %c = %b) : tensor<i64>, tensor<3xf32> {
        %go = nd.lt %i, %k : tensor<i64> -> tensor<i1>
        nd.condition %go
      } do (%i, %c) {
        %step = nd.full 1 : tensor<i64>
        %next = nd.add %i, %step : tensor<i64>
        %e = nd.mul %c, %b : tensor<3xf32>
        nd.yield %next, %e : tensor<i64>, tensor<3xf32>
      }
      %s = nd.reduce_sum %w {axes = [0]} : tensor<3xf32> -> tensor<f32>
      nd.yield %s : tensor<f32>
    }
    nd.yield %d : tensor<3xf32>
  }
  func.return %y : tensor<2x3xf32>
}
