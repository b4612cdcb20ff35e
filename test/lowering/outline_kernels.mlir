// RUN: %stepwell-opt %s -p outline-kernels | filecheck %s

#id1 = affine_map<(d0) -> (d0)>
#id2 = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
#none1 = affine_map<(d0) -> ()>
#mk = affine_map<(d0, d1, d2) -> (d0, d2)>
#kn = affine_map<(d0, d1, d2) -> (d2, d1)>
#mn = affine_map<(d0, d1, d2) -> (d0, d1)>

// A softmax is one kernel over rows; only its result has a destination outside.
// CHECK:       kernel.func @softmax_softmax(%x: tensor<?x64xf32>, %n: index, %y: tensor<?x64xf32>) -> tensor<?x64xf32> attributes {kernel.shared = 1 : i64} {
// CHECK:         %{{.*}} = tensor.empty(%n) : tensor<?xf32>
// CHECK:         linalg.fill
// CHECK:         arith.maximumf
// CHECK:         math.exp
// CHECK:         arith.addf
// CHECK:         %y_1 = linalg.generic
// CHECK-SAME:      outs(%y : tensor<?x64xf32>)
// CHECK:         kernel.return %y_1 : tensor<?x64xf32>
// CHECK-LABEL: func.func @softmax(
// CHECK:         %n = tensor.dim
// CHECK-NEXT:    %[[E:.*]] = tensor.empty(%n) : tensor<?x64xf32>
// CHECK-NEXT:    %y = kernel.launch @softmax_softmax ins(%x, %n : tensor<?x64xf32>, index) outs(%[[E]] : tensor<?x64xf32>) -> tensor<?x64xf32>
// CHECK-NEXT:    func.return %y
func.func @softmax(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x64xf32>
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %er = tensor.empty(%n) : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?x64xf32>
  %i0 = linalg.fill ins(%low : f32) outs(%er : tensor<?xf32>) -> tensor<?xf32>
  %m = linalg.generic {indexing_maps = [#id2, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<?x64xf32>) outs(%i0 : tensor<?xf32>) {
  ^bb0(%in: f32, %o: f32):
    %z = arith.maximumf %o, %in : f32
    linalg.yield %z : f32
  } -> tensor<?xf32>
  %p = linalg.generic {indexing_maps = [#id2, #row, #id2], iterator_types = ["parallel", "parallel"]}
    ins(%x, %m : tensor<?x64xf32>, tensor<?xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%in: f32, %in1: f32, %o: f32):
    %z = arith.subf %in, %in1 : f32
    %w = math.exp %z : f32
    linalg.yield %w : f32
  } -> tensor<?x64xf32>
  %i1 = linalg.fill ins(%zero : f32) outs(%er : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.generic {indexing_maps = [#id2, #row], iterator_types = ["parallel", "reduction"]}
    ins(%p : tensor<?x64xf32>) outs(%i1 : tensor<?xf32>) {
  ^bb0(%in: f32, %o: f32):
    %z = arith.addf %o, %in : f32
    linalg.yield %z : f32
  } -> tensor<?xf32>
  %y = linalg.generic {indexing_maps = [#id2, #row, #id2], iterator_types = ["parallel", "parallel"]}
    ins(%p, %s : tensor<?x64xf32>, tensor<?xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%in: f32, %in1: f32, %o: f32):
    %z = arith.divf %in, %in1 : f32
    linalg.yield %z : f32
  } -> tensor<?x64xf32>
  func.return %y : tensor<?x64xf32>
}

// Bias and activation go into the kernel of the contraction; two equal layers are one kernel.
// CHECK:       kernel.func @mlp_matmul_add_relu(%x: tensor<128x128xf32>, %w: tensor<128x128xf32>, %b: tensor<128xf32>, %r: tensor<128x128xf32>) -> tensor<128x128xf32> attributes {kernel.shared = 2 : i64} {
// CHECK-NOT:   kernel.func
// CHECK-LABEL: func.func @mlp(
// CHECK:         %r = kernel.launch @mlp_matmul_add_relu ins(%x, %w, %b
// CHECK-NEXT:    %[[E:.*]] = tensor.empty()
// CHECK-NEXT:    %r2 = kernel.launch @mlp_matmul_add_relu ins(%r, %v, %b {{.*}} outs(%[[E]]
// CHECK-NOT:     linalg
// CHECK:         func.return %r2
func.func @mlp(%x: tensor<128x128xf32>, %w: tensor<128x128xf32>, %v: tensor<128x128xf32>, %b: tensor<128xf32>) -> tensor<128x128xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x128xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<128x128xf32>) -> tensor<128x128xf32>
  %h = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%x, %w : tensor<128x128xf32>, tensor<128x128xf32>) outs(%i : tensor<128x128xf32>) {
  ^bb0(%in: f32, %in1: f32, %o: f32):
    %z = arith.mulf %in, %in1 : f32
    %y = arith.addf %o, %z : f32
    linalg.yield %y : f32
  } -> tensor<128x128xf32>
  %r = linalg.generic {indexing_maps = [#id2, #col, #id2], iterator_types = ["parallel", "parallel"]}
    ins(%h, %b : tensor<128x128xf32>, tensor<128xf32>) outs(%e : tensor<128x128xf32>) {
  ^bb0(%in: f32, %in1: f32, %o: f32):
    %c = arith.constant 0.0 : f32
    %z = arith.addf %in, %in1 : f32
    %y = arith.maximumf %z, %c : f32
    linalg.yield %y : f32
  } -> tensor<128x128xf32>
  %h2 = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%r, %v : tensor<128x128xf32>, tensor<128x128xf32>) outs(%i : tensor<128x128xf32>) {
  ^bb0(%in: f32, %in1: f32, %o: f32):
    %z = arith.mulf %in, %in1 : f32
    %y = arith.addf %o, %z : f32
    linalg.yield %y : f32
  } -> tensor<128x128xf32>
  %r2 = linalg.generic {indexing_maps = [#id2, #col, #id2], iterator_types = ["parallel", "parallel"]}
    ins(%h2, %b : tensor<128x128xf32>, tensor<128xf32>) outs(%e : tensor<128x128xf32>) {
  ^bb0(%in: f32, %in1: f32, %o: f32):
    %c = arith.constant 0.0 : f32
    %z = arith.addf %in, %in1 : f32
    %y = arith.maximumf %z, %c : f32
    linalg.yield %y : f32
  } -> tensor<128x128xf32>
  func.return %r2 : tensor<128x128xf32>
}

// Loops are interchanged so that the shared one leads: here columns, and rows are private.
// CHECK:       kernel.func @columns_sum_div
// CHECK-SAME:    attributes {kernel.shared = 1 : i64}
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
// CHECK:         linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d1, d0)>], iterator_types = ["parallel", "parallel"]}
// CHECK-LABEL: func.func @columns(
func.func @columns(%x: tensor<512x256xf32>) -> tensor<512x256xf32> {
  %zero = arith.constant 0.0 : f32
  %er = tensor.empty() : tensor<256xf32>
  %e = tensor.empty() : tensor<512x256xf32>
  %i1 = linalg.fill ins(%zero : f32) outs(%er : tensor<256xf32>) -> tensor<256xf32>
  %s = linalg.generic {indexing_maps = [#id2, #col], iterator_types = ["reduction", "parallel"]}
    ins(%x : tensor<512x256xf32>) outs(%i1 : tensor<256xf32>) {
  ^bb0(%in: f32, %o: f32):
    %z = arith.addf %o, %in : f32
    linalg.yield %z : f32
  } -> tensor<256xf32>
  %y = linalg.generic {indexing_maps = [#id2, #col, #id2], iterator_types = ["parallel", "parallel"]}
    ins(%x, %s : tensor<512x256xf32>, tensor<256xf32>) outs(%e : tensor<512x256xf32>) {
  ^bb0(%in: f32, %in1: f32, %o: f32):
    %z = arith.divf %in, %in1 : f32
    linalg.yield %z : f32
  } -> tensor<512x256xf32>
  func.return %y : tensor<512x256xf32>
}

// A full reduction and what is made of the number it gives are one kernel without shared loops.
// CHECK:       kernel.func @mean_sum_mul(
// CHECK-SAME:    attributes {kernel.shared = 0 : i64}
// CHECK-LABEL: func.func @mean(
// CHECK:         kernel.launch @mean_sum_mul
// CHECK-NEXT:    func.return
func.func @mean(%x: tensor<1048576xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %er = tensor.empty() : tensor<f32>
  %i1 = linalg.fill ins(%zero : f32) outs(%er : tensor<f32>) -> tensor<f32>
  %s = linalg.generic {indexing_maps = [#id1, #none1], iterator_types = ["reduction"]}
    ins(%x : tensor<1048576xf32>) outs(%i1 : tensor<f32>) {
  ^bb0(%in: f32, %o: f32):
    %z = arith.addf %o, %in : f32
    linalg.yield %z : f32
  } -> tensor<f32>
  %y = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
    ins(%s : tensor<f32>) outs(%er : tensor<f32>) {
  ^bb0(%in: f32, %o: f32):
    %c = arith.constant 9.5367431640625e-07 : f32
    %z = arith.mulf %in, %c : f32
    linalg.yield %z : f32
  } -> tensor<f32>
  func.return %y : tensor<f32>
}

// A pad is a kernel that fills and a view that the host copies into.
// CHECK:       kernel.func @pad_fill({{.*}} attributes {kernel.shared = 1 : i64}
// CHECK-NEXT:    arith.constant
// CHECK-NEXT:    linalg.fill
// CHECK-NEXT:    kernel.return
// CHECK-LABEL: func.func @pad(
// CHECK:         %[[F:.*]] = kernel.launch @pad_fill outs
// CHECK-NEXT:    tensor.insert_slice %x into %[[F]]
func.func @pad(%x: tensor<4xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %r = "tensor.insert_slice"(%x, %f) <{static_offsets = array<i64: 2>, static_sizes = array<i64: 4>, static_strides = array<i64: 1>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}> : (tensor<4xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %r : tensor<8xf32>
}

// A scatter is a kernel that updates its destination; a loop of kernels stays with the host.
// CHECK:       kernel.func @scatter_scatter(%at: tensor<4xindex>, %u: tensor<4xf32>, %r: tensor<8xf32>) -> tensor<8xf32>
// CHECK:         scf.for
// CHECK:           tensor.insert
// CHECK-LABEL: func.func @scatter(
// CHECK:         kernel.launch @scatter_scatter ins(%at, %u : tensor<4xindex>, tensor<4xf32>) outs(%x : tensor<8xf32>)
func.func @scatter(%x: tensor<8xf32>, %u: tensor<4xf32>, %at: tensor<4xindex>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %x) -> (tensor<8xf32>) {
    %k = tensor.extract %at[%i] : tensor<4xindex>
    %v = tensor.extract %u[%i] : tensor<4xf32>
    %n = tensor.insert %v into %acc[%k] : tensor<8xf32>
    scf.yield %n : tensor<8xf32>
  }
  func.return %r : tensor<8xf32>
}

// CHECK:       kernel.func @loop_add(
// CHECK-LABEL: func.func @loop(
// CHECK:         scf.for
// CHECK-NEXT:      tensor.empty
// CHECK-NEXT:      kernel.launch @loop_add ins(%acc, %s : tensor<8xf32>, f32)
// CHECK-NEXT:      scf.yield
func.func @loop(%x: tensor<8xf32>, %n: index, %s: f32) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<8xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %x) -> (tensor<8xf32>) {
    %y = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]}
      ins(%acc : tensor<8xf32>) outs(%e : tensor<8xf32>) {
    ^bb0(%in: f32, %o: f32):
      %z = arith.addf %in, %s : f32
      linalg.yield %z : f32
    } -> tensor<8xf32>
    scf.yield %y : tensor<8xf32>
  }
  func.return %r : tensor<8xf32>
}

// What nothing needs is no kernel.
// CHECK-LABEL: func.func @dead(
// CHECK-NEXT:    func.return %x
func.func @dead(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]}
    ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %o: f32):
    %z = arith.negf %in : f32
    linalg.yield %z : f32
  } -> tensor<8xf32>
  %v = tensor.expand_shape %y [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>
  func.return %x : tensor<8xf32>
}

// A tensor of single elements is made on the host; one element is replaced by a kernel, as many are.
// CHECK-LABEL:   func.func @elements(
// CHECK-NEXT:      tensor.from_elements
// CHECK-NEXT:      kernel.launch @elements_scatter
// CHECK-NEXT:      func.return
func.func @elements(%x: f32, %i: index) -> tensor<2xf32> {
  %a = tensor.from_elements %x, %x : tensor<2xf32>
  %b = tensor.insert %x into %a[%i] : tensor<2xf32>
  func.return %b : tensor<2xf32>
}

// What is summed as it is stored is one op, and so are two reductions of one tensor; each row is
// walked over once.
//
// CHECK-LABEL: kernel.func @row_walks_exp_sum_mul
//       CHECK: %exp_1, %sum_1, %squares_1 = linalg.generic
//  CHECK-SAME: iterator_types = ["parallel", "reduction"]
//  CHECK-SAME: ins(%x : tensor<8x5xf32>) outs(%exp, %start, %start_1
//       CHECK: %[[V:.*]] = math.exp
//       CHECK: linalg.yield
func.func @row_walks(%x: tensor<8x5xf32>) -> (tensor<8x5xf32>, tensor<8xf32>, tensor<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x5xf32>
  %r = tensor.empty() : tensor<8xf32>
  %exp = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x5xf32>) outs(%e : tensor<8x5xf32>) {
  ^bb0(%in: f32, %out: f32):
    %y = math.exp %in : f32
    linalg.yield %y : f32
  } -> tensor<8x5xf32>
  %start = linalg.fill ins(%zero : f32) outs(%r : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%exp : tensor<8x5xf32>) outs(%start : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %y = arith.addf %out, %in : f32
    linalg.yield %y : f32
  } -> tensor<8xf32>
  %squares = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%exp : tensor<8x5xf32>) outs(%start : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.mulf %in, %in : f32
    %y = arith.addf %out, %s : f32
    linalg.yield %y : f32
  } -> tensor<8xf32>
  func.return %exp, %sum, %squares : tensor<8x5xf32>, tensor<8xf32>, tensor<8xf32>
}

// What is gathered along the loop that a cheap op before has would be written across rows: two kernels.
//
// CHECK-LABEL: func.func @gathered
//       CHECK: kernel.launch
//       CHECK: kernel.launch
func.func @gathered(%x: tensor<512x512xf32>, %i: tensor<512xindex>) -> tensor<512x512xf32> {
  %e = tensor.empty() : tensor<512xindex>
  %o = tensor.empty() : tensor<512x512xf32>
  %one = arith.constant 1 : index
  %n = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]} ins(%i : tensor<512xindex>) outs(%e : tensor<512xindex>) {
  ^bb0(%a: index, %c: index):
    %s = arith.addi %a, %one : index
    linalg.yield %s : index
  } -> tensor<512xindex>
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, #id2], iterator_types = ["parallel", "parallel"]} ins(%n : tensor<512xindex>) outs(%o : tensor<512x512xf32>) {
  ^bb0(%at: index, %c: f32):
    %r = linalg.index 0 : index
    %v = tensor.extract %x[%r, %at] : tensor<512x512xf32>
    linalg.yield %v : f32
  } -> tensor<512x512xf32>
  func.return %y : tensor<512x512xf32>
}

// What a scatter reads of the tensor that it starts from is as it was before: it is passed twice.
//
// CHECK-LABEL: func.func @onto_itself(
//  CHECK-NEXT:   kernel.launch @onto_itself_scatter ins(%p, %v : {{.*}}) outs(%v :
func.func @onto_itself(%v: tensor<8xf32>, %p: tensor<8xindex>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %y = scf.for %i = %c0 to %c8 step %c1 iter_args(%z = %v) -> (tensor<8xf32>) {
    %at = tensor.extract %p[%i] : tensor<8xindex>
    %new = tensor.extract %v[%i] : tensor<8xf32>
    %w = tensor.insert %new into %z[%at] : tensor<8xf32>
    scf.yield %w : tensor<8xf32>
  }
  func.return %y : tensor<8xf32>
}

// Two ops that walk over the same elements are one, what gathers from the first after it.
//
// CHECK-LABEL: kernel.func @gather_between
//       CHECK:   %neg, %exp_1 = linalg.generic
//       CHECK:   tensor.extract %neg
func.func @gather_between(%x: tensor<64xf32>, %i: tensor<20xindex>) -> (tensor<20xf32>, tensor<64xf32>) {
  %e = tensor.empty() : tensor<64xf32>
  %neg = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]} ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  %e1 = tensor.empty() : tensor<20xf32>
  %gather = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]} ins(%i : tensor<20xindex>) outs(%e1 : tensor<20xf32>) {
  ^bb0(%k: index, %b: f32):
    %n = tensor.extract %neg[%k] : tensor<64xf32>
    linalg.yield %n : f32
  } -> tensor<20xf32>
  %e2 = tensor.empty() : tensor<64xf32>
  %exp = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]} ins(%neg : tensor<64xf32>) outs(%e2 : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32):
    %n = math.exp %a : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  func.return %gather, %exp : tensor<20xf32>, tensor<64xf32>
}

// Numbers are computed in kernels only, those of a single element too.
//
// CHECK-LABEL: kernel.func @one_element_scatter
//       CHECK:   scf.if
//       CHECK:     arith.addf
// CHECK-LABEL: func.func @one_element(
//  CHECK-NEXT:   kernel.launch @one_element_scatter ins(%i : index) outs(%x
func.func @one_element(%x: tensor<16xf32>, %i: index) -> tensor<16xf32> {
  %one = arith.constant 1.0 : f32
  %n = arith.constant 16 : index
  %inside = arith.cmpi ult, %i, %n : index
  %y = scf.if %inside -> (tensor<16xf32>) {
    %a = tensor.extract %x[%i] : tensor<16xf32>
    %b = arith.addf %a, %one : f32
    %z = tensor.insert %b into %x[%i] : tensor<16xf32>
    scf.yield %z : tensor<16xf32>
  } else {
    scf.yield %x : tensor<16xf32>
  }
  func.return %y : tensor<16xf32>
}
