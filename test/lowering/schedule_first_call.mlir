// RUN: %stepwell-opt %s -p 'schedule{machine=zen4 call="3x32,32x64"}' | filecheck %s
// RUN: %stepwell-opt %s -p 'schedule{machine=zen4 call="1000x32,32x64"}' | filecheck %s --check-prefix=MANY
// RUN: %stepwell-opt %s -p 'schedule{machine=zen4 call="1000x32"}' | filecheck %s --check-prefix=OTHER

// For a call of three rows there is only the version of three, and the entry says so. None is
// needed for many rows. Shapes that are not those of the entry are ignored.
// CHECK-LABEL: func.func @main
// CHECK-SAME:    nd.served = [["<=", 3 : i64, "d0"], ["<", "d0", 4 : i64]]
// CHECK-LABEL: kernel.func @product
// CHECK-SAME:    kernel.versions = [#kernel.version<d0 from 3 to 3, {{[^<]*}}<[{{[^<]*}}]>>]
// CHECK-SAME:    kernel.first_fits
// MANY-LABEL: func.func @main
// MANY-SAME:    nd.served = [["<=", 65 : i64, "d0"]]
// MANY-LABEL: kernel.func @product
// MANY-NOT:     kernel.first_fits
// MANY-NOT:     kernel.versions
// OTHER-LABEL: func.func @main
// OTHER-NOT:     nd.served
// OTHER-LABEL: kernel.func @product
// OTHER-SAME:    #kernel.version<d0 from 1 to 1
func.func @main(%x: tensor<?x32xf32>, %w: tensor<32x64xf32>) -> tensor<?x64xf32> {
  %zero = arith.constant 0 : index
  %n = tensor.dim %x, %zero : tensor<?x32xf32>
  %y = tensor.empty(%n) : tensor<?x64xf32>
  %z = kernel.launch @product ins(%x, %w : tensor<?x32xf32>, tensor<32x64xf32>) outs(%y : tensor<?x64xf32>) -> tensor<?x64xf32>
  func.return %z : tensor<?x64xf32>
}

kernel.func @product(%x: tensor<?x32xf32>, %w: tensor<32x64xf32>, %y: tensor<?x64xf32>) -> tensor<?x64xf32> attributes {kernel.shared = 2 : i64} {
  %0 = arith.constant 0.0 : f32
  %1 = linalg.fill ins(%0 : f32) outs(%y : tensor<?x64xf32>) -> tensor<?x64xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<?x32xf32>, tensor<32x64xf32>) outs(%1 : tensor<?x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %3 = arith.mulf %a, %b : f32
    %4 = arith.addf %c, %3 : f32
    linalg.yield %4 : f32
  } -> tensor<?x64xf32>
  kernel.return %2 : tensor<?x64xf32>
}
