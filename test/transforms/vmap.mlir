// RUN: %stepwell-opt %s -p 'vmap{function=f in_axes=0,-1 out_axes=0 size=8}' | filecheck %s
// RUN: %stepwell-opt %s -p 'vmap{function=f in_axes=1,0 out_axes=1}' | filecheck %s --check-prefix ANY
// RUN: %stepwell-opt %s -p 'vmap{function=sized}' | filecheck %s --check-prefix SIZED
// RUN: %stepwell-opt %s -p 'vmap{function=f size=2},vmap{function=f_vmap size=3}' | filecheck %s --check-prefix TWICE
// RUN: %stepwell-opt %s -p 'vjp{function=f},vmap{function=f_vjp in_axes=0,-1,0 size=2}' | filecheck %s --check-prefix EACH
// RUN: not %stepwell-opt %s -p 'vmap{function=g}' 2>&1 | filecheck %s --check-prefix UNKNOWN
// RUN: not %stepwell-opt %s -p 'vmap{function=f in_axes=0,0,0}' 2>&1 | filecheck %s --check-prefix MANY
// RUN: not %stepwell-opt %s -p 'vmap{function=f in_axes=2,0}' 2>&1 | filecheck %s --check-prefix AXIS
// RUN: not %stepwell-opt %s -p 'vmap{function=f in_axes=-1}' 2>&1 | filecheck %s --check-prefix NOTHING
// RUN: not %stepwell-opt %s -p 'vmap{function=f out_axes=-1 size=2}' 2>&1 | filecheck %s --check-prefix DIFFERS

// CHECK: func.func @f(
// CHECK: func.func @f_vmap(%x: tensor<8x4xf32>, %w: tensor<4xf32>) -> tensor<8x4xf32> {
// CHECK-NEXT: %broadcast = nd.broadcast %w {dims = [1]} : tensor<4xf32> -> tensor<8x4xf32>
// CHECK-NEXT: %y = nd.mul %x, %broadcast : tensor<8x4xf32>
// CHECK-NEXT: func.return %y : tensor<8x4xf32>

// ANY: func.func @f_vmap(%x: tensor<4x?xf32>, %w: tensor<?x4xf32>) -> tensor<4x?xf32> {

// SIZED: func.func @sized_vmap(%x: tensor<?x?xf32>, %n: index) -> tensor<?x?xf32> {
// SIZED-NEXT: %t = nd.reduce_sum %x {axes = [1]}
// SIZED-NEXT: nd.broadcast %t, sizes(%n) {dims = [0]}

// TWICE: func.func @f_vmap_vmap(%x: tensor<3x2x4xf32>, %w: tensor<3x2x4xf32>) -> tensor<3x2x4xf32> {
// TWICE-NEXT: %y = nd.mul %x, %w : tensor<3x2x4xf32>

// EACH: func.func @f_vjp_vmap(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %d_y: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {

// UNKNOWN: error: there is no function @g to batch
// UNKNOWN-NEXT: help: say which: vmap{function=NAME}; there is f, sized
// MANY: vmap.mlir:{{[0-9]+}}:1: error: in_axes has 3 axes, but @f has 2 arguments
// AXIS: error: axis 2 is none of a batch of argument 0 of @f, tensor<4xf32>
// AXIS: help: axes are counted from 0; -1 says that there is none
// NOTHING: error: nothing tells how many examples @f is for
// DIFFERS: vmap.mlir:{{[0-9]+}}:1: error: result 0 differs from example to example: out_axes cannot be -1 (None) for it

func.func @f(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %y = nd.mul %x, %w : tensor<4xf32>
  func.return %y : tensor<4xf32>
}

func.func @sized(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %t = nd.reduce_sum %x {axes = [0]} : tensor<?xf32> -> tensor<f32>
  %y = nd.broadcast %t, sizes(%n) {dims = []} : tensor<f32> -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}
