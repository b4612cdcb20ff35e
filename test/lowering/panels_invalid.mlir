// RUN: %stepwell-opt %s -p linalg-to-loops --verify-diagnostics --split-input-file

// Panels have vectors of numbers: the padding beyond the last column is zero.

kernel.func @pack(%x: memref<40x33xindex>, %y: memref<3x40x16xindex>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[parallel d0 by 16, for d1, vector d0 by 16]>} {
  // expected-error@+1 {{elements of type index are not packed into panels}}
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0 floordiv 16, d1, d0 mod 16)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<40x33xindex>) outs(%y : memref<3x40x16xindex>) {
  ^bb0(%a: index, %b: index):
    linalg.yield %a : index
  }
  kernel.return
}

// -----

kernel.func @pack(%x: memref<40x33xcomplex<f32>>, %y: memref<3x40x16xcomplex<f32>>) attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[parallel d0 by 16, for d1, vector d0 by 16]>} {
  // expected-error@+1 {{elements of type complex<f32> are not packed into panels}}
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0 floordiv 16, d1, d0 mod 16)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<40x33xcomplex<f32>>) outs(%y : memref<3x40x16xcomplex<f32>>) {
  ^bb0(%a: complex<f32>, %b: complex<f32>):
    linalg.yield %a : complex<f32>
  }
  kernel.return
}
