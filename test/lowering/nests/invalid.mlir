// RUN: %stepwell-opt %s -p linalg-to-loops --verify-diagnostics --split-input-file
//
// Levels of groups that a sum of rows cannot have.

// expected-error@+1 {{'lane d1 by 4': how many lanes there are must be known: walk through the loop in steps before}}
kernel.func @lanes(%x: memref<64x40xf32>, %y: memref<64xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[group d0, lane d1 by 4, for d1]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<64xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<64x40xf32>) outs(%y : memref<64xf32>) {
  ^bb0(%a: f32, %s: f32):
    %n = arith.addf %s, %a : f32
    linalg.yield %n : f32
  }
  kernel.return
}

// -----

// expected-error@+1 {{'group d2': op 0 has no loop d2}}
kernel.func @none(%x: memref<64x40xf32>, %y: memref<64xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[group d0 by 8, group d2]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<64xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<64x40xf32>) outs(%y : memref<64xf32>) {
  ^bb0(%a: f32, %s: f32):
    %n = arith.addf %s, %a : f32
    linalg.yield %n : f32
  }
  kernel.return
}

// -----

// expected-error@+1 {{'group d1 by 8': groups do not share a sum: cut it 'into' parts}}
kernel.func @whole(%x: memref<64x40xf32>, %y: memref<64xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[group d0, group d1 by 8, lane d1]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<64xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<64x40xf32>) outs(%y : memref<64xf32>) {
  ^bb0(%a: f32, %s: f32):
    %n = arith.addf %s, %a : f32
    linalg.yield %n : f32
  }
  kernel.return
}

// -----

// expected-error@+1 {{the levels of d0 of op 0 leave more than one iteration}}
kernel.func @left(%x: memref<64x40xf32>, %y: memref<64xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[group d0 by 8, lane d0 by 2, for d1]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<64xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<64x40xf32>) outs(%y : memref<64xf32>) {
  ^bb0(%a: f32, %s: f32):
    %n = arith.addf %s, %a : f32
    linalg.yield %n : f32
  }
  kernel.return
}

// -----

// expected-error@+1 {{no level of op 0 walks through d1}}
kernel.func @missing(%x: memref<64x40xf32>, %y: memref<64xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[group d0 by 8, lane d0]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<64xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<64x40xf32>) outs(%y : memref<64xf32>) {
  ^bb0(%a: f32, %s: f32):
    %n = arith.addf %s, %a : f32
    linalg.yield %n : f32
  }
  kernel.return
}

// -----

// expected-error@+1 {{'lane d1': lanes that share a sum are a power of two}}
kernel.func @tree(%x: memref<64x40xf32>, %y: memref<64xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[group d0, for d1 by 12, lane d1]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<64xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<64x40xf32>) outs(%y : memref<64xf32>) {
  ^bb0(%a: f32, %s: f32):
    %n = arith.addf %s, %a : f32
    linalg.yield %n : f32
  }
  kernel.return
}

// -----

// expected-error@+1 {{'unroll d1': the steps of a sum are not written out}}
kernel.func @unrolled(%x: memref<64x40xf32>, %y: memref<64xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[group d0, for d1 by 4, unroll d1]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<64xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<64x40xf32>) outs(%y : memref<64xf32>) {
  ^bb0(%a: f32, %s: f32):
    %n = arith.addf %s, %a : f32
    linalg.yield %n : f32
  }
  kernel.return
}

// -----

// expected-error@+1 {{'vector d1 by 4': a sum in vectors is not known inside of groups}}
kernel.func @vectors(%x: memref<64x40xf32>, %y: memref<64xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[group d0, for d1 by 4, vector d1 by 4]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<64xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<64x40xf32>) outs(%y : memref<64xf32>) {
  ^bb0(%a: f32, %s: f32):
    %n = arith.addf %s, %a : f32
    linalg.yield %n : f32
  }
  kernel.return
}

// -----

// expected-error@+1 {{'for d1 by 4 {pack 0}': groups know no 'pack'}}
kernel.func @packed(%x: memref<64x40xf32>, %y: memref<64xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[group d0, for d1 by 4 {pack 0}, lane d1]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<64xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<64x40xf32>) outs(%y : memref<64xf32>) {
  ^bb0(%a: f32, %s: f32):
    %n = arith.addf %s, %a : f32
    linalg.yield %n : f32
  }
  kernel.return
}

// -----

// expected-error@+1 {{'for d1 {stage 0}': operands are staged before there are lanes}}
kernel.func @late(%x: memref<64x40xf32>, %y: memref<64xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[group d0 by 8, lane d0, for d1 {stage 0}]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<64xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<64x40xf32>) outs(%y : memref<64xf32>) {
  ^bb0(%a: f32, %s: f32):
    %n = arith.addf %s, %a : f32
    linalg.yield %n : f32
  }
  kernel.return
}

// -----

// expected-error@+1 {{'for d1 by 4 {stage 1}': the op has 1 operands to be read}}
kernel.func @operand(%x: memref<64x40xf32>, %y: memref<64xf32>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[group d0 by 8, for d1 by 4 {stage 1}, lane d0, for d1]>} {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<64xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : memref<64x40xf32>) outs(%y : memref<64xf32>) {
  ^bb0(%a: f32, %s: f32):
    %n = arith.addf %s, %a : f32
    linalg.yield %n : f32
  }
  kernel.return
}
