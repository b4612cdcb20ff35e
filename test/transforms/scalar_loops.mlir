// RUN: %stepwell-opt %s -p 'decompose,nd-to-linalg,canonicalize,cse,fuse-elementwise' | %stepwell-opt --check -p scalar-loops | filecheck %s
// RUN: %stepwell-opt %s -p 'through(loops)' -t c | filecheck %s --check-prefix C

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

// Both sides of a branch write one element: it is written after the branch. What is read of the element before is the number that was written.
// CHECK-LABEL: func.func @running
// CHECK:         scf.for %i = {{.*}} iter_args(%a = {{.*}}, {{.*}}) -> (tensor<9xi32>, i32) {
// CHECK:             [[V:%[a-z0-9_]+]] = scf.if {{.*}} -> (i32) {
// CHECK:             tensor.insert [[V]] into %a[%i]
// CHECK-NEXT:        scf.yield {{.*}}, [[V]] : tensor<9xi32>, i32
// The remainder by a power of two lies in its range: it needs no clamp.
// CHECK-LABEL: func.func @counted
// CHECK:         arith.andi
// CHECK-NOT:     arith.minsi
// CHECK:         tensor.insert
func.func @running(%x: tensor<9xi32>, %y0: tensor<9xi32>) -> tensor<9xi32> {
  %first = nd.full 1 : tensor<i64>
  %n, %y = nd.while (%i0 = %first, %a0 = %y0) : tensor<i64>, tensor<9xi32> {
    %last = nd.full 9 : tensor<i64>
    %go = nd.lt %i0, %last : tensor<i64> -> tensor<i1>
    nd.condition %go
  } do (%i, %a) {
    %one = nd.full 1 : tensor<i64>
    %k = nd.sub %i, %one : tensor<i64>
    %before = nd.gather %a, indices(%k) {axes = [0]} : (tensor<9xi32>, tensor<i64>) -> tensor<i32>
    %v = nd.gather %x, indices(%i) {axes = [0]} : (tensor<9xi32>, tensor<i64>) -> tensor<i32>
    %less = nd.lt %v, %before : tensor<i32> -> tensor<i1>
    %b = nd.if %less -> tensor<9xi32> {
      %sum = nd.add %before, %v : tensor<i32>
      %c = nd.scatter %a, %sum, indices(%i) {axes = [0]} : (tensor<9xi32>, tensor<i32>, tensor<i64>) -> tensor<9xi32>
      nd.yield %c : tensor<9xi32>
    } else {
      %c = nd.scatter %a, %v, indices(%i) {axes = [0]} : (tensor<9xi32>, tensor<i32>, tensor<i64>) -> tensor<9xi32>
      nd.yield %c : tensor<9xi32>
    }
    %next = nd.add %i, %one : tensor<i64>
    nd.yield %next, %b : tensor<i64>, tensor<9xi32>
  }
  func.return %y : tensor<9xi32>
}
func.func @counted(%x: tensor<99xi64>, %y0: tensor<16xi64>) -> tensor<16xi64> {
  %first = nd.full 0 : tensor<i64>
  %n, %y = nd.while (%i0 = %first, %a0 = %y0) : tensor<i64>, tensor<16xi64> {
    %last = nd.full 99 : tensor<i64>
    %go = nd.lt %i0, %last : tensor<i64> -> tensor<i1>
    nd.condition %go
  } do (%i, %a) {
    %one = nd.full 1 : tensor<i64>
    %size = nd.full 16 : tensor<i64>
    %v = nd.gather %x, indices(%i) {axes = [0]} : (tensor<99xi64>, tensor<i64>) -> tensor<i64>
    %k = nd.mod %v, %size : tensor<i64>
    %old = nd.gather %a, indices(%k) {axes = [0]} : (tensor<16xi64>, tensor<i64>) -> tensor<i64>
    %new = nd.add %old, %one : tensor<i64>
    %b = nd.scatter %a, %new, indices(%k) {axes = [0]} : (tensor<16xi64>, tensor<i64>, tensor<i64>) -> tensor<16xi64>
    %next = nd.add %i, %one : tensor<i64>
    nd.yield %next, %b : tensor<i64>, tensor<16xi64>
  }
  func.return %y : tensor<16xi64>
}

// A sum over what lies before the counter runs to there, and so does what is written of a row.
// CHECK-LABEL: func.func @windows
// CHECK:         scf.for %i = {{.*}} iter_args(%a = {{.*}}) -> (tensor<9x9xf64>) {
// CHECK:           scf.for %{{.*}} = {{.*}} to %i step {{.*}} -> (f64) {
// CHECK-NOT:         arith.select
// CHECK:             arith.addf
// CHECK:           } {kernel.simd}
// CHECK:           scf.for %{{.*}} = {{.*}} to %i step {{.*}} -> (tensor<9x9xf64>) {
// CHECK-NOT:         arith.select
// CHECK:             tensor.insert
// CHECK:           } {kernel.simd}
// C-LABEL: kernel_windows
// C:         < i; {{.*}}++)
// C:         #pragma omp simd
// C-NEXT:    < i; {{.*}}++)
func.func @windows(%x: tensor<9x9xf64>, %y0: tensor<9x9xf64>) -> tensor<9x9xf64> {
  %first = nd.full 0 : tensor<i64>
  %zero = nd.full 0.0 : tensor<9xf64>
  %n, %y = nd.while (%i0 = %first, %a0 = %y0) : tensor<i64>, tensor<9x9xf64> {
    %last = nd.full 9 : tensor<i64>
    %go = nd.lt %i0, %last : tensor<i64> -> tensor<i1>
    nd.condition %go
  } do (%i, %a) {
    %one = nd.full 1 : tensor<i64>
    %block = nd.dynamic_slice %x, starts(%i, %first) {axes = [0, 1], sizes = [1, 9]} : (tensor<9x9xf64>, tensor<i64>, tensor<i64>) -> tensor<1x9xf64>
    %row = nd.reshape %block : tensor<1x9xf64> -> tensor<9xf64>
    %at = nd.iota {axis = 0} : tensor<9xi64>
    %wide = nd.broadcast %i {dims = []} : tensor<i64> -> tensor<9xi64>
    %mask = nd.lt %at, %wide : tensor<9xi64> -> tensor<9xi1>
    %some = nd.select %mask, %row, %zero : tensor<9xf64>
    %sum = nd.matmul %some, %some : (tensor<9xf64>, tensor<9xf64>) -> tensor<f64>
    %sums = nd.broadcast %sum {dims = []} : tensor<f64> -> tensor<9xf64>
    %oldblock = nd.dynamic_slice %a, starts(%i, %first) {axes = [0, 1], sizes = [1, 9]} : (tensor<9x9xf64>, tensor<i64>, tensor<i64>) -> tensor<1x9xf64>
    %old = nd.reshape %oldblock : tensor<1x9xf64> -> tensor<9xf64>
    %new = nd.select %mask, %sums, %old : tensor<9xf64>
    %newblock = nd.reshape %new : tensor<9xf64> -> tensor<1x9xf64>
    %b = nd.dynamic_update_slice %a, %newblock, starts(%i, %first) {axes = [0, 1]} : (tensor<9x9xf64>, tensor<1x9xf64>, tensor<i64>, tensor<i64>) -> tensor<9x9xf64>
    %next = nd.add %i, %one : tensor<i64>
    nd.yield %next, %b : tensor<i64>, tensor<9x9xf64>
  }
  func.return %y : tensor<9x9xf64>
}

// Columns that follow from those before: each row goes through all of them, four rows side by side.
// CHECK-LABEL: func.func @columns
// CHECK:         arith.constant 4 : index
// CHECK:         scf.for {{.*}} -> (tensor<9x7xf64>) {
// CHECK-COUNT-4:   tensor.extract
// CHECK:           scf.for %k = {{.*}} -> (tensor<9x7xf64>, f64, f64, f64, f64) {
// CHECK-COUNT-4:     tensor.insert
// CHECK:         scf.for {{.*}} -> (tensor<9x7xf64>) {
// CHECK:           scf.for {{.*}} -> (tensor<9x7xf64>, f64) {
// CHECK-COUNT-1:     tensor.insert
// C-LABEL: kernel_columns
func.func @columns(%y0: tensor<9x7xf64>) -> tensor<9x7xf64> {
  %zero = nd.full 0 : tensor<i64>
  %one = nd.full 1 : tensor<i64>
  %n, %y = nd.while (%k0 = %one, %a0 = %y0) : tensor<i64>, tensor<9x7xf64> {
    %last = nd.full 7 : tensor<i64>
    %go = nd.lt %k0, %last : tensor<i64> -> tensor<i1>
    nd.condition %go
  } do (%k, %a) {
    %before = nd.sub %k, %one : tensor<i64>
    %old = nd.dynamic_slice %a, starts(%zero, %before) {axes = [0, 1], sizes = [9, 1]} : (tensor<9x7xf64>, tensor<i64>, tensor<i64>) -> tensor<9x1xf64>
    %now = nd.dynamic_slice %a, starts(%zero, %k) {axes = [0, 1], sizes = [9, 1]} : (tensor<9x7xf64>, tensor<i64>, tensor<i64>) -> tensor<9x1xf64>
    %new = nd.mul %now, %old : tensor<9x1xf64>
    %b = nd.dynamic_update_slice %a, %new, starts(%zero, %k) {axes = [0, 1]} : (tensor<9x7xf64>, tensor<9x1xf64>, tensor<i64>, tensor<i64>) -> tensor<9x7xf64>
    %next = nd.add %k, %one : tensor<i64>
    nd.yield %next, %b : tensor<i64>, tensor<9x7xf64>
  }
  func.return %y : tensor<9x7xf64>
}

// A loop counts as far as an element of an array says, which its test reads as a slice of one element: the element is read once, before the loop.
// CHECK-LABEL: func.func @bound_in_test
// CHECK:         %[[BOUND:.*]] = tensor.extract %q[
// CHECK:         arith.index_cast %[[BOUND]] : i8 to index
// CHECK:         scf.for {{.*}} -> (tensor<9xf64>) {
func.func @bound_in_test(%q: tensor<4xi8>, %y0: tensor<9xf64>) -> tensor<9xf64> {
  %zero = nd.full 0 : tensor<i8>
  %n, %y = nd.while (%k0 = %zero, %a0 = %y0) : tensor<i8>, tensor<9xf64> {
    %part = tensor.extract_slice %q[1] [1] [1] : tensor<4xi8> to tensor<1xi8>
    %last = tensor.collapse_shape %part [] : tensor<1xi8> into tensor<i8>
    %go = nd.lt %k0, %last : tensor<i8> -> tensor<i1>
    nd.condition %go
  } do (%k, %a) {
    %one = nd.full 1 : tensor<i8>
    %v = nd.full 2.0 : tensor<f64>
    %at = nd.cast %k : tensor<i8> -> tensor<i64>
    %b = nd.scatter %a, %v, indices(%at) {axes = [0]} : (tensor<9xf64>, tensor<f64>, tensor<i64>) -> tensor<9xf64>
    %next = nd.add %k, %one : tensor<i8>
    nd.yield %next, %b : tensor<i8>, tensor<9xf64>
  }
  func.return %y : tensor<9xf64>
}

// A window of a long array, both of whose ends the run decides: a row's sum runs over the row alone, in the loop of rows.
// CHECK-LABEL: func.func @ragged
// CHECK:         scf.for %i = {{.*}} -> (tensor<3xf64>) {
// CHECK:           arith.minsi %high
// CHECK-NEXT:      %[[END:.*]] = arith.maxsi
// CHECK-NEXT:      %[[HIGH:.*]] = arith.index_cast %[[END]]
// CHECK-NEXT:      %[[LOW:.*]] = arith.index_cast
// CHECK:           scf.for {{.*}} = %[[LOW]] to %[[HIGH]] {{.*}} -> (f64) {
// CHECK-NOT:         arith.select
// CHECK:             arith.addf
// C-LABEL: kernel_ragged
func.func @ragged(%rows: tensor<4xi64>, %x: tensor<20000xf64>, %y0: tensor<3xf64>) -> tensor<3xf64> {
  %zero = nd.full 0 : tensor<i64>
  %one = nd.full 1 : tensor<i64>
  %size = nd.full 20000 : tensor<i64>
  %zeros = nd.full 0.0 : tensor<20000xf64>
  %n, %y = nd.while (%i0 = %zero, %a0 = %y0) : tensor<i64>, tensor<3xf64> {
    %last = nd.full 3 : tensor<i64>
    %go = nd.lt %i0, %last : tensor<i64> -> tensor<i1>
    nd.condition %go
  } do (%i, %a) {
    %next = nd.add %i, %one : tensor<i64>
    %low = nd.gather %rows, indices(%i) {axes = [0]} : (tensor<4xi64>, tensor<i64>) -> tensor<i64>
    %high = nd.gather %rows, indices(%next) {axes = [0]} : (tensor<4xi64>, tensor<i64>) -> tensor<i64>
    %notbelow = nd.max %low, %zero : tensor<i64>
    %begin = nd.min %notbelow, %size : tensor<i64>
    %notabove = nd.min %high, %size : tensor<i64>
    %end = nd.max %notabove, %zero : tensor<i64>
    %least = nd.broadcast %begin {dims = []} : tensor<i64> -> tensor<20000xi64>
    %most = nd.broadcast %end {dims = []} : tensor<i64> -> tensor<20000xi64>
    %at = nd.iota {axis = 0} : tensor<20000xi64>
    %before = nd.lt %at, %most : tensor<20000xi64> -> tensor<20000xi1>
    %after = nd.ge %at, %least : tensor<20000xi64> -> tensor<20000xi1>
    %inside = nd.and %before, %after : tensor<20000xi1>
    %kept = nd.select %inside, %x, %zeros : tensor<20000xf64>
    %sum = nd.reduce_sum %kept {axes = [0]} : tensor<20000xf64> -> tensor<f64>
    %b = nd.scatter %a, %sum, indices(%i) {axes = [0]} : (tensor<3xf64>, tensor<f64>, tensor<i64>) -> tensor<3xf64>
    nd.yield %next, %b : tensor<i64>, tensor<3xf64>
  }
  func.return %y : tensor<3xf64>
}
