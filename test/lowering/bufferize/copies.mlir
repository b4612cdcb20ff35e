// RUN: %stepwell-opt %s -p bufferize --split-input-file --check | filecheck %s
//
// Copies that need not be: of what a loop carries and nobody reads, of results of branches, of
// every second row.

#id = affine_map<(d0) -> (d0)>
kernel.func @neg(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> attributes {kernel.shared = 1 : i64} {
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%y : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  kernel.return %r : tensor<8xf32>
}

// CHECK-LABEL: func.func @unread
// CHECK:         scf.for
// CHECK-NEXT:      memref.subview
// CHECK-NEXT:      memref.copy %x,
// CHECK-NEXT:    }
func.func @unread(%x: tensor<8xf32>, %all: tensor<24xf32>) -> tensor<24xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c24 = arith.constant 24 : index
  %r, %last = scf.for %i = %c0 to %c24 step %c8 iter_args(%rows = %all, %row = %x) -> (tensor<24xf32>, tensor<8xf32>) {
    %next = tensor.insert_slice %x into %rows[%i] [8] [1] : tensor<8xf32> into tensor<24xf32>
    %same = tensor.extract_slice %next[%i] [8] [1] : tensor<24xf32> to tensor<8xf32>
    scf.yield %next, %same : tensor<24xf32>, tensor<8xf32>
  }
  func.return %r : tensor<24xf32>
}

// CHECK-LABEL: func.func @branches
// CHECK-NOT:     memref.copy
// CHECK:         func.return
func.func @branches(%go: tensor<i1>, %x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %c = tensor.extract %go[] : tensor<i1>
  %e = tensor.empty() : tensor<8xf32>
  %a = kernel.launch @neg ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %p, %q = scf.if %c -> (tensor<8xf32>, tensor<8xf32>) {
    %b = kernel.launch @neg ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %a, %b : tensor<8xf32>, tensor<8xf32>
  } else {
    %d = kernel.launch @neg ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    scf.yield %a, %d : tensor<8xf32>, tensor<8xf32>
  }
  func.return %p, %q : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @strided
// CHECK-NOT:     memref.copy
// CHECK:         func.return
func.func @strided(%x: tensor<8xf32>) -> tensor<16xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %a = kernel.launch @neg ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %b = kernel.launch @neg ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %0 = tensor.empty() : tensor<16xf32>
  %1 = tensor.insert_slice %a into %0[0] [8] [2] : tensor<8xf32> into tensor<16xf32>
  %2 = tensor.insert_slice %b into %1[1] [8] [2] : tensor<8xf32> into tensor<16xf32>
  func.return %2 : tensor<16xf32>
}
