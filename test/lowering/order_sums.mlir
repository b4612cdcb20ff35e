// RUN: %stepwell-opt %s -p order-sums | filecheck %s

// The loop over 256 features comes last: of the window it takes 49 elements, not 1,792, for each column.
// CHECK-LABEL: kernel.func @few_features
// CHECK:       affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d6, ((d1 * 2) + d4), ((d3 * 2) + d5))>
// CHECK-SAME:  affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d2, d6, d4, d5)>
// CHECK-SAME:  affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d2, d1, d3)>
kernel.func @few_features(%x: tensor<1x256x54x54xf32>, %w: tensor<14x256x7x7xf32>, %y: tensor<1x14x24x24xf32>) -> tensor<1x14x24x24xf32> attributes {kernel.shared = 4} {
  %zero = arith.constant 0.0 : f32
  %s = linalg.fill ins(%zero : f32) outs(%y : tensor<1x14x24x24xf32>) -> tensor<1x14x24x24xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n, i, f, j, c, r, s) -> (n, c, i * 2 + r, j * 2 + s)>, affine_map<(n, i, f, j, c, r, s) -> (f, c, r, s)>, affine_map<(n, i, f, j, c, r, s) -> (n, f, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<1x256x54x54xf32>, tensor<14x256x7x7xf32>) outs(%s : tensor<1x14x24x24xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %c, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x14x24x24xf32>
  kernel.return %r : tensor<1x14x24x24xf32>
}

// Windows of 3x3 leave room: nothing is turned.
// CHECK-LABEL: kernel.func @small_windows
// CHECK:       affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d2, d4, d5, d6)>
kernel.func @small_windows(%x: tensor<1x256x50x50xf32>, %w: tensor<14x256x3x3xf32>, %y: tensor<1x14x24x24xf32>) -> tensor<1x14x24x24xf32> attributes {kernel.shared = 4} {
  %zero = arith.constant 0.0 : f32
  %s = linalg.fill ins(%zero : f32) outs(%y : tensor<1x14x24x24xf32>) -> tensor<1x14x24x24xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(n, i, f, j, c, r, s) -> (n, c, i * 2 + r, j * 2 + s)>, affine_map<(n, i, f, j, c, r, s) -> (f, c, r, s)>, affine_map<(n, i, f, j, c, r, s) -> (n, f, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<1x256x50x50xf32>, tensor<14x256x3x3xf32>) outs(%s : tensor<1x14x24x24xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %c, %p : f32
    linalg.yield %t : f32
  } -> tensor<1x14x24x24xf32>
  kernel.return %r : tensor<1x14x24x24xf32>
}

// A plain sum is read as it lies, and one that has its schedule is left alone.
// CHECK-LABEL: kernel.func @plain
// CHECK:       affine_map<(d0, d1, d2, d3) -> (d1, d0, d2, d3)>
kernel.func @plain(%x: tensor<4096x5x40x40xf32>, %y: tensor<5xf32>) -> tensor<5xf32> attributes {kernel.shared = 1} {
  %zero = arith.constant 0.0 : f32
  %s = linalg.fill ins(%zero : f32) outs(%y : tensor<5xf32>) -> tensor<5xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(c, n, i, j) -> (n, c, i, j)>, affine_map<(c, n, i, j) -> (c)>], iterator_types = ["parallel", "reduction", "reduction", "reduction"]} ins(%x : tensor<4096x5x40x40xf32>) outs(%s : tensor<5xf32>) {
  ^bb0(%a: f32, %c: f32):
    %t = arith.addf %c, %a : f32
    linalg.yield %t : f32
  } -> tensor<5xf32>
  kernel.return %r : tensor<5xf32>
}
