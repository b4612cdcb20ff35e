// Vectors: transfers, masks, scalable types.
func.func @vectors(%m: memref<16x16xf32>, %i: index, %f: f32, %t: tensor<16xf32>) -> vector<4xf32> {
  %0 = vector.load %m[%i, %i] : memref<16x16xf32>, vector<4xf32>
  vector.store %0, %m[%i, %i] : memref<16x16xf32>, vector<4xf32>
  %1 = vector.broadcast %f : f32 to vector<4xf32>
  %2 = vector.fma %0, %1, %0 : vector<4xf32>
  %3 = vector.transfer_read %m[%i, %i], %f {in_bounds = [true, false], permutation_map = affine_map<(d0, d1) -> (d1, d0)>} : memref<16x16xf32>, vector<4x4xf32>
  vector.transfer_write %3, %m[%i, %i] : vector<4x4xf32>, memref<16x16xf32>
  %4 = vector.extract %3[1] : vector<4xf32> from vector<4x4xf32>
  %5 = vector.insert %f, %4[2] : f32 into vector<4xf32>
  %6 = vector.reduction <add>, %5 : vector<4xf32> into f32
  %mask = vector.create_mask %i : vector<4xi1>
  %7 = vector.maskedload %m[%i, %i], %mask, %5 : memref<16x16xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  %8 = vector.shuffle %7, %5 [0, 2, 4, 6] : vector<4xf32>, vector<4xf32>
  %9 = vector.bitcast %8 : vector<4xf32> to vector<4xi32>
  return %8 : vector<4xf32>
}

// -----

"my.types"() : () -> (vector<f32>, vector<[4]xf32>, vector<2x[8]xi1>, vector<1x1x1xindex>)

// -----

// refused at 4:3: 'vector.print' is read in generic form only
func.func @printed(%x: f32) {
  vector.print %x : f32
  return
}

// -----

func.func @masked(%m: memref<8xf32>, %i: index, %x: vector<8xf32>) {
  %mask = vector.create_mask %i : vector<8xi1>
  vector.maskedstore %m[%i], %mask, %x : memref<8xf32>, vector<8xi1>, vector<8xf32>
  return
}
