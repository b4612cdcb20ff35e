// RUN: %stepwell-opt %s -p canonicalize,cse,dce | filecheck %s
//
// What xDSL says of ops of acc and omp is that they do what they contain; they update, copy and begin threads besides.

// an update of memory stays, though what it contains is pure
func.func @update(%x: memref<i32>, %v: i32) {
  acc.atomic.update %x : memref<i32> {
  ^bb0(%a: i32):
    %s = arith.addi %a, %v : i32
    acc.yield %s : i32
  }
  func.return
}
// CHECK-LABEL: func.func @update
//       CHECK: acc.atomic.update
//       CHECK: arith.addi

// so does what contains it, with or without results
func.func @nested(%x: memref<i32>, %v: i32, %c: i1) {
  scf.if %c {
    acc.atomic.update %x : memref<i32> {
    ^bb0(%a: i32):
      acc.yield %v : i32
    }
  }
  %unused = scf.if %c -> (i32) {
    acc.atomic.update %x : memref<i32> {
    ^bb0(%a: i32):
      acc.yield %v : i32
    }
    scf.yield %v : i32
  } else {
    scf.yield %v : i32
  }
  func.return
}
// CHECK-LABEL: func.func @nested
//       CHECK: acc.atomic.update
//       CHECK: scf.if
//       CHECK: acc.atomic.update

// a loop that does nothing is nothing
func.func @nothing(%c: i1) {
  scf.if %c {
  }
  func.return
}
// CHECK-LABEL: func.func @nothing
//   CHECK-NOT: scf.if

// two that are alike are two
func.func @twice(%x: memref<i32>, %v: i32) {
  acc.atomic.update %x : memref<i32> {
  ^bb0(%a: i32):
    acc.yield %v : i32
  }
  acc.atomic.update %x : memref<i32> {
  ^bb0(%a: i32):
    acc.yield %v : i32
  }
  func.return
}
// CHECK-LABEL: func.func @twice
//       CHECK: acc.atomic.update
//       CHECK: acc.atomic.update
