// RUN: %stepwell-opt %s -p bufferize --split-input-file --verify-diagnostics

// expected-error@+1 {{result 0: nd.into = 3 : i64 names no argument of its own}}
func.func @main(%a: tensor<8xf32>) -> (tensor<8xf32> {nd.into = 3 : i64}) {
  func.return %a : tensor<8xf32>
}

// -----

// expected-error@+1 {{result 1: nd.into = 0 : i64 names no argument of its own}}
func.func @main(%a: tensor<8xf32>) -> (tensor<8xf32> {nd.into = 0 : i64}, tensor<8xf32> {nd.into = 0 : i64}) {
  func.return %a, %a : tensor<8xf32>, tensor<8xf32>
}

// -----

// expected-error@+1 {{result 0 has another type than argument 0, its memory}}
func.func @main(%a: tensor<8xf32>, %b: tensor<4xf32>) -> (tensor<4xf32> {nd.into = 0 : i64}) {
  func.return %b : tensor<4xf32>
}
