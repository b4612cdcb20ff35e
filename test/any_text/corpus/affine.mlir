// Loop nests as polyhedral tools write them: maps by name, bounds by min, symbols.
#tile = affine_map<(d0)[s0] -> (d0 + 32, s0)>
#sum = affine_map<(d0, d1) -> (d0 + d1)>
#shift = affine_map<(d0)[s0] -> (d0 * 2 + s0 - 1)>
func.func @matmul(%a: memref<256x256xf32>, %b: memref<256x256xf32>, %c: memref<256x256xf32>) {
  affine.for %i = 0 to 256 {
    affine.for %j = 0 to 256 step 4 {
      affine.for %k = 0 to 256 {
        %0 = affine.load %a[%i, %k] : memref<256x256xf32>
        %1 = affine.load %b[%k, %j] : memref<256x256xf32>
        %2 = affine.load %c[%i, %j] : memref<256x256xf32>
        %3 = arith.mulf %0, %1 : f32
        %4 = arith.addf %2, %3 : f32
        affine.store %4, %c[%i, %j] : memref<256x256xf32>
      }
    }
  }
  return
}

// -----

#shift = affine_map<(d0)[s0] -> (d0 * 2 + s0 - 1)>
func.func @maps(%i: index, %n: index) -> (index, index) {
  %0 = affine.apply affine_map<(d0) -> (d0 floordiv 4 + d0 mod 3)>(%i)
  %1 = affine.apply #shift(%i)[%n]
  %2 = affine.min affine_map<(d0)[s0] -> (d0 + 32, s0, 128)>(%0)[%n]
  return %1, %2 : index, index
}

// -----

"test.maps"() {
  a = affine_map<() -> ()>,
  b = affine_map<(d0, d1, d2) -> (d2, d0 ceildiv 8, -d1)>,
  c = affine_map<()[s0, s1] -> (s0 * 4 + s1)>,
  d = affine_set<(d0)[s0] : (d0 - 1 >= 0, s0 - d0 == 0)>,
  e = affine_map<(i, j)[n] -> (i * 128 + j, n)>
} : () -> ()

// -----

// refused at 5:5: 'affine.parallel' is read in generic form only
func.func @guarded(%x: memref<?xf32>, %n: index) {
  affine.for %i = 0 to %n {
    affine.parallel (%j) = (0) to (8) {
      %0 = affine.load %x[%i + %j * 4] : memref<?xf32>
      affine.store %0, %x[%i] : memref<?xf32>
    }
  }
  return
}
