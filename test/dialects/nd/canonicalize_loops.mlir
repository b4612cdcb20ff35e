// RUN: %stepwell-opt %s -p canonicalize | filecheck %s

// A counter that nobody reads is not carried.
//
// CHECK-LABEL: func.func @counter
//       CHECK:   %y = nd.scan (%a = %x) {length = 50} : (tensor<5xf32>) -> tensor<5xf32> {
//  CHECK-NEXT:     %b = nd.sin %a
//  CHECK-NEXT:     nd.yield %b : tensor<5xf32>

func.func @counter(%x: tensor<5xf32>) -> tensor<5xf32> {
  %zero = nd.constant dense<0> : tensor<i64>
  %n, %y = nd.scan (%i = %zero, %a = %x) {length = 50} : (tensor<i64>, tensor<5xf32>) -> (tensor<i64>, tensor<5xf32>) {
    %one = nd.constant dense<1> : tensor<i64>
    %j = nd.add %i, %one : tensor<i64>
    %b = nd.sin %a : tensor<5xf32>
    nd.yield %j, %b : tensor<i64>, tensor<5xf32>
  }
  func.return %y : tensor<5xf32>
}

// What another result needs is carried on; a stacked result and its size go.
//
// CHECK-LABEL: func.func @needed
//       CHECK:   nd.scan (%i = %x, %a = %x) over (%e = %xs) :
//   CHECK-NOT:     nd.exp
//       CHECK:     nd.yield %j, %b, %i : tensor<5xf32>, tensor<5xf32>, tensor<5xf32>

func.func @needed(%x: tensor<5xf32>, %xs: tensor<?x?xf32>) -> tensor<?x5xf32> {
  %d = nd.dim %xs {axis = 1} : tensor<?x?xf32>
  %n, %y, %s, %t = nd.scan (%i = %x, %a = %x) over (%e = %xs) sizes(%d) : (tensor<5xf32>, tensor<5xf32>, tensor<?x?xf32>) -> (tensor<5xf32>, tensor<5xf32>, tensor<?x?xf32>, tensor<?x5xf32>) {
    %j = nd.add %i, %a : tensor<5xf32>
    %b = nd.sin %a : tensor<5xf32>
    %f = nd.exp %e : tensor<?xf32>
    nd.yield %j, %b, %f, %i : tensor<5xf32>, tensor<5xf32>, tensor<?xf32>, tensor<5xf32>
  }
  func.return %t : tensor<?x5xf32>
}

// A branch that checks stays, and the counter that it reads, though nothing uses its result.
//
// CHECK-LABEL: func.func @checked
//       CHECK:   nd.scan (%i = %zero, %a = %x)
//       CHECK:     nd.if %p
//       CHECK:       nd.check %fits, %i

func.func @checked(%x: tensor<5xf32>, %p: tensor<i1>) -> tensor<5xf32> {
  %zero = nd.full 0 : tensor<i64>
  %three = nd.full 3 : tensor<i64>
  %n, %y = nd.scan (%i = %zero, %a = %x) {length = 8} : (tensor<i64>, tensor<5xf32>) -> (tensor<i64>, tensor<5xf32>) {
    %one = nd.full 1 : tensor<i64>
    %j = nd.add %i, %one : tensor<i64>
    %unused = nd.if %p -> tensor<5xf32> {
      nd.yield %x : tensor<5xf32>
    } else {
      %fits = nd.lt %i, %three : tensor<i64> -> tensor<i1>
      nd.check %fits, %i : tensor<i64> {kind = "IndexError", words = ["index ", " is out of bounds for axis 0 with size 3"]}
      nd.yield %a : tensor<5xf32>
    }
    %b = nd.sin %a : tensor<5xf32>
    nd.yield %j, %b : tensor<i64>, tensor<5xf32>
  }
  func.return %y : tensor<5xf32>
}
