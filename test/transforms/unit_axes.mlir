// RUN: %stepwell-opt %s -p canonicalize --check | filecheck %s
// RUN: %stepwell-opt %s -p 'through(kernels)' | filecheck %s --check-prefix=KERNELS

// What a reshape adds unit axes to is computed without them, so a norm that keeps the axis it sums
// over is the same program as one that does not, and one kernel.
func.func @rms(%x: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
  %n = nd.dim %x {axis = 0} : tensor<?x?x8xf32>
  %m = nd.dim %x {axis = 1} : tensor<?x?x8xf32>
  %q = nd.mul %x, %x : tensor<?x?x8xf32>
  %e = nd.mean %q {axes = [2]} : tensor<?x?x8xf32> -> tensor<?x?xf32>
  %a = nd.dim %e {axis = 0} : tensor<?x?xf32>
  %b = nd.dim %e {axis = 1} : tensor<?x?xf32>
  %r = nd.reshape %e, sizes(%a, %b) : tensor<?x?xf32> -> tensor<?x?x1xf32>
  %c = nd.full 1.0e-5, sizes(%n, %m) : tensor<?x?x1xf32>
  %p = nd.add %r, %c : tensor<?x?x1xf32>
  %t = nd.sqrt %p : tensor<?x?x1xf32>
  %w = nd.broadcast %t {dims = [0, 1, 2]} : tensor<?x?x1xf32> -> tensor<?x?x8xf32>
  %y = nd.div %x, %w : tensor<?x?x8xf32>
  func.return %y : tensor<?x?x8xf32>
}
// CHECK-LABEL: @rms(
//   CHECK-NOT:   nd.reshape
//       CHECK:   nd.add {{.*}} : tensor<?x?xf32>
//       CHECK:   %t = nd.sqrt %p : tensor<?x?xf32>
//       CHECK:   nd.broadcast %t {dims = [0, 1]} : tensor<?x?xf32> -> tensor<?x?x8xf32>
//
// KERNELS-LABEL: func.func @rms(
//       KERNELS:   kernel.launch
//   KERNELS-NOT:   kernel.launch
//       KERNELS:   func.return

// Other operands: an argument is read in another shape, what was broadcast is broadcast to less.
func.func @others(%x: tensor<4xf32>, %s: tensor<4x1xf32>, %k: tensor<f32>) -> tensor<4x1xi1> {
  %r = nd.reshape %x : tensor<4xf32> -> tensor<4x1xf32>
  %a = nd.add %r, %s : tensor<4x1xf32>
  %b = nd.broadcast %k {dims = []} : tensor<f32> -> tensor<4x1xf32>
  %y = nd.lt %a, %b : tensor<4x1xf32> -> tensor<4x1xi1>
  func.return %y : tensor<4x1xi1>
}
// CHECK-LABEL: @others(
//       CHECK:   %[[S:.*]] = nd.reshape %s : tensor<4x1xf32> -> tensor<4xf32>
//       CHECK:   %a = nd.add %x, %[[S]] : tensor<4xf32>
//       CHECK:   %[[K:.*]] = nd.broadcast %k {dims = []} : tensor<f32> -> tensor<4xf32>
//       CHECK:   %y = nd.lt %a, %[[K]] : tensor<4xf32> -> tensor<4xi1>
//       CHECK:   %[[Y:.*]] = nd.reshape %y : tensor<4xi1> -> tensor<4x1xi1>
//       CHECK:   func.return %[[Y]]

// Only unit axes that all operands can do without go.
func.func @common(%x: tensor<4xf32>, %a: tensor<1x3xf32>, %b: tensor<3x4xf32>) -> tensor<1x4x1xf32> {
  %z = nd.matmul %a, %b : (tensor<1x3xf32>, tensor<3x4xf32>) -> tensor<1x4xf32>
  %r = nd.reshape %x : tensor<4xf32> -> tensor<1x4x1xf32>
  %s = nd.reshape %z : tensor<1x4xf32> -> tensor<1x4x1xf32>
  %y = nd.mul %r, %s : tensor<1x4x1xf32>
  func.return %y : tensor<1x4x1xf32>
}
// CHECK-LABEL: @common(
//       CHECK:   %[[X:.*]] = nd.reshape %x : tensor<4xf32> -> tensor<1x4xf32>
//       CHECK:   %y = nd.mul %[[X]], %z : tensor<1x4xf32>
//       CHECK:   nd.reshape %y : tensor<1x4xf32> -> tensor<1x4x1xf32>

// What is computed in the larger shape stays as it is.
func.func @computed(%x: tensor<4xf32>, %a: tensor<4x1xf32>) -> tensor<4x1xf32> {
  %r = nd.reshape %x : tensor<4xf32> -> tensor<4x1xf32>
  %p = nd.cumulative_sum %a {axis = 0} : tensor<4x1xf32>
  %y = nd.add %r, %p : tensor<4x1xf32>
  func.return %y : tensor<4x1xf32>
}
// CHECK-LABEL: @computed(
//       CHECK:   %y = nd.add %r, %p : tensor<4x1xf32>
//  CHECK-NEXT:   func.return %y

// Sizes that are told otherwise than the operand has them are no unit axes added.
func.func @merged(%x: tensor<?x?xf32>) -> tensor<?x?x1xf32> {
  %m = nd.dim %x {axis = 1} : tensor<?x?xf32>
  %n = nd.dim %x {axis = 0} : tensor<?x?xf32>
  %r = nd.reshape %x, sizes(%m, %n) : tensor<?x?xf32> -> tensor<?x?x1xf32>
  %y = nd.neg %r : tensor<?x?x1xf32>
  func.return %y : tensor<?x?x1xf32>
}
// CHECK-LABEL: @merged(
//       CHECK:   %r = nd.reshape %x, sizes(%m, %n)
//  CHECK-NEXT:   %y = nd.neg %r

// A transpose that moves only such axes is a reshape.
func.func @turned(%x: tensor<?x4xf32>) -> (tensor<1x?x4xf32>, tensor<4x?x1xf32>) {
  %r = nd.reshape %x : tensor<?x4xf32> -> tensor<?x4x1xf32>
  %y = nd.transpose %r {permutation = [2, 0, 1]} : tensor<?x4x1xf32> -> tensor<1x?x4xf32>
  %z = nd.transpose %r {permutation = [1, 0, 2]} : tensor<?x4x1xf32> -> tensor<4x?x1xf32>
  func.return %y, %z : tensor<1x?x4xf32>, tensor<4x?x1xf32>
}
// CHECK-LABEL: @turned(
//       CHECK:   nd.reshape %x : tensor<?x4xf32> -> tensor<1x?x4xf32>
//       CHECK:   nd.transpose %r {permutation = [1, 0, 2]}
