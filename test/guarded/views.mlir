func.func @main(%x: memref<?x8xf32>, %s: memref<4xi64>, %y: memref<?x4xf32> {kernel.role = "output"}, %arena: memref<256xi8> {kernel.role = "arena"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %t = memref.view %arena[%c64][] : memref<256xi8> to memref<4x8xf32>
  %n = memref.dim %x, %c0 : memref<?x8xf32>
  %half = arith.minsi %n, %c4 : index
  %p = memref.subview %x[0, 0] [%half, 8] [1, 1] : memref<?x8xf32> to memref<?x8xf32, strided<[8, 1]>>
  %q = memref.subview %t[0, 0] [%half, 8] [1, 1] : memref<4x8xf32> to memref<?x8xf32, strided<[8, 1]>>
  memref.copy %p, %q : memref<?x8xf32, strided<[8, 1]>> to memref<?x8xf32, strided<[8, 1]>>
  %flat = memref.reinterpret_cast %t to offset: [0], sizes: [%c4, %c2], strides: [%c4, %c1] : memref<4x8xf32> to memref<?x?xf32, strided<[?, ?]>>
  %one = memref.collapse_shape %t [[0, 1]] : memref<4x8xf32> into memref<32xf32>
  %four = memref.expand_shape %one [[0, 1, 2]] output_shape [2, 4, 4] : memref<32xf32> into memref<2x4x4xf32>
  %cast = memref.cast %p : memref<?x8xf32, strided<[8, 1]>> to memref<?x8xf32, strided<[8, 1], offset: ?>>
  scf.for %i = %c0 to %half step %c1 {
    scf.for %j = %c0 to %c4 step %c1 {
      %k = arith.remui %j, %c2 : index
      %a = memref.load %flat[%i, %k] : memref<?x?xf32, strided<[?, ?]>>
      %b = memref.load %four[%c1, %j, %i] : memref<2x4x4xf32>
      %d = memref.load %cast[%i, %j] : memref<?x8xf32, strided<[8, 1], offset: ?>>
      %l = memref.load %s[%j] : memref<4xi64>
      %m = arith.index_cast %l : i64 to index
      %o = arith.remui %m, %c4 : index
      %e = memref.load %one[%o] : memref<32xf32>
      %1 = arith.addf %a, %b : f32
      %2 = arith.addf %d, %e : f32
      %3 = arith.addf %1, %2 : f32
      memref.store %3, %y[%i, %j] : memref<?x4xf32>
    }
  }
  func.return
}
func.func @main.shapes(%n: index) -> index {
  func.return %n : index
}
