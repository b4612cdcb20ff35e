// RUN: %stepwell-opt %s --split-input-file --verify-diagnostics -p 'canonicalize'
// RUN: not %stepwell-opt %s --split-input-file 2>&1 | filecheck %s

// Line numbers count from the top of the file, in every part of it.

func.func @unknown_op(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{unknown op 'nd.trnspose'}}
  %y = nd.trnspose %x : tensor<4xf32>
  func.return %y : tensor<4xf32>
}
// CHECK:      diagnostics.mlir:8:8: error: unknown op 'nd.trnspose'
// CHECK-NEXT:     8 |   %y = nd.trnspose %x : tensor<4xf32>
// CHECK-NEXT:       |        ^^^^^^^^^^^
// CHECK-NEXT:    help: did you mean 'nd.transpose'?

// -----

// expected-error@+1 {{unknown op 'ndd.add': there is no dialect 'ndd'}}
"ndd.add"() : () -> ()
// CHECK:      diagnostics.mlir:{{[0-9]+}}:2: error: unknown op 'ndd.add': there is no dialect 'ndd'
// CHECK:         help: did you mean 'nd'?

// -----

func.func @undefined(%value: i32) -> i32 {
  // expected-error@+1 {{%valeu is used but never defined}}
  %r = arith.addi %value, %valeu : i32
  func.return %r : i32
}
// CHECK:      error: %valeu is used but never defined
// CHECK:         help: did you mean '%value'?

// -----

func.func @twice(%x: i32) -> i32 {
  // expected-note@+1 {{it was first defined here}}
  %y = arith.addi %x, %x : i32
  // expected-error@+1 {{%y is defined twice}}
  %y = arith.addi %x, %x : i32
  func.return %y : i32
}
// CHECK:      error: %y is defined twice
// CHECK:      note: it was first defined here

// -----

func.func @too_early(%x: i32) -> i32 {
  // expected-error@+1 {{'arith.addi': %y is used before it is defined}}
  %z = arith.addi %y, %x : i32
  // expected-note@+1 {{it is defined here}}
  %y = arith.addi %x, %x : i32
  func.return %z : i32
}
// CHECK:      error: 'arith.addi': %y is used before it is defined
// CHECK:      note: it is defined here

// -----

func.func @wrong_type(%x: i32) -> i64 {
  // expected-error@+1 {{%x has type i32, but is used here as i64}}
  %y = arith.addi %x, %x : i64
  func.return %y : i64
}

// -----

// A module that breaks a constraint is told where, without a dump of the module.
func.func @verifier(%x: tensor<4xf32>) -> tensor<3xf32> {
  // expected-error@+1 {{'nd.neg': result must be tensor<4xf32>, got tensor<3xf32>}}
  %y = "nd.neg"(%x) : (tensor<4xf32>) -> tensor<3xf32>
  func.return %y : tensor<3xf32>
}
// CHECK:      error: 'nd.neg': result must be tensor<4xf32>, got tensor<3xf32>

// -----

// expected-error@+1 {{unexpected end of the file}}
func.func @truncated(%x: i32) {
