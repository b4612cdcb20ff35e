// RUN: %stepwell-opt %s -p nd-to-linalg | filecheck %s

// A choice is one of two regions; its condition is read from its tensor.
func.func @if(%c: tensor<i1>, %x: tensor<?xui8>, %y: tensor<?xui8>) -> tensor<?xui8> {
  %r = nd.if %c -> tensor<?xui8> {
    nd.yield %x : tensor<?xui8>
  } else {
    nd.yield %y : tensor<?xui8>
  }
  func.return %r : tensor<?xui8>
}
// CHECK-LABEL: @if
// CHECK-NEXT:    %[[C:.*]] = tensor.extract %c[] : tensor<i1>
// CHECK-NEXT:    %r = scf.if %[[C]] -> (tensor<?xi8>) {
// CHECK-NEXT:      scf.yield %x : tensor<?xi8>
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %y : tensor<?xi8>

// A loop carries tensors.
func.func @while(%n: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %i, %r = nd.while (%go = %n, %a = %x) : tensor<i1>, tensor<4xf32> {
    nd.condition %go
  } do (%gone, %b) {
    %c = nd.add %b, %x : tensor<4xf32>
    nd.yield %gone, %c : tensor<i1>, tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}
// CHECK-LABEL: @while
// CHECK-NEXT:    %i, %r = scf.while (%go = %n, %a = %x) : (tensor<i1>, tensor<4xf32>) -> (tensor<i1>, tensor<4xf32>) {
// CHECK-NEXT:      %[[GO:.*]] = tensor.extract %go[] : tensor<i1>
// CHECK-NEXT:      scf.condition(%[[GO]]) %go, %a : tensor<i1>, tensor<4xf32>
// CHECK:         ^{{.*}}(%gone: tensor<i1>, %b: tensor<4xf32>):
// CHECK:           %c = linalg.generic {{.*}} ins(%b, %x
// CHECK:           scf.yield %gone, %c : tensor<i1>, tensor<4xf32>

// A scan is a loop that takes slices and puts slices; backwards it counts down.
func.func @scan(%c: tensor<f32>, %xs: tensor<?x3xf32>) -> (tensor<f32>, tensor<?xf32>) {
  %last, %ys = nd.scan (%s = %c) over (%x = %xs) {reverse} : (tensor<f32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<?xf32>) {
    %t = nd.dot_general %x, %x contract [0] x [0] : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
    nd.yield %t, %s : tensor<f32>, tensor<f32>
  }
  func.return %last, %ys : tensor<f32>, tensor<?xf32>
}
// CHECK-LABEL: @scan
// CHECK:         %[[N:.*]] = tensor.dim %xs
// CHECK:         %[[INTO:.*]] = tensor.empty(%[[N]]) : tensor<?xf32>
// CHECK:         %[[LAST:.*]] = arith.subi %[[N]]
// CHECK-NEXT:    %last, %ys = scf.for %i = %{{.*}} to %[[N]] step %{{.*}} iter_args(%s = %c, %[[YS:.*]] = %[[INTO]]) -> (tensor<f32>, tensor<?xf32>) {
// CHECK-NEXT:      %[[AT:.*]] = arith.subi %[[LAST]], %i : index
// CHECK-NEXT:      %x = tensor.extract_slice %xs[%[[AT]], 0] [1, 3] [1, 1] : tensor<?x3xf32> to tensor<3xf32>
// CHECK:           %t = linalg.generic
// CHECK:           %[[PUT:.*]] = tensor.insert_slice %s into %[[YS]][%[[AT]]] [1] [1] : tensor<f32> into tensor<?xf32>
// CHECK-NEXT:      scf.yield %t, %[[PUT]] : tensor<f32>, tensor<?xf32>

// One whose steps are elementwise is one op, in order along its first loop; backwards all is turned round.
func.func @steps(%c: tensor<4xf32>, %xs: tensor<9x4xf32>) -> (tensor<4xf32>, tensor<9x4xf32>) {
  %last, %ys = nd.scan (%s = %c) over (%x = %xs) {reverse} : (tensor<4xf32>, tensor<9x4xf32>) -> (tensor<4xf32>, tensor<9x4xf32>) {
    %t = nd.mul %s, %x : tensor<4xf32>
    %u = nd.add %t, %x : tensor<4xf32>
    nd.yield %u, %t : tensor<4xf32>, tensor<4xf32>
  }
  func.return %last, %ys : tensor<4xf32>, tensor<9x4xf32>
}
// CHECK-LABEL: @steps
// CHECK-NOT:     scf.for
// CHECK:         %ys, %last = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (((d0 * -1) + 8), d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (((d0 * -1) + 8), d1)>, affine_map<(d0, d1) -> (d1)>], iterator_types = ["reduction", "parallel"]} ins(%xs, %{{.*}}) outs(%{{.*}}, %c :
// CHECK:           %t = arith.mulf
// CHECK-NEXT:      %u = arith.addf %t
// CHECK-NEXT:      linalg.yield %t, %u : f32, f32

func.func @call(%c: tensor<i1>, %x: tensor<?xui8>) -> tensor<?xui8> {
  %r = nd.call @if(%c, %x, %x) : (tensor<i1>, tensor<?xui8>, tensor<?xui8>) -> tensor<?xui8>
  func.return %r : tensor<?xui8>
}
// CHECK-LABEL: @call
// CHECK-NEXT:    %r = func.call @if(%c, %x, %x) : (tensor<i1>, tensor<?xi8>, tensor<?xi8>) -> tensor<?xi8>

// A step that gives back a row of numbers stays a loop: no scalar is all of them.
// CHECK-LABEL: func.func @numbers
// CHECK:         scf.for
// CHECK-NOT:     linalg.yield {{.*}} : tensor
// CHECK:         func.return
func.func @numbers(%a: tensor<1x3xf32>, %b: tensor<2x1x3xf32>) -> tensor<1x3xf32> {
  %r, %s = nd.scan (%c = %a) over (%d = %b) : (tensor<1x3xf32>, tensor<2x1x3xf32>) -> (tensor<1x3xf32>, tensor<2x1x3xf32>) {
    %k = nd.constant dense<[[1.0, 2.0, 3.0]]> : tensor<1x3xf32>
    nd.yield %k, %d : tensor<1x3xf32>, tensor<1x3xf32>
  }
  func.return %r : tensor<1x3xf32>
}


// A scan over nothing has no step: its loop would slice an array without elements.
// CHECK-LABEL: func.func @nothing
// CHECK-NEXT:    %y = tensor.empty() : tensor<0xf32>
// CHECK-NEXT:    func.return %a, %y
func.func @nothing(%a: tensor<f32>, %x: tensor<0xf32>) -> (tensor<f32>, tensor<0xf32>) {
  %n, %y = nd.scan (%c = %a) over (%e = %x) : (tensor<f32>, tensor<0xf32>) -> (tensor<f32>, tensor<0xf32>) {
    %r = nd.round %e : tensor<f32>
    nd.yield %r, %c : tensor<f32>, tensor<f32>
  }
  func.return %n, %y : tensor<f32>, tensor<0xf32>
}
