// RUN: %stepwell-opt %s -p check-accesses --split-input-file | filecheck %s

// Loops of a structured op have one size in all that they walk along.

func.func @loops(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %z = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%y : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  func.return %z : tensor<?xf32>
}
// CHECK-LABEL: @loops
// CHECK-SAME: {holds = ["==", "d0", "d1"], words = ["linalg.generic: axis 0 of %x has size "

// -----

// What a map reaches is there, if there is an iteration.

func.func @shifted(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %z = linalg.generic {indexing_maps = [affine_map<(i) -> (i * 2 + 1)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%y : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<?xf32>
  func.return %z : tensor<?xf32>
}
// CHECK-LABEL: @shifted
// CHECK-SAME: holds = ["|", ["<=", "d1", 0{{.*}}], [">=", {{.*}}, 0{{.*}}]], words = ["linalg.generic: axis 0 of %x has size "

// -----

// An index that is held within its tensor wants one element of it.

func.func @held(%x: tensor<?xf32>, %n: tensor<i64>) -> tensor<1xf32> {
  %a = tensor.extract %n[] : tensor<i64>
  %k = arith.index_cast %a : i64 to index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %size = tensor.dim %x, %c0 : tensor<?xf32>
  %last = arith.subi %size, %c1 : index
  %k1 = arith.minsi %k, %last : index
  %k2 = arith.maxsi %k1, %c0 : index
  %z = tensor.extract_slice %x[%k2] [1] [1] : tensor<?xf32> to tensor<1xf32>
  func.return %z : tensor<1xf32>
}
// CHECK-LABEL: @held
// CHECK-SAME: words = ["tensor.extract_slice: axis 0 of %x has size "
// CHECK-SAME: at = "{{.*}}check_accesses.mlir:{{.*}}:3"

// -----

// A comparison around a branch, and what a loop counts, need no check.

func.func @branch(%x: tensor<?xf32>, %n: tensor<i64>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f = arith.constant 1.0 : f32
  %size = tensor.dim %x, %c0 : tensor<?xf32>
  %limit = arith.index_cast %size : index to i64
  %z = scf.for %i = %c0 to %size step %c1 iter_args(%y = %x) -> (tensor<?xf32>) {
    %e = tensor.extract %x[%i] : tensor<?xf32>
    %k = tensor.extract %n[] : tensor<i64>
    %in = arith.cmpi ult, %k, %limit : i64
    %at = arith.index_cast %k : i64 to index
    %w = scf.if %in -> (tensor<?xf32>) {
      %put = tensor.insert %e into %y[%at] : tensor<?xf32>
      scf.yield %put : tensor<?xf32>
    } else {
      scf.yield %y : tensor<?xf32>
    }
    scf.yield %w : tensor<?xf32>
  }
  func.return %z : tensor<?xf32>
}
// CHECK-LABEL: @branch
// CHECK-NOT: holds
// CHECK: scf.for
