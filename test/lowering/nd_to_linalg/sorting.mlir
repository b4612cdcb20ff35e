// RUN: %stepwell-opt %s -p nd-to-linalg | filecheck %s

// Short rows are sorted side by side: 16 lanes of words in scratch, exchanged by minima and maxima.
// Blocks of 16 rows are tasks that threads may share; the last block's lanes beyond the end are copies.

// CHECK-LABEL: func.func @short
func.func @short(%x: tensor<40x13xi32>) -> tensor<40x13xi32> {
  // CHECK: tensor.empty() : tensor<40x13xi32>
  // CHECK: tensor.empty() : tensor<3x13x16xi32>
  // CHECK: scf.for
  // CHECK: scf.if
  // CHECK: tensor.extract %x
  // CHECK: } {kernel.unroll}
  // CHECK: arith.xori
  // CHECK: } {kernel.independent}
  // CHECK: arith.minui
  // CHECK: arith.maxui
  // CHECK: } {kernel.independent}
  // CHECK: } {kernel.independent}
  // CHECK: func.return
  %y = nd.sort %x {axis = 1} : tensor<40x13xi32>
  func.return %y : tensor<40x13xi32>
}

// For argsort a word is a key and, below it, the place it comes from.

// CHECK-LABEL: func.func @places
func.func @places(%x: tensor<40x13xf32>) -> tensor<40x13xi64> {
  // CHECK: tensor.empty() : tensor<5x13x8xi64>
  // CHECK: arith.shli {{.*}} : i64
  // CHECK: arith.ori
  // CHECK: arith.minui
  %y = nd.argsort %x {axis = 1} : tensor<40x13xf32> -> tensor<40x13xi64>
  func.return %y : tensor<40x13xi64>
}

// A long axis is sorted by one byte of the key after the other: the counts of all digits at once, where
// the elements of each begin, and then moves there and back, unless both digits are the same in all keys.

// CHECK-LABEL: func.func @long
func.func @long(%x: tensor<1000xi16>) -> tensor<1000xi32> {
  // CHECK: tensor.empty() : tensor<1x2x256xi32>
  // CHECK: tensor.empty() : tensor<1x1000xi16>
  // CHECK: arith.xori
  // CHECK: arith.addi
  // CHECK: scf.if
  // CHECK: scf.if
  // CHECK: tensor.insert {{.*}} : tensor<1x1000xi16>
  // CHECK: tensor.insert {{.*}} : tensor<1x1000xi32>
  // CHECK: arith.shrui
  // CHECK: } {kernel.independent}
  %y = nd.argsort %x {axis = 0} : tensor<1000xi16> -> tensor<1000xi32>
  func.return %y : tensor<1000xi32>
}

// A very long axis is cut into parts that are counted and moved as tasks of their own. In which bits keys differ
// is asked first: a digit that is the same in all is not counted, and its elements are copied.

// CHECK-LABEL: func.func @parts
func.func @parts(%x: tensor<300000xi8>) -> tensor<300000xi8> {
  // CHECK: arith.ori
  // CHECK: tensor.empty() : tensor<1xi8>
  // CHECK: tensor.empty() : tensor<4x256xi32>
  // CHECK: scf.for
  // CHECK: } {kernel.independent}
  // CHECK: scf.for
  // CHECK: } {kernel.independent}
  // CHECK: arith.minsi
  // CHECK: } {kernel.independent}
  %y = nd.sort %x {axis = 0} : tensor<300000xi8>
  func.return %y : tensor<300000xi8>
}

// Elements of few ranks of a long axis: counts of the highest digit, those that have the digit of the rank,
// and so on among these.

// CHECK-LABEL: func.func @ranks
func.func @ranks(%x: tensor<20000xf64>, %r: tensor<2xi64>) -> tensor<2xf64> {
  // CHECK: tensor.empty() : tensor<1x2048xi32>
  // CHECK: tensor.empty() : tensor<1x20000xi64>
  // CHECK: tensor.extract %r
  // CHECK: arith.shrui
  // CHECK: } {kernel.independent}
  %y = nd.order_statistics %x, %r {axis = 0} : (tensor<20000xf64>, tensor<2xi64>) -> tensor<2xf64>
  func.return %y : tensor<2xf64>
}
