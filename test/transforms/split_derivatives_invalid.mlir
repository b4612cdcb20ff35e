// RUN: %stepwell-opt %s -p split-derivatives --split-input-file --verify-diagnostics

// expected-error@+1 {{nd.part is before or after, and nd.later has two numbers}}
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {nd.part = "between", nd.later = [1, 1]} {
  func.return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{nd.part is before or after, and nd.later has two numbers}}
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {nd.part = "before"} {
  func.return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{@f has less than nd.later says}}
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {nd.part = "before", nd.later = [2, 1]} {
  func.return %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{a result of the part before is made of the last 1 arguments}}
func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {nd.part = "before", nd.later = [1, 1]} {
  func.return %x, %x : tensor<4xf32>, tensor<4xf32>
}
