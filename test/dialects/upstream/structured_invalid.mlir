// RUN: %stepwell-opt %s --split-input-file --verify-diagnostics

func.func @f(%t: tensor<4xf32>, %d: f64) {
  // expected-error@+1 {{'linalg.generic': the body yields f64, but the destinations' elements are f32}}
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%t : tensor<4xf32>) {
  ^bb0(%o: f32):
    linalg.yield %d : f64
  } -> tensor<4xf32>
  func.return
}

// -----

func.func @f(%t: tensor<4xf32>) {
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%t : tensor<4xf32>) {
  ^bb0(%o: f32):
    // expected-error@+1 {{'linalg.index': there is no loop 1: there are 1, counted from 0}}
    %i = linalg.index 1 : index
    linalg.yield %o : f32
  } -> tensor<4xf32>
  func.return
}

// -----

func.func @f(%t: tensor<4xf32>, %d: f64) {
  // expected-error@+1 {{'linalg.fill': tensor<4xf32> is not filled with f64}}
  %y = linalg.fill ins(%d : f64) outs(%t : tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @f(%c: i1, %d: f64) {
  // expected-error@+1 {{'scf.if': the first branch yields f64, it must be f32}}
  %y = scf.if %c -> (f32) {
    scf.yield %d : f64
  } else {
    scf.yield %d : f64
  }
  func.return
}

// -----

func.func @f(%c: i1, %f: f32, %d: f64) {
  // expected-error@+1 {{'scf.while': the body yields f64, it must be f32}}
  %y = scf.while (%a = %f) : (f32) -> f32 {
    scf.condition(%c) %a : f32
  } do {
  ^bb0(%b: f32):
    scf.yield %d : f64
  }
  func.return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %y: tensor<8x4xf32>) {
  // expected-error@+1 {{'linalg.transpose': a permutation names each of 2 axes once, not [-1, 0]}}
  %t = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%y : tensor<8x4xf32>) permutation = [-1, 0]
  func.return
}
