// RUN: %stepwell-opt %s -p nd-to-linalg | filecheck %s

// A short axis is sorted by counting, for each element, how many go before it, then asking for each
// place which element has that count; a sort reads the elements at those places.

// CHECK-LABEL: func.func @short
func.func @short(%x: tensor<3x13xi32>) -> tensor<3x13xi32> {
  // CHECK: arith.xori
  // CHECK: %[[RANKS:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction"]
  // CHECK: arith.cmpi ult
  // CHECK: %[[PLACES:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction"]{{.*}} ins(%[[RANKS]] : tensor<3x13xi32>)
  // CHECK: linalg.generic {{.*}} ins(%[[PLACES]] : tensor<3x13xi32>)
  // CHECK: tensor.extract
  %y = nd.sort %x {axis = 1} : tensor<3x13xi32>
  func.return %y : tensor<3x13xi32>
}

// A long axis is sorted by one byte of the key after the other: counts of each digit, where its
// elements begin, and the elements written there. The last digit of argsort moves places alone.

// CHECK-LABEL: func.func @long
func.func @long(%x: tensor<1000xi16>) -> tensor<1000xi32> {
  // CHECK: %[[COUNTS:.*]] = scf.for {{.*}} -> (tensor<256xi32>)
  // CHECK: %[[FIRST:.*]], %{{.*}} = linalg.generic {{.*}} ins(%[[COUNTS]] : tensor<256xi32>)
  // CHECK: scf.for {{.*}} -> (tensor<1000xi16>, tensor<1000xi32>, tensor<256xi32>)
  // CHECK: arith.minsi
  // CHECK: scf.for {{.*}} -> (tensor<256xi32>)
  // CHECK: arith.shrui
  // CHECK: %[[Y:.*]], %{{.*}} = scf.for {{.*}} -> (tensor<1000xi32>, tensor<256xi32>)
  // CHECK: func.return %[[Y]]
  %y = nd.argsort %x {axis = 0} : tensor<1000xi16> -> tensor<1000xi32>
  func.return %y : tensor<1000xi32>
}
