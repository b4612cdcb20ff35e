// RUN: %stepwell-opt %s | %stepwell-opt --print-op-generic | %stepwell-opt | filecheck %s
// RUN: %stepwell-opt %s -p 'canonicalize,cse,dce' | filecheck %s --check-prefix=KEPT

// A condition, the exception that is raised where it is false, and a message with numbers in it.
func.func @checks(%c: tensor<i1>, %i: tensor<i64>) {
  nd.check %c {kind = "AssertionError", words = [""]}
  nd.check %c, %i, %i : tensor<i64>, tensor<i64> {kind = "IndexError", words = ["", " of ", "!"]}
  func.return
}
// CHECK-LABEL: @checks
// CHECK-NEXT:    nd.check %c {kind = "AssertionError", words = [""]}
// CHECK-NEXT:    nd.check %c, %i, %i : tensor<i64>, tensor<i64> {kind = "IndexError", words = ["", " of ", "!"]}

// Checks stay where they are: nothing that has one goes, though nobody needs its results, and two are two.
func.func @stay(%c: tensor<i1>, %n: tensor<i64>) {
  nd.check %c {kind = "AssertionError", words = [""]}
  nd.check %c {kind = "AssertionError", words = [""]}
  nd.if %c {
    nd.check %c {kind = "ValueError", words = ["then"]}
    nd.yield
  } else {
    nd.yield
  }
  %i = nd.while (%i = %n) : tensor<i64> {
    %go = nd.lt %i, %n : tensor<i64> -> tensor<i1>
    nd.condition %go
  } do (%j) {
    nd.check %c {kind = "ValueError", words = ["loop"]}
    nd.yield %j : tensor<i64>
  }
  %k = nd.scan (%k = %n) {length = 3} : (tensor<i64>) -> tensor<i64> {
    nd.check %c {kind = "ValueError", words = ["scan"]}
    nd.yield %k : tensor<i64>
  }
  %called = nd.call @callee(%c) : (tensor<i1>) -> tensor<i1>
  %pure = nd.call @pure(%c) : (tensor<i1>) -> tensor<i1>
  func.return
}
// KEPT-LABEL: @stay
// KEPT-COUNT-2:  AssertionError
// KEPT:          nd.if
// KEPT:            "then"
// KEPT:          nd.while
// KEPT:            "loop"
// KEPT:          nd.scan
// KEPT:            "scan"
// KEPT:          nd.call @callee
// KEPT-NOT:      nd.call @pure

func.func private @callee(%c: tensor<i1>) -> tensor<i1> {
  %d = nd.call @inner(%c) : (tensor<i1>) -> tensor<i1>
  func.return %d : tensor<i1>
}
func.func private @inner(%c: tensor<i1>) -> tensor<i1> {
  nd.check %c {kind = "RuntimeError", words = ["inside"]}
  func.return %c : tensor<i1>
}
func.func private @pure(%c: tensor<i1>) -> tensor<i1> {
  %d = nd.not %c : tensor<i1>
  func.return %d : tensor<i1>
}
