// REQUIRES: mlir-opt
// Upstream's own tool accepts every floor below nd: kernels are read as functions, launches as unknown ops.
// RUN: %stepwell-opt %s --print-op-generic -p "inline-calls,decompose,nd-to-linalg,canonicalize,cse,fuse-elementwise" > %t.structured
// RUN: mlir-opt-22 %t.structured | %stepwell-opt | filecheck %s
// RUN: %stepwell-opt %t.structured --print-op-generic -p "outline-kernels,schedule" > %t.kernels
// RUN: sed 's/"kernel.func"/"func.func"/; s/"kernel.return"/"func.return"/' %t.kernels | mlir-opt-22 --allow-unregistered-dialect > %t.out
// RUN: %stepwell-opt %t.kernels --print-op-generic -p "bufferize,plan-memory" > %t.buffers
// RUN: sed 's/"kernel.func"/"func.func"/; s/"kernel.return"/"func.return"/' %t.buffers | mlir-opt-22 --allow-unregistered-dialect > %t.out
// RUN: %stepwell-opt %t.buffers --print-op-generic -p "linalg-to-loops,canonicalize,cse,expand-math" > %t.loops
// RUN: sed 's/"kernel.func"/"func.func"/; s/"kernel.return"/"func.return"/' %t.loops | mlir-opt-22 --allow-unregistered-dialect > %t.out

// CHECK-LABEL: func.func @layer
// CHECK:         linalg.generic
func.func @layer(%x: tensor<?x8xf32>, %w: tensor<8x16xf32>, %b: tensor<16xf32>) -> tensor<?x16xf32> {
  %h = nd.matmul %x, %w : (tensor<?x8xf32>, tensor<8x16xf32>) -> tensor<?x16xf32>
  %n = nd.dim %x {axis = 0} : tensor<?x8xf32>
  %bb = nd.broadcast %b, sizes(%n) {dims = [1]} : tensor<16xf32> -> tensor<?x16xf32>
  %a = nd.add %h, %bb : tensor<?x16xf32>
  %r = nd.relu %a : tensor<?x16xf32>
  %y = nd.softmax %r {axis = 1} : tensor<?x16xf32>
  func.return %y : tensor<?x16xf32>
}

// Moves: transposed, strided, reversed, padded, joined, reshaped.
// CHECK-LABEL: func.func @moves
func.func @moves(%x: tensor<4x?xf32>, %v: tensor<f32>) -> (tensor<?xf32>, tensor<?x6xf32>) {
  %t = nd.transpose %x {permutation = [1, 0]} : tensor<4x?xf32> -> tensor<?x4xf32>
  %s = nd.slice %x[1::2, 2:] : tensor<4x?xf32> -> tensor<2x?xf32>
  %k = nd.reverse %s {axes = [0]} : tensor<2x?xf32> -> tensor<2x?xf32>
  %m = nd.reduce_max %k {axes = [0]} : tensor<2x?xf32> -> tensor<?xf32>
  %p = nd.pad %t, %v {low = [1, 0], high = [0, 2]} : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x6xf32>
  func.return %m, %p : tensor<?xf32>, tensor<?x6xf32>
}

// Narrow floats, integers, truth values, places, gathered rows, a scatter.
// CHECK-LABEL: func.func @types
func.func @types(%x: tensor<7x5xbf16>, %i: tensor<3xui8>, %u: tensor<3x5xf16>) -> (tensor<7xi64>, tensor<3x5xi1>, tensor<7x5xf16>) {
  %a = nd.argmax %x {axis = 1} : tensor<7x5xbf16> -> tensor<7xi64>
  %g = nd.gather %x, indices(%i) {axes = [0]} : (tensor<7x5xbf16>, tensor<3xui8>) -> tensor<3x5xbf16>
  %c = nd.gt %g, %g : tensor<3x5xbf16> -> tensor<3x5xi1>
  %h = nd.cast %x : tensor<7x5xbf16> -> tensor<7x5xf16>
  %s = nd.scatter_add %h, %u, indices(%i) {axes = [0]} : (tensor<7x5xf16>, tensor<3x5xf16>, tensor<3xui8>) -> tensor<7x5xf16>
  func.return %a, %c, %s : tensor<7xi64>, tensor<3x5xi1>, tensor<7x5xf16>
}

// A convolution, and control flow around it.
// CHECK-LABEL: func.func @loops
func.func @loops(%c: tensor<i1>, %x: tensor<2x3x9xf32>, %w: tensor<3x3x3xf32>, %n: tensor<i32>) -> (tensor<2x3x9xf32>, tensor<3x9xf32>) {
  %zero = nd.full 0 : tensor<i32>
  %one = nd.full 1 : tensor<i32>
  %i, %y = nd.while (%i = %zero, %a = %x) : tensor<i32>, tensor<2x3x9xf32> {
    %go = nd.lt %i, %n : tensor<i32> -> tensor<i1>
    nd.condition %go
  } do (%j, %b) {
    %k = nd.add %j, %one : tensor<i32>
    %z = nd.convolution %b, %w {low = [1], high = [1]} : (tensor<2x3x9xf32>, tensor<3x3x3xf32>) -> tensor<2x3x9xf32>
    nd.yield %k, %z : tensor<i32>, tensor<2x3x9xf32>
  }
  %f = nd.full 0.0 : tensor<3x9xf32>
  %last = nd.scan (%s = %f) over (%r = %y) {reverse} : (tensor<3x9xf32>, tensor<2x3x9xf32>) -> tensor<3x9xf32> {
    %e = nd.exp %r : tensor<3x9xf32>
    %t = nd.add %s, %e : tensor<3x9xf32>
    nd.yield %t : tensor<3x9xf32>
  }
  %q = nd.if %c -> tensor<2x3x9xf32> {
    nd.yield %y : tensor<2x3x9xf32>
  } else {
    nd.yield %x : tensor<2x3x9xf32>
  }
  func.return %q, %last : tensor<2x3x9xf32>, tensor<3x9xf32>
}
