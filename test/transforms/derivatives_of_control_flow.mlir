// RUN: %stepwell-opt %s -p expand-transformations | filecheck %s

// A scan keeps of each step what is cheaper to keep than to compute again; slices that were read or
// stacked are at hand. What is read from outside has one sum, carried.
// CHECK-LABEL: @scan
// CHECK: %y, %as, %ts = nd.scan (%t = %s) over (%v = %x)
// CHECK: nd.yield %z, %a, %t :
// CHECK: nd.scan (%d_t = %g, %d_b = %{{.*}}) over (%a_1 = %as, %v_1 = %x, %t_1 = %ts) {reverse}
// CHECK-NEXT: %u_1 = nd.add %a_1, %v_1
// CHECK-NEXT: %z_1 = nd.tanh %u_1
// CHECK: nd.yield
// CHECK-NOT: nd.vjp
func.func @scan(%w: tensor<3xf64>, %x: tensor<4x3xf64>, %s: tensor<3xf64>, %g: tensor<3xf64>) -> (tensor<3xf64>, tensor<4x3xf64>, tensor<3xf64>, tensor<4x3xf64>) {
  %y, %as, %dw, %dx = nd.vjp (%b = %w, %r = %x) cotangents(%g : tensor<3xf64>) {wrt = [0, 1], of = [0]} : (tensor<3xf64>, tensor<4x3xf64>) -> (tensor<3xf64>, tensor<4x3xf64>, tensor<3xf64>, tensor<4x3xf64>) {
    %e, %as = nd.scan (%t = %s) over (%v = %r) : (tensor<3xf64>, tensor<4x3xf64>) -> (tensor<3xf64>, tensor<4x3xf64>) {
      %a = nd.mul %t, %b : tensor<3xf64>
      %u = nd.add %a, %v : tensor<3xf64>
      %z = nd.tanh %u : tensor<3xf64>
      nd.yield %z, %a : tensor<3xf64>, tensor<3xf64>
    }
    nd.yield %e, %as : tensor<3xf64>, tensor<4x3xf64>
  }
  func.return %y, %as, %dw, %dx : tensor<3xf64>, tensor<4x3xf64>, tensor<3xf64>, tensor<4x3xf64>
}

// The branch that ran hands out a maximum, which is not cheap; what is cheap is computed again.
// CHECK-LABEL: @branch
// CHECK: %y, %{{.*}} = nd.if %c -> tensor<3xf64>, tensor<f64> {
// CHECK: nd.if %c -> tensor<3xf64> {
// CHECK-NOT: nd.reduce_max
// CHECK: func.return %dx
func.func @branch(%c: tensor<i1>, %x: tensor<3xf64>, %g: tensor<3xf64>) -> tensor<3xf64> {
  %y, %dx = nd.vjp (%v = %x) cotangents(%g : tensor<3xf64>) {wrt = [0], of = [0]} : (tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
    %r = nd.if %c -> tensor<3xf64> {
      %a = nd.reduce_max %v {axes = [0]} : tensor<3xf64> -> tensor<f64>
      %d = nd.broadcast %a {dims = []} : tensor<f64> -> tensor<3xf64>
      %s = nd.sin %d : tensor<3xf64>
      nd.yield %s : tensor<3xf64>
    } else {
      nd.yield %v : tensor<3xf64>
    }
    nd.yield %r : tensor<3xf64>
  }
  func.return %dx : tensor<3xf64>
}

// Forward, tangents are carried beside what is carried; the number of steps has none.
// CHECK-LABEL: @forward
// CHECK: nd.while (%i = %n, %p = %x, %{{.*}} = %t) : tensor<i64>, tensor<f64>, tensor<f64>
// CHECK: nd.yield %j, %s, %t_s :
func.func @forward(%n: tensor<i64>, %x: tensor<f64>, %t: tensor<f64>) -> (tensor<f64>, tensor<f64>) {
  %y, %ty = nd.jvp (%v = %x) tangents(%t : tensor<f64>) {wrt = [0], of = [0]} : (tensor<f64>) -> (tensor<f64>, tensor<f64>) {
    %zero = nd.full 0 : tensor<i64>
    %one = nd.full 1 : tensor<i64>
    %k, %r = nd.while (%i = %n, %p = %v) : tensor<i64>, tensor<f64> {
      %c = nd.gt %i, %zero : tensor<i64> -> tensor<i1>
      nd.condition %c
    } do (%i, %p) {
      %j = nd.sub %i, %one : tensor<i64>
      %s = nd.sin %p : tensor<f64>
      nd.yield %j, %s : tensor<i64>, tensor<f64>
    }
    nd.yield %r : tensor<f64>
  }
  func.return %y, %ty : tensor<f64>, tensor<f64>
}

// A loop that counts to a constant is a scan; of other loops the steps are done again in pieces,
// with a tape of a length that is known.
// CHECK-LABEL: @counts
// CHECK: nd.scan (%i = %zero, %p = %x) {length = 7}
// CHECK: nd.scan (%d_p{{.*}}) over (%p{{.*}} = %{{.*}}) {reverse}
func.func @counts(%x: tensor<f64>, %g: tensor<f64>) -> tensor<f64> {
  %y, %dx = nd.vjp (%v = %x) cotangents(%g : tensor<f64>) {wrt = [0], of = [0]} : (tensor<f64>) -> (tensor<f64>, tensor<f64>) {
    %zero = nd.full 0 : tensor<i64>
    %k, %r = nd.while (%i = %zero, %p = %v) : tensor<i64>, tensor<f64> {
      %n = nd.full 14 : tensor<i64>
      %c = nd.lt %i, %n : tensor<i64> -> tensor<i1>
      nd.condition %c
    } do (%i, %p) {
      %two = nd.full 2 : tensor<i64>
      %j = nd.add %i, %two : tensor<i64>
      %s = nd.sin %p : tensor<f64>
      nd.yield %j, %s : tensor<i64>, tensor<f64>
    }
    nd.yield %r : tensor<f64>
  }
  func.return %dx : tensor<f64>
}

// CHECK-LABEL: @runs_until
// CHECK: %{{.*}}, %steps = nd.while (%p = %x, %{{.*}} = %{{.*}}) : tensor<f64>, tensor<i64>
// CHECK: nd.full 0.000000e+00 : tensor<1024xf64>
// CHECK: nd.dynamic_update_slice
// CHECK: nd.dynamic_slice
// CHECK-NOT: nd.vjp
func.func @runs_until(%x: tensor<f64>, %g: tensor<f64>) -> tensor<f64> {
  %y, %dx = nd.vjp (%v = %x) cotangents(%g : tensor<f64>) {wrt = [0], of = [0]} : (tensor<f64>) -> (tensor<f64>, tensor<f64>) {
    %r = nd.while (%p = %v) : tensor<f64> {
      %one = nd.full 1.0 : tensor<f64>
      %c = nd.gt %p, %one : tensor<f64> -> tensor<i1>
      nd.condition %c
    } do (%p) {
      %s = nd.sqrt %p : tensor<f64>
      nd.yield %s : tensor<f64>
    }
    nd.yield %r : tensor<f64>
  }
  func.return %dx : tensor<f64>
}

// A loop that writes and reads single elements of an array carries its cotangent and updates that in
// place: no whole array is made or kept in any step.
// CHECK-LABEL: @in_place
// CHECK: nd.scan (%i = %zero, %y = %x) {length = 99} : (tensor<i64>, tensor<100xf64>) -> (tensor<i64>, tensor<100xf64>, tensor<99xi64>, tensor<99xf64>)
// CHECK: nd.scan (%d_y = %g) over
// CHECK-NOT: nd.full {{.*}} : tensor<100x
// CHECK: nd.gather %d_y
// CHECK: nd.scatter %d_y
// CHECK-NOT: nd.full {{.*}} : tensor<100x
// CHECK: nd.scatter_add
// CHECK-NEXT: nd.yield
func.func @in_place(%x: tensor<100xf64>, %g: tensor<100xf64>) -> tensor<100xf64> {
  %r, %dx = nd.vjp (%v = %x) cotangents(%g : tensor<100xf64>) {wrt = [0], of = [0]} : (tensor<100xf64>) -> (tensor<100xf64>, tensor<100xf64>) {
    %zero = nd.full 0 : tensor<i64>
    %k, %e = nd.while (%i = %zero, %y = %v) : tensor<i64>, tensor<100xf64> {
      %n = nd.full 99 : tensor<i64>
      %c = nd.lt %i, %n : tensor<i64> -> tensor<i1>
      nd.condition %c
    } do (%i, %y) {
      %one = nd.full 1 : tensor<i64>
      %j = nd.add %i, %one : tensor<i64>
      %a = nd.gather %y, indices(%i) {axes = [0]} : (tensor<100xf64>, tensor<i64>) -> tensor<f64>
      %s = nd.sin %a : tensor<f64>
      %z = nd.scatter %y, %s, indices(%j) {axes = [0]} : (tensor<100xf64>, tensor<f64>, tensor<i64>) -> tensor<100xf64>
      nd.yield %j, %z : tensor<i64>, tensor<100xf64>
    }
    nd.yield %e : tensor<100xf64>
  }
  func.return %dx : tensor<100xf64>
}
