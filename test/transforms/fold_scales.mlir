// RUN: %stepwell-opt %s -p fold-scales | filecheck %s
// RUN: %stepwell-opt %s -p "fold-scales{hoist-constants=0}" | filecheck %s --check-prefix=LATER

// A bias, then a batch norm: the weights are scaled, all that is added is one vector.
// CHECK-LABEL: @bias_and_norm
// CHECK:         %[[C:.*]] = nd.sub %b, %m
// CHECK-NEXT:    %[[F:.*]] = nd.broadcast %s {dims = [0]} : tensor<4xf32> -> tensor<4x3x3x3xf32>
// CHECK-NEXT:    %[[W:.*]] = nd.mul %w, %[[F]]
// CHECK-NEXT:    %[[M:.*]] = nd.mul %[[C]], %s
// CHECK-NEXT:    %[[T:.*]] = nd.add %[[M]], %t
// CHECK-NEXT:    %y = nd.convolution %x, %[[W]] {strides = [2, 2]}
// CHECK-NEXT:    %[[N:.*]] = nd.dim %y {axis = 0}
// CHECK-NEXT:    %[[B:.*]] = nd.broadcast %[[T]], sizes(%[[N]]) {dims = [1]}
// CHECK-NEXT:    %z = nd.add %y, %[[B]]
// CHECK-NEXT:    func.return %z
// LATER-LABEL: @bias_and_norm
// LATER:         nd.convolution %x, %w
func.func @bias_and_norm(%x: tensor<?x3x9x9xf32>) -> tensor<?x4x4x4xf32> {
  %w = nd.constant dense<2.0> : tensor<4x3x3x3xf32>
  %b = nd.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %m = nd.constant dense<[0.5, 0.25, 2.0, 1.0]> : tensor<4xf32>
  %s = nd.constant dense<[2.0, 0.5, 1.0, 4.0]> : tensor<4xf32>
  %t = nd.constant dense<[1.0, 3.0, 2.0, 4.0]> : tensor<4xf32>
  %n = nd.dim %x {axis = 0} : tensor<?x3x9x9xf32>
  %y = nd.convolution %x, %w {strides = [2, 2]} : (tensor<?x3x9x9xf32>, tensor<4x3x3x3xf32>) -> tensor<?x4x4x4xf32>
  %bb = nd.broadcast %b, sizes(%n) {dims = [1]} : tensor<4xf32> -> tensor<?x4x4x4xf32>
  %h = nd.add %bb, %y : tensor<?x4x4x4xf32>
  %bm = nd.broadcast %m, sizes(%n) {dims = [1]} : tensor<4xf32> -> tensor<?x4x4x4xf32>
  %c = nd.sub %h, %bm : tensor<?x4x4x4xf32>
  %bs = nd.broadcast %s, sizes(%n) {dims = [1]} : tensor<4xf32> -> tensor<?x4x4x4xf32>
  %k = nd.mul %c, %bs : tensor<?x4x4x4xf32>
  %bt = nd.broadcast %t, sizes(%n) {dims = [1]} : tensor<4xf32> -> tensor<?x4x4x4xf32>
  %z = nd.add %k, %bt : tensor<?x4x4x4xf32>
  func.return %z : tensor<?x4x4x4xf32>
}

// Channels last in groups; a mean that is taken off first; a number; nothing else is added.
// CHECK-LABEL: @groups
// CHECK:         %[[R:.*]] = nd.reshape %s : tensor<1x4xf32> -> tensor<4xf32>
// CHECK-NEXT:    %[[F:.*]] = nd.broadcast %[[R]] {dims = [2]} : tensor<4xf32> -> tensor<3x1x4xf32>
// CHECK-NEXT:    %[[W:.*]] = nd.div %w, %[[F]]
// CHECK-NEXT:    %[[H:.*]] = nd.full 5.000000e-01 : tensor<f32>
// CHECK-NEXT:    %[[G:.*]] = nd.broadcast %[[H]] {dims = []} : tensor<f32> -> tensor<3x1x4xf32>
// CHECK-NEXT:    %[[V:.*]] = nd.mul %[[W]], %[[G]]
// CHECK-NEXT:    %z = nd.convolution %x, %[[V]] {groups = 2
// CHECK-NEXT:    func.return %z
func.func @groups(%x: tensor<1x8x2xf32>) -> tensor<1x6x4xf32> {
  %w = nd.constant dense<2.0> : tensor<3x1x4xf32>
  %s = nd.constant dense<[[2.0, 0.5, 1.0, 4.0]]> : tensor<1x4xf32>
  %y = nd.convolution %x, %w {groups = 2, x_layout = [0, 2, 1], w_layout = [2, 1, 0], y_layout = [0, 2, 1]} : (tensor<1x8x2xf32>, tensor<3x1x4xf32>) -> tensor<1x6x4xf32>
  %bs = nd.broadcast %s {dims = [0, 2]} : tensor<1x4xf32> -> tensor<1x6x4xf32>
  %k = nd.div %y, %bs : tensor<1x6x4xf32>
  %half = nd.full 0.5 : tensor<1x6x4xf32>
  %z = nd.mul %k, %half : tensor<1x6x4xf32>
  func.return %z : tensor<1x6x4xf32>
}

// Columns of a matrix on the right, batches and columns in another order; then rows of one on the left.
// CHECK-LABEL: @products
// CHECK:         %[[T:.*]] = nd.transpose %s {permutation = [1, 0]}
// CHECK-NEXT:    %[[F:.*]] = nd.broadcast %[[T]] {dims = [1, 2]} : tensor<4x2xf32> -> tensor<5x4x2xf32>
// CHECK-NEXT:    %[[W:.*]] = nd.mul %w, %[[F]]
// CHECK-NEXT:    %[[D:.*]] = nd.broadcast %m {dims = [1]} : tensor<4xf32> -> tensor<2x4xf32>
// CHECK-NEXT:    %[[N:.*]] = nd.neg %[[D]]
// CHECK-NEXT:    %y = nd.dot_general %x, %[[W]]
// CHECK:         %[[G:.*]] = nd.broadcast %r {dims = [0]} : tensor<3xf32> -> tensor<3x5xf32>
// CHECK-NEXT:    %[[V:.*]] = nd.mul %v, %[[G]]
// CHECK-NEXT:    %q = nd.dot_general %[[V]], %u
func.func @products(%x: tensor<2x3x5xf32>, %u: tensor<5x6xf32>) -> (tensor<2x3x4xf32>, tensor<3x6xf32>) {
  %w = nd.constant dense<2.0> : tensor<5x4x2xf32>
  %s = nd.constant dense<3.0> : tensor<2x4xf32>
  %m = nd.constant dense<1.0> : tensor<4xf32>
  %y = nd.dot_general %x, %w batch [0] x [2] contract [2] x [0] : (tensor<2x3x5xf32>, tensor<5x4x2xf32>) -> tensor<2x3x4xf32>
  %bs = nd.broadcast %s {dims = [0, 2]} : tensor<2x4xf32> -> tensor<2x3x4xf32>
  %k = nd.mul %y, %bs : tensor<2x3x4xf32>
  %bm = nd.broadcast %m {dims = [2]} : tensor<4xf32> -> tensor<2x3x4xf32>
  %z = nd.sub %k, %bm : tensor<2x3x4xf32>
  %v = nd.constant dense<2.0> : tensor<3x5xf32>
  %r = nd.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %p = nd.dot_general %v, %u contract [1] x [0] : (tensor<3x5xf32>, tensor<5x6xf32>) -> tensor<3x6xf32>
  %br = nd.broadcast %r {dims = [0]} : tensor<3xf32> -> tensor<3x6xf32>
  %q = nd.mul %p, %br : tensor<3x6xf32>
  func.return %z, %q : tensor<2x3x4xf32>, tensor<3x6xf32>
}

// Arguments are scaled in each call where they are small, by vectors and not by numbers.
// CHECK-LABEL: @small
// CHECK:         %[[W:.*]] = nd.mul %w,
// CHECK:         %k = nd.dot_general %x, %[[W]]
// CHECK:         %z = nd.mul %k, %half
// LATER-LABEL: @small
// LATER:         %[[W:.*]] = nd.mul %w,
// LATER:         nd.dot_general %x, %[[W]]
func.func @small(%x: tensor<1024x16xf32>, %w: tensor<16x16xf32>, %s: tensor<16xf32>) -> tensor<1024x16xf32> {
  %y = nd.dot_general %x, %w contract [1] x [0] : (tensor<1024x16xf32>, tensor<16x16xf32>) -> tensor<1024x16xf32>
  %bs = nd.broadcast %s {dims = [1]} : tensor<16xf32> -> tensor<1024x16xf32>
  %k = nd.mul %y, %bs : tensor<1024x16xf32>
  %half = nd.full 0.5 : tensor<1024x16xf32>
  %z = nd.mul %k, %half : tensor<1024x16xf32>
  func.return %z : tensor<1024x16xf32>
}

// Left alone: large arguments, 16 bits, integers, factors of rows, two uses, a step between, a quotient of it.
// CHECK-LABEL: @refused
// CHECK-COUNT-7: nd.dot_general %{{.*}}, %{{w|v|h|i}} contract
// CHECK:         func.return
func.func @refused(%x: tensor<4x4xf32>, %v: tensor<4x4xf32>, %s: tensor<4xf32>, %xh: tensor<4x4xf16>, %xi: tensor<4x4xi32>) -> (tensor<4x4xf32>, tensor<4x4xf16>, tensor<4x4xi32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %w = nd.constant dense<2.0> : tensor<4x4xf32>
  %h = nd.constant dense<2.0> : tensor<4x4xf16>
  %i = nd.constant dense<2> : tensor<4x4xi32>
  %a = nd.constant dense<3.0> : tensor<4xf32>
  %b = nd.broadcast %a {dims = [1]} : tensor<4xf32> -> tensor<4x4xf32>
  %y0 = nd.dot_general %x, %v contract [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %z0 = nd.mul %y0, %b : tensor<4x4xf32>
  %y1 = nd.dot_general %xh, %h contract [1] x [0] : (tensor<4x4xf16>, tensor<4x4xf16>) -> tensor<4x4xf16>
  %bh = nd.full 3.0 : tensor<4x4xf16>
  %z1 = nd.mul %y1, %bh : tensor<4x4xf16>
  %full = nd.full 3 : tensor<4x4xi32>
  %y2 = nd.dot_general %xi, %i contract [1] x [0] : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi32>
  %z2 = nd.mul %y2, %full : tensor<4x4xi32>
  %rows = nd.broadcast %a {dims = [0]} : tensor<4xf32> -> tensor<4x4xf32>
  %y3 = nd.dot_general %x, %w contract [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %z3 = nd.mul %y3, %rows : tensor<4x4xf32>
  %x4 = nd.neg %x : tensor<4x4xf32>
  %y4 = nd.dot_general %x4, %w contract [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %z4 = nd.mul %y4, %b : tensor<4x4xf32>
  %x5 = nd.abs %x : tensor<4x4xf32>
  %y5 = nd.dot_general %x5, %w contract [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %r5 = nd.abs %y5 : tensor<4x4xf32>
  %z5 = nd.mul %r5, %b : tensor<4x4xf32>
  %x6 = nd.square %x : tensor<4x4xf32>
  %y6 = nd.dot_general %x6, %w contract [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %z6 = nd.div %b, %y6 : tensor<4x4xf32>
  func.return %z0, %z1, %z2, %z3, %z4, %y4, %z5, %z6 : tensor<4x4xf32>, tensor<4x4xf16>, tensor<4x4xi32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// A vector that is the same number everywhere is that number: a network as it is initialised.
// CHECK-LABEL: @uniform
// CHECK:         %[[SHIFT:.*]] = nd.mul %{{.*}}, %{{.*}} : tensor<f32>
// CHECK-NEXT:    %y = nd.dot_general %x, %{{.*}} contract
// CHECK-NEXT:    %[[ALL:.*]] = nd.broadcast %[[SHIFT]] {dims = []} : tensor<f32> -> tensor<4x4xf32>
// CHECK-NEXT:    %z = nd.add %y, %[[ALL]]
// CHECK-NEXT:    func.return %z
func.func @uniform(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %w = nd.constant dense<2.0> : tensor<4x4xf32>
  %mean = nd.full 0.0 : tensor<4xf32>
  %scale = nd.full 3.0 : tensor<4xf32>
  %y = nd.dot_general %x, %w contract [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %m = nd.broadcast %mean {dims = [1]} : tensor<4xf32> -> tensor<4x4xf32>
  %c = nd.sub %y, %m : tensor<4x4xf32>
  %f = nd.broadcast %scale {dims = [1]} : tensor<4xf32> -> tensor<4x4xf32>
  %z = nd.mul %c, %f : tensor<4x4xf32>
  func.return %z : tensor<4x4xf32>
}
