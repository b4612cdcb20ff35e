// RUN: %stepwell-opt %s -p 'schedule{machine=zen4 call="16x100"},bufferize,linalg-to-loops' | filecheck %s
// RUN: %stepwell-opt %s -p 'schedule{machine=zen4 call="9x100"},bufferize,linalg-to-loops' | filecheck %s --check-prefix=SHORT
// RUN: %stepwell-opt %s -p 'schedule{machine=zen4 call="3x100"},bufferize,linalg-to-loops' | filecheck %s --check-prefix=FEW

// Rows shorter than a vector are copied in vectors of fewer lanes, transposed in registers. For a call there is only the text of its number of lanes.
// CHECK:     nd.served = {{\[\["<=", 16 : i64, "d0"\]\]}}
// CHECK-NOT: scf.if
// CHECK-NOT: vector<8xf32>
// CHECK:     vector.store {{.*}} vector<16xf32>
// CHECK-NOT: vector<8xf32>
// SHORT:     nd.served = {{\[\["<=", 8 : i64, "d0"\], \["<", "d0", 16 : i64\]\]}}
// SHORT-NOT: scf.if
// SHORT-NOT: vector<16xf32>, vector<16xf32>
// SHORT:     vector.store {{.*}} vector<8xf32>
// FEW:       nd.served = {{\[\["<", "d0", 4 : i64\]\]}}
// FEW-NOT:   scf.if
// FEW-NOT:   vector.store {{.*}} vector<8xf32>
// FEW:       kernel.return
func.func @main(%x: tensor<?x100xf32>) -> tensor<100x?xf32> {
  %zero = arith.constant 0 : index
  %n = tensor.dim %x, %zero : tensor<?x100xf32>
  %y = tensor.empty(%n) : tensor<100x?xf32>
  %z = kernel.launch @turn ins(%x : tensor<?x100xf32>) outs(%y : tensor<100x?xf32>) -> tensor<100x?xf32>
  func.return %z : tensor<100x?xf32>
}

kernel.func @turn(%x: tensor<?x100xf32>, %y: tensor<100x?xf32>) -> tensor<100x?xf32> attributes {kernel.shared = 2 : i64} {
  %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x100xf32>) outs(%y : tensor<100x?xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<100x?xf32>
  kernel.return %0 : tensor<100x?xf32>
}
