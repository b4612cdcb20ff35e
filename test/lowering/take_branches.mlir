// RUN: %stepwell-opt %s -p 'take-branches{call="3x8,"}' | filecheck %s
// RUN: %stepwell-opt %s -p 'take-branches{call="5x8,"}' | filecheck %s --check-prefix=MANY
// RUN: %stepwell-opt %s -p 'take-branches' | filecheck %s --check-prefix=BOTH
// RUN: %stepwell-opt %s -p 'take-branches{call="3x8,"},bufferize,plan-memory' | filecheck %s --check-prefix=BUFFERS

#rows = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>

// A call of three rows takes the second side, and says so. The weight %w, which only the first side
// reads, remains an argument. A branch on a value remains, and so does its kernel.
// CHECK-LABEL: func.func @main
// CHECK-SAME:    nd.resource = "w"
// CHECK-SAME:    nd.served = {{\[\["not", \[">", "d0", 4 : i64\]\], \["not", \["==", \["%", "d0", 2 : i64\], 0 : i64\]\]\]}}
// CHECK-NOT:     arith.cmpi
// CHECK-NOT:     scf.if
// CHECK:         kernel.launch @direct
// CHECK:         scf.if
// CHECK-NEXT:      kernel.launch @other
// CHECK-NOT:   kernel.func @tiles
// MANY-LABEL:  func.func @main
// MANY-SAME:     nd.served = {{\[\[">", "d0", 4 : i64\]\]}}
// MANY:          kernel.launch @tiles
// MANY-NOT:    kernel.func @direct
// BOTH-NOT:    nd.served
// BOTH:        scf.if
// BOTH:          scf.if
// BOTH:        scf.if
// BUFFERS:     kernel.launch @direct
func.func @main(%x: tensor<?x8xf32>, %flag: tensor<i1>, %w: tensor<8xf32> {nd.resource = "w"}) -> tensor<?x8xf32> {
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %four = arith.constant 4 : index
  %n = tensor.dim %x, %zero : tensor<?x8xf32>
  %empty = tensor.empty(%n) : tensor<?x8xf32>
  %many = arith.cmpi sgt, %n, %four : index
  %y = scf.if %many -> (tensor<?x8xf32>) {
    %0 = kernel.launch @tiles ins(%x, %w : tensor<?x8xf32>, tensor<8xf32>) outs(%empty : tensor<?x8xf32>) -> tensor<?x8xf32>
    scf.yield %0 : tensor<?x8xf32>
  } else {
    %rest = arith.remsi %n, %two : index
    %even = arith.cmpi eq, %rest, %zero : index
    %0 = scf.if %even -> (tensor<?x8xf32>) {
      scf.yield %x : tensor<?x8xf32>
    } else {
      %1 = kernel.launch @direct ins(%x : tensor<?x8xf32>) outs(%empty : tensor<?x8xf32>) -> tensor<?x8xf32>
      scf.yield %1 : tensor<?x8xf32>
    }
    scf.yield %0 : tensor<?x8xf32>
  }
  %f = tensor.extract %flag[] : tensor<i1>
  %z = scf.if %f -> (tensor<?x8xf32>) {
    %0 = kernel.launch @other ins(%y : tensor<?x8xf32>) outs(%empty : tensor<?x8xf32>) -> tensor<?x8xf32>
    scf.yield %0 : tensor<?x8xf32>
  } else {
    scf.yield %y : tensor<?x8xf32>
  }
  func.return %z : tensor<?x8xf32>
}

kernel.func @tiles(%x: tensor<?x8xf32>, %w: tensor<8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {kernel.shared = 2} {
  %r = linalg.generic {indexing_maps = [#rows, #row, #rows], iterator_types = ["parallel", "parallel"]} ins(%x, %w : tensor<?x8xf32>, tensor<8xf32>) outs(%y : tensor<?x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<?x8xf32>
  kernel.return %r : tensor<?x8xf32>
}
kernel.func @direct(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {kernel.shared = 2} {
  %r = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x8xf32>) outs(%y : tensor<?x8xf32>) {
  ^bb0(%a: f32, %c: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<?x8xf32>
  kernel.return %r : tensor<?x8xf32>
}
kernel.func @other(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {kernel.shared = 2} {
  %r = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x8xf32>) outs(%y : tensor<?x8xf32>) {
  ^bb0(%a: f32, %c: f32):
    %s = arith.mulf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<?x8xf32>
  kernel.return %r : tensor<?x8xf32>
}
