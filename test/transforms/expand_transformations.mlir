// RUN: %stepwell-opt %s -p expand-transformations | filecheck %s

// A branch that was not chosen is masked once, behind what it is multiplied by.
// CHECK-LABEL: @masked
// CHECK: %y = nd.select %c, %s, %z : tensor<4xf32>
// CHECK-NEXT: %{{.*}} = nd.full 5.000000e-01
// CHECK-NEXT: %{{.*}} = nd.div %{{.*}}, %s
// CHECK-NEXT: %d_p = nd.mul %g, %{{.*}}
// CHECK-NEXT: %d_a = nd.mul %d_p, %w
// CHECK-NEXT: %{{.*}} = nd.full 0.000000e+00
// CHECK-NEXT: %dx = nd.select %c, %d_a, %{{.*}}
// CHECK-NEXT: func.return %y, %dx
func.func @masked(%x: tensor<4xf32>, %w: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %y, %dx = nd.vjp (%a = %x) cotangents(%g : tensor<4xf32>) {wrt = [0], of = [0]} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %p = nd.mul %a, %w : tensor<4xf32>
    %s = nd.sqrt %p : tensor<4xf32>
    %z = nd.full 0.0 : tensor<4xf32>
    %c = nd.gt %p, %z : tensor<4xf32> -> tensor<4xi1>
    %m = nd.select %c, %s, %z : tensor<4xf32>
    nd.yield %m : tensor<4xf32>
  }
  func.return %y, %dx : tensor<4xf32>, tensor<4xf32>
}

// One value may be two arguments, and be read from outside, where it is a constant.
// CHECK-LABEL: @twice
// CHECK-NEXT: %p = nd.mul %x, %x
// CHECK-NEXT: %y = nd.mul %p, %x
// CHECK-NEXT: %d_p = nd.mul %g, %x
// CHECK-NEXT: %da = nd.mul %d_p, %x
// CHECK-NEXT: %db = nd.mul %d_p, %x
// CHECK-NEXT: func.return %y, %da, %db
func.func @twice(%x: tensor<f32>, %g: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
  %y, %da, %db = nd.vjp (%a = %x, %b = %x) cotangents(%g : tensor<f32>) {wrt = [0, 1], of = [0]} : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
    %p = nd.mul %a, %b : tensor<f32>
    %q = nd.mul %p, %x : tensor<f32>
    nd.yield %q : tensor<f32>
  }
  func.return %y, %da, %db : tensor<f32>, tensor<f32>, tensor<f32>
}

// Parts of a value have cotangents side by side, and zeros where no part was used.
// CHECK-LABEL: @parts
// CHECK: %{{.*}} = nd.full 0.000000e+00 : tensor<2xf32>
// CHECK-NEXT: %dx = nd.concat %d_a, %{{.*}}, %d_b {axis = 0} : (tensor<3xf32>, tensor<2xf32>, tensor<4xf32>) -> tensor<9xf32>
func.func @parts(%x: tensor<9xf32>, %g: tensor<f32>) -> tensor<9xf32> {
  %y, %dx = nd.vjp (%v = %x) cotangents(%g : tensor<f32>) {wrt = [0], of = [0]} : (tensor<9xf32>) -> (tensor<f32>, tensor<9xf32>) {
    %b = nd.slice %v[5:] : tensor<9xf32> -> tensor<4xf32>
    %a = nd.slice %v[:3] : tensor<9xf32> -> tensor<3xf32>
    %s = nd.reduce_sum %a {axes = [0]} : tensor<3xf32> -> tensor<f32>
    %q = nd.square %b : tensor<4xf32>
    %t = nd.reduce_sum %q {axes = [0]} : tensor<4xf32> -> tensor<f32>
    %r = nd.add %s, %t : tensor<f32>
    nd.yield %r : tensor<f32>
  }
  func.return %dx : tensor<9xf32>
}
