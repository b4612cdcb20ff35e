// RUN: %stepwell-opt %s -p check-sizes --split-input-file --verify-diagnostics | filecheck %s

// What is proved needs no check.

// CHECK: func.func @proved
// CHECK-NOT: nd.checks
func.func @proved(%x: tensor<?xf32>) -> tensor<?xf32> {
  %one = nd.full 1.0 : tensor<1xf32>
  %a = nd.concat %x, %one {axis = 0} : (tensor<?xf32>, tensor<1xf32>) -> tensor<?xf32>
  %b = nd.concat %one, %x {axis = 0} : (tensor<1xf32>, tensor<?xf32>) -> tensor<?xf32>
  %y = nd.add %a, %b : tensor<?xf32>
  func.return %y : tensor<?xf32>
}

// -----

// What is not becomes an attribute: conditions, words with values between them, and places.

// CHECK: func.func @noted
// CHECK-SAME: attributes {nd.checks = [
// CHECK-SAME: {holds = ["==", "d0", "d1"], words = ["nd.add: axis 0 of %x has size ", " (x.shape[0]), but axis 0 of %y has size ", " (y.shape[0])"], values = ["d0", "d1"], at = "{{.*}}:[[#]]:3"},
// CHECK-SAME: {holds = [">=", "d0", 4 : i64], words = ["nd.dynamic_slice: cannot take 4 elements along axis 0 of %z, which has ", " (x.shape[0])"], values = ["d0"]
func.func @noted(%x: tensor<?xf32>, %y: tensor<?xf32>, %i: tensor<i32>) -> tensor<4xf32> {
  %z = nd.add %x, %y : tensor<?xf32>
  %s = nd.dynamic_slice %z, starts(%i) {axes = [0], sizes = [4]} : (tensor<?xf32>, tensor<i32>) -> tensor<4xf32>
  func.return %s : tensor<4xf32>
}

// -----

// What no size can meet is an error.

func.func @never(%x: tensor<?xf32>) -> tensor<?xf32> {
  %one = nd.full 1.0 : tensor<1xf32>
  %c = nd.concat %x, %one {axis = 0} : (tensor<?xf32>, tensor<1xf32>) -> tensor<?xf32>
  // expected-error@+1 {{nd.add: axis 0 of %c has size x.shape[0] + 1, but axis 0 of %x has size x.shape[0]}}
  %y = nd.add %c, %x : tensor<?xf32>
  func.return %y : tensor<?xf32>
}

// -----

// Indices along an axis of unknown size are compared in 32 bits.

// CHECK: func.func @long
// CHECK-SAME: attributes {nd.checks = [{{.*}}, {holds = [">=", 2147483647 : i64, "d0"], words = ["nd.argmax: axis 1 of %x is too long for an index of 32 bits, with size ", " (x.shape[1])"], values = ["d0"]
func.func @long(%x: tensor<3x?xf32>) -> tensor<3xi64> {
  %y = nd.argmax %x {axis = 1} : tensor<3x?xf32> -> tensor<3xi64>
  func.return %y : tensor<3xi64>
}
