// RUN: %stepwell-opt %s --split-input-file --verify-diagnostics

// check_c1
func.func @kind(%c: tensor<i1>) {
  // expected-error@+1 {{no check raises 'SystemExit'; there are ArithmeticError}}
  nd.check %c {kind = "SystemExit", words = ["a"]}
  func.return
}

// -----

// check_c2
func.func @words(%c: tensor<i1>) {
  // expected-error@+1 {{there must be one text more than numbers, got 2 and 0}}
  nd.check %c {kind = "ValueError", words = ["a", "b"]}
  func.return
}

// -----

// check_c2
func.func @numbers(%c: tensor<i1>, %i: tensor<i64>) {
  // expected-error@+1 {{a message has 2 numbers at most, got 3}}
  nd.check %c, %i, %i, %i : tensor<i64>, tensor<i64>, tensor<i64> {kind = "ValueError", words = ["", "", "", ""]}
  func.return
}

// -----

func.func @floats(%c: tensor<i1>, %i: tensor<f32>) {
  // expected-error@+1 {{numbers of a message are tensor<i64>}}
  nd.check %c, %i : tensor<f32> {kind = "ValueError", words = ["", ""]}
  func.return
}

// -----

func.func @rank(%c: tensor<i1>, %i: tensor<4xi64>) {
  // expected-error@+1 {{numbers of a message are tensor<i64>}}
  nd.check %c, %i : tensor<4xi64> {kind = "ValueError", words = ["", ""]}
  func.return
}
