// RUN: %stepwell-opt %s --check -p 'nd-to-linalg,canonicalize,cse,fuse-elementwise,scalar-loops' | filecheck %s
// RUN: %stepwell-opt %s --check -p 'through(loops)' -t c | filecheck %s --check-prefix C

// A loop that counts: no clamp and no comparison is left of what the counter is known to be.
// CHECK-LABEL: func.func @sums
// CHECK:         %y, %total = scf.for {{.*}} iter_args({{.*}} = %y0, {{.*}} = {{.*}})
// CHECK:           scf.for %i = {{.*}} iter_args(%acc = {{.*}}, %a = {{.*}}) -> (f64, tensor<9xf64>) {
// CHECK-NOT:         arith.maxsi
// CHECK-NOT:         arith.cmpi
// CHECK:             tensor.extract %x[
// CHECK:             tensor.insert
// CHECK:             scf.yield {{.*}} : f64, tensor<9xf64>
// C-LABEL: kernel_sums
// C:         for (int64_t i = 1; i < 9; i++)
// C-NOT:     [0]
// C:         }
func.func @sums(%x: tensor<9xf64>, %y0: tensor<9xf64>) -> (tensor<f64>, tensor<9xf64>) {
  %zero = nd.full 0.0 : tensor<f64>
  %first = nd.full 1 : tensor<i64>
  %n, %total, %y = nd.while (%i0 = %first, %acc0 = %zero, %a0 = %y0) : tensor<i64>, tensor<f64>, tensor<9xf64> {
    %last = nd.full 9 : tensor<i64>
    %go = nd.lt %i0, %last : tensor<i64> -> tensor<i1>
    nd.condition %go
  } do (%i, %acc, %a) {
    %one = nd.full 1 : tensor<i64>
    %before = nd.sub %i, %one : tensor<i64>
    %v = nd.gather %x, indices(%before) {axes = [0]} : (tensor<9xf64>, tensor<i64>) -> tensor<f64>
    %sum = nd.add %acc, %v : tensor<f64>
    %b = nd.scatter %a, %sum, indices(%i) {axes = [0]} : (tensor<9xf64>, tensor<f64>, tensor<i64>) -> tensor<9xf64>
    %next = nd.add %i, %one : tensor<i64>
    nd.yield %next, %sum, %b : tensor<i64>, tensor<f64>, tensor<9xf64>
  }
  func.return %total, %y : tensor<f64>, tensor<9xf64>
}
