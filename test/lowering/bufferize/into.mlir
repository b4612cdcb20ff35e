// RUN: %stepwell-opt %s -p bufferize --split-input-file | filecheck %s
// A result that may take the memory of an argument: all is done there, the argument itself is only
// copied from, on entry.

// CHECK-LABEL: func.func @row
// CHECK-SAME: %a: memref<4x8xf32> {kernel.role = "input"}
// CHECK-SAME: [[Y:%\w+]]: memref<4x8xf32> {nd.into = 0 : i64, kernel.role = "output"}
// CHECK-NEXT: memref.copy %a, [[Y]]
// CHECK-NEXT: [[ROW:%\w+]] = memref.subview [[Y]][2, 0]
// CHECK-NEXT: memref.copy %v, [[ROW]]
// CHECK-NEXT: func.return
func.func @row(%a: tensor<4x8xf32>, %v: tensor<8xf32>) -> (tensor<4x8xf32> {nd.into = 0 : i64}) {
  %b = tensor.insert_slice %v into %a[2, 0][1, 8][1, 1] : tensor<8xf32> into tensor<4x8xf32>
  func.return %b : tensor<4x8xf32>
}

// -----
// The old contents are wanted too: they are copied before they are lost.
// CHECK-LABEL: func.func @both
// CHECK: memref.copy %a, [[Y:%\w+]] :
// CHECK: memref.copy [[Y]], [[OLD:%\w+]] :
// CHECK: memref.copy %v, {{%\w+}}
// CHECK-NEXT: func.return
func.func @both(%a: tensor<4x8xf32>, %v: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32> {nd.into = 0 : i64}) {
  %b = tensor.insert_slice %v into %a[2, 0][1, 8][1, 1] : tensor<8xf32> into tensor<4x8xf32>
  func.return %a, %b : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----
// Two arguments take each other's memory.
// CHECK-LABEL: func.func @exchange
// CHECK: memref.copy %a, [[A:%\w+]] :
// CHECK: memref.copy %b, [[B:%\w+]] :
// CHECK: memref.copy [[B]], [[T:%\w+]] :
// CHECK-NEXT: memref.copy [[A]], [[B]] :
// CHECK-NEXT: memref.copy [[T]], [[A]] :
func.func @exchange(%a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32> {nd.into = 0 : i64}, tensor<8xf32> {nd.into = 1 : i64}) {
  func.return %b, %a : tensor<8xf32>, tensor<8xf32>
}

// -----
// A loop leaves the arguments in their own places or in each other's: only the run knows.
// CHECK-LABEL: func.func @swapped
// CHECK: [[U:%\w+]], [[V:%\w+]] = scf.while (%u = %a_1, %v = %b_1)
// CHECK: memref.copy [[U]], [[T:%\w+]] :
// CHECK-NEXT: memref.copy [[V]], %b_1 :
// CHECK-NEXT: memref.copy [[T]], %a_1 :
func.func @swapped(%go: tensor<i1>, %a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32> {nd.into = 1 : i64}, tensor<8xf32> {nd.into = 2 : i64}) {
  %r, %q = scf.while (%u = %a, %v = %b) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
    %c = tensor.extract %go[] : tensor<i1>
    scf.condition(%c) %u, %v : tensor<8xf32>, tensor<8xf32>
  } do {
  ^bb0(%u: tensor<8xf32>, %v: tensor<8xf32>):
    scf.yield %v, %u : tensor<8xf32>, tensor<8xf32>
  }
  func.return %r, %q : tensor<8xf32>, tensor<8xf32>
}
