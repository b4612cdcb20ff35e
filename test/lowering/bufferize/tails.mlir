// RUN: %stepwell-opt %s --check -p bufferize | filecheck %s

// An iteration that runs twice would read elements that it has overwritten: vectors and rows peel instead.
// CHECK-LABEL: kernel.func @own
// CHECK-SAME:  #kernel.schedule<[for d0, for d1 by 32, unroll d1 by 16, vector d1 by 16]>
kernel.func @own(%x: tensor<3x37xf32>, %y: tensor<3x37xf32>) -> tensor<3x37xf32> attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[for d0, for d1 by 32 overlap, unroll d1 by 16, vector d1 by 16]>} {
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<3x37xf32>) outs(%y : tensor<3x37xf32>) {
  ^bb0(%a: f32, %c: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<3x37xf32>
  kernel.return %r : tensor<3x37xf32>
}

// CHECK-LABEL: kernel.func @rows
// CHECK-SAME:  #kernel.schedule<[for d0 by 3, for d1 by 16, unroll d0, vector d1 by 16]>
kernel.func @rows(%x: tensor<8x37xf32>, %y: tensor<8x37xf32>) -> tensor<8x37xf32> attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[for d0 by 3 overlap, for d1 by 16 overlap, unroll d0, vector d1 by 16]>} {
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x37xf32>) outs(%y : tensor<8x37xf32>) {
  ^bb0(%a: f32, %c: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<8x37xf32>
  kernel.return %r : tensor<8x37xf32>
}

// Each row reads another one: input and result never share memory.
// CHECK-LABEL: kernel.func @moved
// CHECK-SAME:  #kernel.schedule<[for d0 by 3 overlap, for d1 by 16 overlap, unroll d0, vector d1 by 16]>
kernel.func @moved(%x: tensor<9x37xf32>, %y: tensor<8x37xf32>) -> tensor<8x37xf32> attributes {kernel.shared = 2, kernel.schedule = #kernel.schedule<[for d0 by 3 overlap, for d1 by 16 overlap, unroll d0, vector d1 by 16]>} {
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0 + 1, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<9x37xf32>) outs(%y : tensor<8x37xf32>) {
  ^bb0(%a: f32, %c: f32):
    linalg.yield %a : f32
  } -> tensor<8x37xf32>
  kernel.return %r : tensor<8x37xf32>
}

func.func @main(%x: tensor<3x37xf32>, %z: tensor<8x37xf32>, %w: tensor<9x37xf32>) -> (tensor<3x37xf32>, tensor<8x37xf32>, tensor<8x37xf32>) {
  %0 = tensor.empty() : tensor<3x37xf32>
  %1 = tensor.empty() : tensor<8x37xf32>
  %2 = tensor.empty() : tensor<8x37xf32>
  %a = kernel.launch @own ins(%x : tensor<3x37xf32>) outs(%0 : tensor<3x37xf32>) -> tensor<3x37xf32>
  %b = kernel.launch @rows ins(%z : tensor<8x37xf32>) outs(%1 : tensor<8x37xf32>) -> tensor<8x37xf32>
  %c = kernel.launch @moved ins(%w : tensor<9x37xf32>) outs(%2 : tensor<8x37xf32>) -> tensor<8x37xf32>
  func.return %a, %b, %c : tensor<3x37xf32>, tensor<8x37xf32>, tensor<8x37xf32>
}
