// Structured ops: generic with several results and maps by name, named ops on tensors and on buffers.
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @generic(%x: tensor<4x8xf32>, %r: tensor<4xf32>, %y: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4x8xf32>) {
  %0:2 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf32>) outs(%r, %y : tensor<4xf32>, tensor<4x8xf32>) attrs = {my.fused} {
  ^bb0(%in: f32, %acc: f32, %out: f32):
    %i = linalg.index 1 : index
    %1 = arith.index_cast %i : index to i32
    %2 = arith.sitofp %1 : i32 to f32
    %3 = arith.mulf %in, %2 : f32
    %4 = arith.addf %acc, %3 : f32
    linalg.yield %4, %3 : f32, f32
  } -> (tensor<4xf32>, tensor<4x8xf32>)
  return %0#0, %0#1 : tensor<4xf32>, tensor<4x8xf32>
}

// -----

func.func @named(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %c: tensor<4x4xf32>, %zero: f32) -> tensor<4x4xf32> {
  %0 = linalg.fill ins(%zero : f32) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%0 : tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = linalg.add ins(%1, %0 : tensor<4x4xf32>, tensor<4x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = linalg.transpose ins(%2 : tensor<4x4xf32>) outs(%c : tensor<4x4xf32>) permutation = [1, 0]
  %4 = linalg.copy ins(%3 : tensor<4x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %4 : tensor<4x4xf32>
}

// -----

func.func @buffers(%x: memref<1x3x10x10xf32>, %w: memref<6x3x3x3xf32>, %y: memref<1x6x8x8xf32>, %p: memref<2x2xf32>, %q: memref<1x6x7x7xf32>) {
  linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : memref<1x3x10x10xf32>, memref<6x3x3x3xf32>) outs(%y : memref<1x6x8x8xf32>)
  linalg.pooling_nchw_max {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%y, %p : memref<1x6x8x8xf32>, memref<2x2xf32>) outs(%q : memref<1x6x7x7xf32>)
  return
}

// -----

func.func @reduced(%x: tensor<16x32xf32>, %init: tensor<16xf32>, %b: tensor<16x32x4xf32>) -> (tensor<16xf32>, tensor<16x32x4xf32>) {
  %0 = linalg.reduce ins(%x : tensor<16x32xf32>) outs(%init : tensor<16xf32>) dimensions = [1]
    (%in: f32, %acc: f32) {
      %s = arith.subf %in, %acc : f32
      linalg.yield %s : f32
    }
  %1 = linalg.broadcast ins(%x : tensor<16x32xf32>) outs(%b : tensor<16x32x4xf32>) dimensions = [2]
  return %0, %1 : tensor<16xf32>, tensor<16x32x4xf32>
}
