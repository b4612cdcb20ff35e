// RUN: %stepwell-opt %s -p bufferize --verify-each | filecheck %s

// A row of rows of an assembled tensor is a row of it: the loop writes the row that it carries where it lies.
// CHECK:      memref.copy %{{.*}}, %[[LAST:.*]] :
// CHECK:      scf.for
// CHECK:      memref.copy %{{.*}}, %[[LAST]] :
// CHECK-NEXT: }
kernel.func @fill(%y: tensor<1x1xf64>) -> tensor<1x1xf64> attributes {kernel.shared = 2 : i64} {
  %0 = arith.constant 1.0 : f64
  %z = linalg.fill ins(%0 : f64) outs(%y : tensor<1x1xf64>) -> tensor<1x1xf64>
  kernel.return %z : tensor<1x1xf64>
}

func.func @main(%x: tensor<2x1xf64>, %y: tensor<2x1xf64>, %q: tensor<4xindex>) -> (tensor<1x1xf64>, tensor<1x1xf64>, tensor<1x1xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %e = tensor.empty() : tensor<1x1xf64>
  %s = kernel.launch @fill outs(%e : tensor<1x1xf64>) -> tensor<1x1xf64>
  %r:4 = scf.for %i = %c0 to %c2 step %c1 iter_args(%a = %s, %b = %s, %c = %s, %d = %s) -> (tensor<1x1xf64>, tensor<1x1xf64>, tensor<1x1xf64>, tensor<1x1xf64>) {
    %f = tensor.empty() : tensor<5x1xf64>
    %g = tensor.insert_slice %s into %f[0, 0] [1, 1] [1, 1] : tensor<1x1xf64> into tensor<5x1xf64>
    %h = tensor.insert_slice %x into %g[1, 0] [2, 1] [1, 1] : tensor<2x1xf64> into tensor<5x1xf64>
    %k = tensor.insert_slice %y into %h[3, 0] [2, 1] [1, 1] : tensor<2x1xf64> into tensor<5x1xf64>
    %l = tensor.extract_slice %k[0, 0] [2, 1] [1, 1] : tensor<5x1xf64> to tensor<2x1xf64>
    %m = tensor.extract_slice %x[0, 0] [1, 1] [1, 1] : tensor<2x1xf64> to tensor<1x1xf64>
    %n = tensor.insert_slice %m into %l[1, 0] [1, 1] [1, 1] : tensor<1x1xf64> into tensor<2x1xf64>
    %o = tensor.extract_slice %n[0, 0] [1, 1] [1, 1] : tensor<2x1xf64> to tensor<1x1xf64>
    %p = tensor.empty() : tensor<2x2xf64>
    %t = tensor.insert_slice %x into %p[0, 0] [2, 1] [1, 1] : tensor<2x1xf64> into tensor<2x2xf64>
    %u = tensor.insert_slice %y into %t[0, 1] [2, 1] [1, 1] : tensor<2x1xf64> into tensor<2x2xf64>
    %j = tensor.extract %q[%i] : tensor<4xindex>
    %v = tensor.extract_slice %u[%j, 0] [1, 1] [1, 1] : tensor<2x2xf64> to tensor<1x1xf64>
    scf.yield %o, %c, %a, %v : tensor<1x1xf64>, tensor<1x1xf64>, tensor<1x1xf64>, tensor<1x1xf64>
  }
  func.return %r#1, %r#0, %r#3 : tensor<1x1xf64>, tensor<1x1xf64>, tensor<1x1xf64>
}

kernel.func @twice(%x: tensor<1x2xf32>, %y: tensor<1x2xf32>) -> tensor<1x2xf32> attributes {kernel.shared = 2 : i64} {
  %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<1x2xf32>) outs(%y : tensor<1x2xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  } -> tensor<1x2xf32>
  kernel.return %0 : tensor<1x2xf32>
}

// The first row of a concatenation is in its first part, whose second row was replaced before.
// CHECK-LABEL: func.func @of_concatenated(
// CHECK:         kernel.launch @twice
// CHECK:         memref.copy %y
// CHECK:         memref.copy %{{.*}}, %r
func.func @of_concatenated(%y: tensor<4x2xf32>, %z: tensor<4x2xf32>) -> tensor<1x2xf32> {
  %a = tensor.extract_slice %y[1, 0] [1, 2] [1, 1] : tensor<4x2xf32> to tensor<1x2xf32>
  %e = tensor.empty() : tensor<1x2xf32>
  %b = kernel.launch @twice ins(%a : tensor<1x2xf32>) outs(%e : tensor<1x2xf32>) -> tensor<1x2xf32>
  %c = tensor.insert_slice %b into %y[1, 0] [1, 2] [1, 1] : tensor<1x2xf32> into tensor<4x2xf32>
  %f = tensor.empty() : tensor<8x2xf32>
  %g = tensor.insert_slice %c into %f[0, 0] [4, 2] [1, 1] : tensor<4x2xf32> into tensor<8x2xf32>
  %h = tensor.insert_slice %z into %g[4, 0] [4, 2] [1, 1] : tensor<4x2xf32> into tensor<8x2xf32>
  %r = tensor.extract_slice %h[0, 0] [1, 2] [1, 1] : tensor<8x2xf32> to tensor<1x2xf32>
  func.return %r : tensor<1x2xf32>
}
