// RUN: %stepwell-opt %s -p bufferize --verify-each | filecheck %s

kernel.func @zeros(%y: tensor<1x4xf64>) -> tensor<1x4xf64> attributes {kernel.shared = 2 : i64} {
  %0 = arith.constant 0.0 : f64
  %z = linalg.fill ins(%0 : f64) outs(%y : tensor<1x4xf64>) -> tensor<1x4xf64>
  kernel.return %z : tensor<1x4xf64>
}

kernel.func @double(%x: tensor<3x7xf64>, %y: tensor<3x7xf64>) -> tensor<3x7xf64> attributes {kernel.shared = 2 : i64} {
  %z = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<3x7xf64>) outs(%y : tensor<3x7xf64>) {
  ^bb0(%a: f64, %b: f64):
    %c = arith.addf %a, %a : f64
    linalg.yield %c : f64
  } -> tensor<3x7xf64>
  kernel.return %z : tensor<3x7xf64>
}

kernel.func @add(%x: tensor<3x7xf64>, %w: tensor<3x7xf64>, %y: tensor<3x7xf64>) -> tensor<3x7xf64> attributes {kernel.shared = 2 : i64} {
  %z = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x, %w : tensor<3x7xf64>, tensor<3x7xf64>) outs(%y : tensor<3x7xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %d = arith.addf %a, %b : f64
    linalg.yield %d : f64
  } -> tensor<3x7xf64>
  kernel.return %z : tensor<3x7xf64>
}

// An iteration overwrites a part of its own matrix where it lies: whichever matrix a later iteration
// takes, it overwrites the same part of it before it reads it.
// CHECK-LABEL: func.func @rows(
// CHECK:         scf.for
// CHECK-NOT:       memref.copy
// CHECK:           kernel.launch @zeros_view outs(%[[PART:.*]] :
// CHECK-NOT:       memref.copy
// CHECK:           kernel.launch @add
func.func @rows(%x: tensor<3x7xf64>, %y: tensor<3x7xf64>) -> tensor<3x7xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %e = tensor.empty() : tensor<2x3x7xf64>
  %ex = tensor.empty() : tensor<3x7xf64>
  %dx = kernel.launch @double ins(%x : tensor<3x7xf64>) outs(%ex : tensor<3x7xf64>) -> tensor<3x7xf64>
  %ey = tensor.empty() : tensor<3x7xf64>
  %dy = kernel.launch @double ins(%y : tensor<3x7xf64>) outs(%ey : tensor<3x7xf64>) -> tensor<3x7xf64>
  %s0 = tensor.insert_slice %dx into %e[0, 0, 0] [1, 3, 7] [1, 1, 1] : tensor<3x7xf64> into tensor<2x3x7xf64>
  %s = tensor.insert_slice %dy into %s0[1, 0, 0] [1, 3, 7] [1, 1, 1] : tensor<3x7xf64> into tensor<2x3x7xf64>
  %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%sum = %x) -> (tensor<3x7xf64>) {
    %k = arith.subi %c1, %i : index
    %m = tensor.extract_slice %s[%k, 0, 0] [1, 3, 7] [1, 1, 1] : tensor<2x3x7xf64> to tensor<3x7xf64>
    %f = tensor.empty() : tensor<1x4xf64>
    %z = kernel.launch @zeros outs(%f : tensor<1x4xf64>) -> tensor<1x4xf64>
    %n = tensor.insert_slice %z into %m[0, 3] [1, 4] [1, 1] : tensor<1x4xf64> into tensor<3x7xf64>
    %g = tensor.empty() : tensor<3x7xf64>
    %t = kernel.launch @add ins(%sum, %n : tensor<3x7xf64>, tensor<3x7xf64>) outs(%g : tensor<3x7xf64>) -> tensor<3x7xf64>
    scf.yield %t : tensor<3x7xf64>
  }
  func.return %r : tensor<3x7xf64>
}
