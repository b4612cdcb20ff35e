// RUN: %stepwell-opt %s -p 'decompose,nd-to-linalg,canonicalize,cse,fuse-elementwise' | %stepwell-opt --check -p scalar-loops | filecheck %s
// RUN: %stepwell-opt %s -p 'through(loops)' -t c | filecheck %s --check-prefix C

// An array is overwritten by its own elements in another order: a loop of its own reads them first, in the same bounds, into scratch memory that the kernel is given.
// CHECK-LABEL: func.func @turned
// CHECK:         scf.for {{.*}} iter_args(%[[Y:.*]] = %y0, %[[SCRATCH:.*]] = %{{.*}}) -> (tensor<9xf64>, tensor<8xf64>) {
// CHECK:           scf.for %i = {{.*}} iter_args(%[[A:.*]] = %[[Y]])
// CHECK:             %[[FILLED:.*]] = scf.for %{{.*}} = %{{.*}} to %[[END:.*]] step %{{.*}} iter_args(%[[S:.*]] = %[[SCRATCH]]) -> (tensor<8xf64>) {
// CHECK:               tensor.extract %[[A]][
// CHECK-NEXT:          tensor.insert %{{.*}} into %[[S]][
// CHECK:             scf.for %{{.*}} = %{{.*}} to %[[END]] step %{{.*}} iter_args(%[[B:.*]] = %[[A]]) -> (tensor<9xf64>) {
// CHECK-NEXT:          tensor.extract %[[FILLED]][
// CHECK-NEXT:          tensor.insert %{{.*}} into %[[B]][
// C:             kernel_turned_scatter(double *restrict y, double *restrict x)
func.func @turned(%y0: tensor<9xf64>) -> tensor<9xf64> {
  %zero = nd.full 0 : tensor<i64>
  %n, %y = nd.while (%i0 = %zero, %a0 = %y0) : tensor<i64>, tensor<9xf64> {
    %last = nd.full 9 : tensor<i64>
    %go = nd.lt %i0, %last : tensor<i64> -> tensor<i1>
    nd.condition %go
  } do (%i, %a) {
    %one = nd.full 1 : tensor<i64>
    %back = nd.reverse %a {axes = [0]} : tensor<9xf64>
    %place = nd.iota {axis = 0} : tensor<9xi64>
    %end = nd.broadcast %i {dims = []} : tensor<i64> -> tensor<9xi64>
    %first = nd.lt %place, %end : tensor<9xi64> -> tensor<9xi1>
    %b = nd.select %first, %back, %a : tensor<9xf64>
    %next = nd.add %i, %one : tensor<i64>
    nd.yield %next, %b : tensor<i64>, tensor<9xf64>
  }
  func.return %y : tensor<9xf64>
}

// A scatter adds to elements that it gathers before it writes any.
// CHECK-LABEL: func.func @scattered
// CHECK:           scf.for %i = {{.*}} iter_args(%[[A:.*]] = %y0_1)
// CHECK:             %[[FILLED:.*]] = scf.for {{.*}} -> (tensor<5xf64>) {
// CHECK:               %[[V:.*]] = scf.if {{.*}} -> (f64) {
// CHECK:                 tensor.extract %[[A]][
// CHECK:               tensor.insert %[[V]] into
// CHECK:             scf.for {{.*}} iter_args(%[[B:.*]] = %[[A]]) -> (tensor<9xf64>) {
// CHECK:               tensor.extract %[[FILLED]][
// CHECK:               tensor.insert {{.*}} into %[[B]][
func.func @scattered(%at: tensor<5xi64>, %y0: tensor<9xf64>) -> tensor<9xf64> {
  %zero = nd.full 0 : tensor<i64>
  %n, %y = nd.while (%i0 = %zero, %a0 = %y0) : tensor<i64>, tensor<9xf64> {
    %last = nd.full 9 : tensor<i64>
    %go = nd.lt %i0, %last : tensor<i64> -> tensor<i1>
    nd.condition %go
  } do (%i, %a) {
    %one = nd.full 1 : tensor<i64>
    %old = nd.gather %a, indices(%at) {axes = [0]} : (tensor<9xf64>, tensor<5xi64>) -> tensor<5xf64>
    %new = nd.add %old, %old : tensor<5xf64>
    %b = nd.scatter %a, %new, indices(%at) {axes = [0]} : (tensor<9xf64>, tensor<5xf64>, tensor<5xi64>) -> tensor<9xf64>
    %next = nd.add %i, %one : tensor<i64>
    nd.yield %next, %b : tensor<i64>, tensor<9xf64>
  }
  func.return %y : tensor<9xf64>
}

// Running sums are a number that the loop carries which writes them.
// CHECK-LABEL: func.func @running
// CHECK:           scf.for %i = {{.*}} iter_args(%[[A:.*]] = %y0_1)
// CHECK:             scf.for {{.*}} iter_args(%{{.*}} = %[[A]], %[[SUM:.*]] = %{{.*}}) -> (tensor<9xf64>, f64) {
// CHECK:               %[[NEXT:.*]] = arith.addf %[[SUM]],
// CHECK:               scf.yield %{{.*}}, %[[NEXT]] : tensor<9xf64>, f64
// CHECK-NEXT:        }{{$}}
func.func @running(%x: tensor<9xf64>, %y0: tensor<9xf64>) -> tensor<9xf64> {
  %zero = nd.full 0 : tensor<i64>
  %n, %y = nd.while (%i0 = %zero, %a0 = %y0) : tensor<i64>, tensor<9xf64> {
    %last = nd.full 9 : tensor<i64>
    %go = nd.lt %i0, %last : tensor<i64> -> tensor<i1>
    nd.condition %go
  } do (%i, %a) {
    %one = nd.full 1 : tensor<i64>
    %v = nd.gather %x, indices(%i) {axes = [0]} : (tensor<9xf64>, tensor<i64>) -> tensor<f64>
    %all = nd.broadcast %v {dims = []} : tensor<f64> -> tensor<9xf64>
    %scaled = nd.mul %x, %all : tensor<9xf64>
    %sums = nd.cumulative_sum %scaled {axis = 0} : tensor<9xf64>
    %b = nd.add %a, %sums : tensor<9xf64>
    %next = nd.add %i, %one : tensor<i64>
    nd.yield %next, %b : tensor<i64>, tensor<9xf64>
  }
  func.return %y : tensor<9xf64>
}
