// RUN: %stepwell-opt %s -p bufferize | filecheck %s
//
// What the second loop exchanges may be either of what the first did: nothing is copied between
// the loops, and a result that may be in memory of %b is copied before %a takes that memory.

// CHECK-LABEL: func.func @main
// CHECK:         %[[P:.*]], %[[Q:.*]] = scf.for %{{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %b_1)
// CHECK:         }
// CHECK-NEXT:    %[[U:.*]], %{{.*}} = scf.for %{{.*}} iter_args(%{{.*}} = %[[P]], %{{.*}} = %[[Q]])
// CHECK:         }
// CHECK-NEXT:    memref.copy %[[U]], %u :
// CHECK-NEXT:    memref.copy %a, %b_1 :
func.func @main(%a: tensor<8xf32>, %b: tensor<8xf32>, %n: tensor<2xindex>) -> (tensor<8xf32> {nd.into = 1 : i64}, tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = tensor.extract %n[%c0] : tensor<2xindex>
  %l = tensor.extract %n[%c1] : tensor<2xindex>
  %p, %q = scf.for %i = %c0 to %k step %c1 iter_args(%s = %a, %t = %b) -> (tensor<8xf32>, tensor<8xf32>) {
    scf.yield %t, %s : tensor<8xf32>, tensor<8xf32>
  }
  %u, %v = scf.for %i = %c0 to %l step %c1 iter_args(%s = %p, %t = %q) -> (tensor<8xf32>, tensor<8xf32>) {
    scf.yield %t, %s : tensor<8xf32>, tensor<8xf32>
  }
  func.return %a, %u : tensor<8xf32>, tensor<8xf32>
}

// A row goes to another row of what may be the same buffer.
// CHECK-LABEL: func.func @rows
// CHECK:         %[[P:.*]], %{{.*}} = scf.for
// CHECK:         %[[A:.*]] = memref.subview %a_1[0, 0] [1, 8] [1, 1]
// CHECK-NEXT:    %[[B:.*]] = memref.subview %[[P]][1, 0] [1, 8] [1, 1]
// CHECK-NEXT:    memref.copy %[[A]], %[[B]] :
func.func @rows(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %n: tensor<index>) -> (tensor<4x8xf32> {nd.into = 0 : i64}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = tensor.extract %n[] : tensor<index>
  %p, %q = scf.for %i = %c0 to %k step %c1 iter_args(%s = %a, %t = %b) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
    scf.yield %t, %s : tensor<4x8xf32>, tensor<4x8xf32>
  }
  %row = tensor.extract_slice %a[0, 0] [1, 8] [1, 1] : tensor<4x8xf32> to tensor<1x8xf32>
  %r = tensor.insert_slice %row into %p[1, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<4x8xf32>
  func.return %q : tensor<4x8xf32>
}
