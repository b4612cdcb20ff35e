// RUN: %stepwell-opt %s | %stepwell-opt | filecheck %s
// RUN: %stepwell-opt %s --print-op-generic | %stepwell-opt | filecheck %s
// RUN: %stepwell-opt %s -p decompose | filecheck %s --check-prefix=INLINED

// CHECK-LABEL: @vjp
// CHECK: nd.custom_vjp (%a = %x, %n = %k) : (tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>) {
// CHECK: } forward {
// CHECK: } backward {
// INLINED-LABEL: @vjp
// INLINED: %y = nd.sin %x
// INLINED-NEXT: func.return %y
func.func @vjp(%x: tensor<4xf32>, %k: tensor<4xi32>) -> tensor<4xf32> {
  %y, %z = nd.custom_vjp (%a = %x, %n = %k) : (tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>) {
    %s = nd.sin %a : tensor<4xf32>
    nd.yield %s, %n : tensor<4xf32>, tensor<4xi32>
  } forward {
  ^bb0(%a: tensor<4xf32>, %n: tensor<4xi32>):
    %s = nd.sin %a : tensor<4xf32>
    nd.yield %s, %n, %a : tensor<4xf32>, tensor<4xi32>, tensor<4xf32>
  } backward {
  ^bb0(%kept: tensor<4xf32>, %g: tensor<4xf32>):
    %d = nd.mul %g, %kept : tensor<4xf32>
    nd.yield %d : tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}

// CHECK-LABEL: @jvp
// CHECK: nd.custom_jvp (%a = %x) {note = "kept"} : (tensor<?xf64>) -> tensor<?xf64> {
// CHECK: } tangents {
// INLINED-LABEL: @jvp
// INLINED-NEXT: func.return %x
func.func @jvp(%x: tensor<?xf64>) -> tensor<?xf64> {
  %y = nd.custom_jvp (%a = %x) {note = "kept"} : (tensor<?xf64>) -> tensor<?xf64> {
    nd.yield %a : tensor<?xf64>
  } tangents {
  ^bb0(%a: tensor<?xf64>, %t: tensor<?xf64>):
    nd.yield %a, %t : tensor<?xf64>, tensor<?xf64>
  }
  func.return %y : tensor<?xf64>
}

// CHECK-LABEL: @checkpoint
// CHECK: nd.checkpoint (%a = %x) {policy = "dots", merged} : (tensor<4xf32>) -> tensor<4xf32> {
// CHECK: nd.stop_gradient %y : tensor<4xf32>
// INLINED-LABEL: @checkpoint
// INLINED-NEXT: %y = nd.exp %x
// INLINED-NEXT: func.return %y
func.func @checkpoint(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = nd.checkpoint (%a = %x) {policy = "dots", merged} : (tensor<4xf32>) -> tensor<4xf32> {
    %e = nd.exp %a : tensor<4xf32>
    nd.yield %e : tensor<4xf32>
  }
  %z = nd.stop_gradient %y : tensor<4xf32>
  func.return %z : tensor<4xf32>
}
