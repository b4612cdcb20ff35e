// RUN: %stepwell-opt %s | %stepwell-opt | filecheck %s
// RUN: %stepwell-opt %s --print-op-generic | %stepwell-opt | filecheck %s

// A kernel, its schedule and its launch round-trip.
kernel.func @k(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> attributes {levels = #kernel.schedule<[parallel d0 by 64 {grain 2}, unroll d0 by 16, vector d0 by 16]>} {
  kernel.return %x : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %y = kernel.launch @k ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// CHECK:      kernel.func @k(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32>
// CHECK-SAME: #kernel.schedule<[parallel d0 by 64 {grain 2}, unroll d0 by 16, vector d0 by 16]>
// CHECK-NEXT:   kernel.return %x : tensor<4xf32>
// CHECK:      func.func @main
// CHECK:        %y = kernel.launch @k ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>

// Branches round-trip.
kernel.func @fill(%y: memref<4xf32>) {
  kernel.return
}
func.func @branches(%x: memref<4xf32>, %y: memref<4xf32>) {
  kernel.concurrent {
    kernel.launch @fill outs(%x : memref<4xf32>)
  } and {
    kernel.launch @fill outs(%y : memref<4xf32>)
  }
  func.return
}

// CHECK:      func.func @branches
// CHECK-NEXT:   kernel.concurrent {
// CHECK-NEXT:     kernel.launch @fill outs(%x : memref<4xf32>)
// CHECK-NEXT:   } and {
// CHECK-NEXT:     kernel.launch @fill outs(%y : memref<4xf32>)
// CHECK-NEXT:   }

// So does asking for memory.
func.func @ask(%x: memref<4x4xf32>, %i: index) {
  kernel.prefetch %x[%i, %i] : memref<4x4xf32>
  func.return
}

// CHECK:      func.func @ask
// CHECK-NEXT:   kernel.prefetch %x[%i, %i] : memref<4x4xf32>

// And looking numbers up in a vector.
func.func @find(%t: vector<16xf32>, %i: i32, %v: vector<8xi32>) {
  %x = kernel.lookup %t[%i] : vector<16xf32>, i32 -> f32
  %y = kernel.lookup %t[%v] : vector<16xf32>, vector<8xi32> -> vector<8xf32>
  func.return
}

// CHECK:      func.func @find
// CHECK-NEXT:   %x = kernel.lookup %t[%i] : vector<16xf32>, i32 -> f32
// CHECK-NEXT:   %y = kernel.lookup %t[%v] : vector<16xf32>, vector<8xi32> -> vector<8xf32>

// Products of bytes round-trip, whatever their signs, and those of floats of 16 bits.
func.func @dots(%s: i32, %x: i32, %w: i32, %t: vector<4xi32>, %v: vector<4xi32>, %f: vector<4xf32>, %r: f32) {
  %a = kernel.dot %s, %x of i8, %w of i8 : i32 -> i32
  %b = kernel.dot %s, %x of ui8, %w of i8 : i32 -> i32
  %c = kernel.dot %s, %x of i8, %w of ui8 : i32 -> i32
  %d = kernel.dot %t, %v of ui8, %v of ui8 : vector<4xi32> -> vector<4xi32>
  %e = kernel.dot %f, %v of bf16, %v of bf16 : vector<4xi32> -> vector<4xf32>
  %g = kernel.dot %r, %x of f16, %w of f16 : i32 -> f32
  func.return
}

// CHECK-LABEL: func.func @dots
// CHECK-NEXT:    %a = kernel.dot %s, %x of i8, %w of i8 : i32 -> i32
// CHECK-NEXT:    %b = kernel.dot %s, %x of ui8, %w of i8 : i32 -> i32
// CHECK-NEXT:    %c = kernel.dot %s, %x of i8, %w of ui8 : i32 -> i32
// CHECK-NEXT:    %d = kernel.dot %t, %v of ui8, %v of ui8 : vector<4xi32> -> vector<4xi32>
// CHECK-NEXT:    %e = kernel.dot %f, %v of bf16, %v of bf16 : vector<4xi32> -> vector<4xf32>
// CHECK-NEXT:    %g = kernel.dot %r, %x of f16, %w of f16 : i32 -> f32

// Products of words are added to the first rows of a tile of 32 rows of sums in memory, 64 of which are there. Rows may be given as
// elements too, and sums may be in the middle of a larger result.
func.func @tiles(%z: memref<64x32xf32>, %x: memref<64x40xi32>, %w: memref<40x32xi32>, %i: index, %n: index, %s: memref<1xi64>, %y: memref<2x?x96xf32>, %v: memref<?x128xbf16>) {
  kernel.dot_tile %z[%i, %i], %x[%i, %i] of bf16, %w of bf16, %n rows %i of 32 shapes %s : memref<64x32xf32>, memref<64x40xi32>, memref<40x32xi32>
  kernel.dot_tile %y[%i, %i, %n], %v[%i, %n] of bf16, %w of bf16, %n rows %i of 32 shapes %s from_zero : memref<2x?x96xf32>, memref<?x128xbf16>, memref<40x32xi32>
  kernel.release_tiles %s
  func.return
}

// CHECK-LABEL: func.func @tiles
// CHECK-NEXT:    kernel.dot_tile %z[%i, %i], %x[%i, %i] of bf16, %w of bf16, %n rows %i of 32 shapes %s : memref<64x32xf32>, memref<64x40xi32>, memref<40x32xi32>
// CHECK-NEXT:    kernel.dot_tile %y[%i, %i, %n], %v[%i, %n] of bf16, %w of bf16, %n rows %i of 32 shapes %s from_zero : memref<2x?x96xf32>, memref<?x128xbf16>, memref<40x32xi32>
// CHECK-NEXT:    kernel.release_tiles %s

// What ends the call with an exception.
func.func @check(%c: i1, %i: i64) {
  kernel.check %c {kind = "AssertionError", words = [""]}
  kernel.check %c, %i, %i : i64, i64 {kind = "IndexError", words = ["", " of ", ""]}
  func.return
}

// CHECK-LABEL: func.func @check
// CHECK-NEXT:    kernel.check %c {kind = "AssertionError", words = [""]}
// CHECK-NEXT:    kernel.check %c, %i, %i : i64, i64 {kind = "IndexError", words = ["", " of ", ""]}

// So do tensors put one after the other.
func.func @stack(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> tensor<2x8xf32> {
  %s = kernel.stack %a, %b : tensor<2x3xf32> -> tensor<2x8xf32>
  func.return %s : tensor<2x8xf32>
}

// CHECK:      func.func @stack
// CHECK-NEXT:   %s = kernel.stack %a, %b : tensor<2x3xf32> -> tensor<2x8xf32>

// Rows of a length that only the launch knows.
func.func @stack_by(%a: tensor<?x3xf32>, %b: tensor<?x3xf32>, %n: index) -> tensor<2x?xf32> {
  %s = kernel.stack %a, %b by %n : tensor<?x3xf32> -> tensor<2x?xf32>
  func.return %s : tensor<2x?xf32>
}

// CHECK:      func.func @stack_by
// CHECK-NEXT:   %s = kernel.stack %a, %b by %n : tensor<?x3xf32> -> tensor<2x?xf32>

// A kernel whose loop only the launch counts may say how it runs where it is short.
kernel.func @versions(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> attributes {kernel.shared = 1, kernel.versions = [#kernel.version<d0 from 0 to 8, #kernel.schedule<[for d0]>>]} {
  kernel.return %y : tensor<?xf32>
}

// CHECK:      kernel.func @versions
// CHECK-SAME:   kernel.versions = [#kernel.version<d0 from 0 to 8, #kernel.schedule<[for d0]>>]

// How much of a parallel loop is worth a thread, where only the launch knows.
func.func @grain(%n: index) {
  kernel.grain %n
  func.return
}

// CHECK:      func.func @grain
// CHECK-NEXT:   kernel.grain %n
