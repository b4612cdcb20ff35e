// RUN: %stepwell-opt %s -p check-accesses --split-input-file --verify-diagnostics

// An index that data decides must be held within its tensor.

func.func @main(%x: tensor<?xf32>, %i: tensor<3xi32>) -> tensor<3xf32> {
  %e = tensor.empty() : tensor<3xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%i : tensor<3xi32>) outs(%e : tensor<3xf32>) {
  ^bb0(%a: i32, %o: f32):
    %k = arith.index_cast %a : i32 to index
    // expected-error@+1 {{nothing tells that %k lies within axis 0 of %x}}
    %s = tensor.extract %x[%k] : tensor<?xf32>
    linalg.yield %s : f32
  } -> tensor<3xf32>
  func.return %z : tensor<3xf32>
}

// -----

func.func @main(%x: tensor<9xf32>, %n: tensor<i64>) -> tensor<1xf32> {
  %a = tensor.extract %n[] : tensor<i64>
  %k = arith.index_cast %a : i64 to index
  // expected-error@+1 {{nothing tells that %k lies within axis 0 of %x}}
  %z = tensor.extract_slice %x[%k] [1] [1] : tensor<9xf32> to tensor<1xf32>
  func.return %z : tensor<1xf32>
}

// -----

func.func @main(%x: tensor<9xf32>, %n: tensor<i64>) -> tensor<1xf32> {
  %a = tensor.extract %n[] : tensor<i64>
  %k = arith.index_cast %a : i64 to index
  %c0 = arith.constant 0 : index
  %c9 = arith.constant 9 : index
  %k1 = arith.maxsi %k, %c0 : index
  %k2 = arith.minsi %k1, %c9 : index
  // expected-error@+1 {{tensor.extract_slice: axis 0 of %x has size 9, but is read from 0 to 9}}
  %z = tensor.extract_slice %x[%k2] [1] [1] : tensor<9xf32> to tensor<1xf32>
  func.return %z : tensor<1xf32>
}

// -----

func.func @main(%x: tensor<9xf32>) -> tensor<?xf32> {
  %c = arith.constant 100000 : index
  // expected-error@+1 {{tensor.extract_slice: axis 0 of %x has size 9, but is read from 0 to 99999}}
  %z = tensor.extract_slice %x[0] [%c] [1] : tensor<9xf32> to tensor<?xf32>
  func.return %z : tensor<?xf32>
}

// -----

func.func @main(%x: tensor<9xf32>) -> tensor<?xf32> {
  %c = arith.constant 100000 : index
  %e = tensor.empty(%c) : tensor<?xf32>
  // expected-error@+1 {{tensor.insert_slice: axis 0 of %e has size 100000, but is read from 99992 to 100000}}
  %z = tensor.insert_slice %x into %e[99992] [9] [1] : tensor<9xf32> into tensor<?xf32>
  func.return %z : tensor<?xf32>
}

// -----

func.func @main(%x: tensor<9xf32>, %n: tensor<i64>) -> tensor<?xf32> {
  %a = tensor.extract %n[] : tensor<i64>
  %k = arith.index_cast %a : i64 to index
  // expected-error@+1 {{a size is computed by arith.index_cast, which is not known here}}
  %e = tensor.empty(%k) : tensor<?xf32>
  func.return %e : tensor<?xf32>
}

// -----

kernel.func @k(%x: tensor<9xf32>, %i: tensor<9xi64>, %y: tensor<9xf32>) -> tensor<9xf32> {
  %z = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%i : tensor<9xi64>) outs(%y : tensor<9xf32>) {
  ^bb0(%a: i64, %o: f32):
    %k = arith.index_cast %a : i64 to index
    // expected-error@+1 {{nothing tells that %k lies within axis 0 of %x}}
    %s = tensor.extract %x[%k] : tensor<9xf32>
    linalg.yield %s : f32
  } -> tensor<9xf32>
  kernel.return %z : tensor<9xf32>
}
func.func @main(%x: tensor<9xf32>, %i: tensor<9xi64>) -> tensor<9xf32> {
  %e = tensor.empty() : tensor<9xf32>
  %y = kernel.launch @k ins(%x, %i : tensor<9xf32>, tensor<9xi64>) outs(%e : tensor<9xf32>) -> tensor<9xf32>
  func.return %y : tensor<9xf32>
}
