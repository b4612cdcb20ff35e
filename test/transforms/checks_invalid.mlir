// RUN: %stepwell-opt %s -p check-sizes --split-input-file --verify-diagnostics

// The attribute may be written by hand; what it says is read with care.

// expected-error@+1 {{nd.checks is not a list of checks of sizes d0 to d0: there is no size d1}}
func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> attributes {nd.checks = [{holds = ["==", "d1", 3], words = [""], values = [], at = ""}]} {
  func.return %x : tensor<?xf32>
}

// -----

// expected-error@+1 {{there is no operator system of 1}}
func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> attributes {nd.checks = [{holds = ["system", "d0"], words = [""], values = [], at = ""}]} {
  func.return %x : tensor<?xf32>
}

// -----

// expected-error@+1 {{numbers wrap to 1 to 64 bits}}
func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> attributes {nd.checks = [{holds = ["wrap", "d0", "d0"], words = [""], values = [], at = ""}]} {
  func.return %x : tensor<?xf32>
}

// -----

// expected-error@+1 {{there must be one text more than values}}
func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> attributes {nd.checks = [{holds = ["==", "d0", 3], words = ["a", "b"], values = [], at = ""}]} {
  func.return %x : tensor<?xf32>
}

// -----

// expected-error@+1 {{nd.checks is not a list of checks}}
func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> attributes {nd.checks = 3} {
  func.return %x : tensor<?xf32>
}
