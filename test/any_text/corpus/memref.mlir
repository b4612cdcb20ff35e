// Buffers: layouts, memory spaces, views, globals, copies.
memref.global "private" constant @table : memref<4xi32> = dense<[1, 2, 3, 4]> {alignment = 64 : i64}
memref.global "public" @scratch : memref<2x2xf32> = uninitialized
func.func @views(%x: memref<8x16xf32>, %n: index, %raw: memref<2048xi8>) -> memref<?x4xf32, strided<[16, 1], offset: ?>> {
  %c0 = arith.constant 0 : index
  %t = memref.get_global @table : memref<4xi32>
  %0 = memref.alloc() {alignment = 32 : i64} : memref<4x4xf32>
  %1 = memref.alloc(%n) : memref<?x8xf32, 3>
  %2 = memref.alloca() : memref<1xi32>
  %3 = memref.subview %x[%n, 0] [%n, 4] [1, 1] : memref<8x16xf32> to memref<?x4xf32, strided<[16, 1], offset: ?>>
  %4 = memref.cast %x : memref<8x16xf32> to memref<?x?xf32>
  %5 = memref.dim %4, %c0 : memref<?x?xf32>
  %6 = memref.collapse_shape %x [[0, 1]] : memref<8x16xf32> into memref<128xf32>
  %7 = memref.expand_shape %6 [[0, 1]] output_shape [32, 4] : memref<128xf32> into memref<32x4xf32>
  %8 = memref.view %raw[%c0][] : memref<2048xi8> to memref<16x32xf32>
  %9 = memref.reinterpret_cast %x to offset: [0], sizes: [128], strides: [1] : memref<8x16xf32> to memref<128xf32>
  memref.copy %0, %0 : memref<4x4xf32> to memref<4x4xf32>
  memref.dealloc %0 : memref<4x4xf32>
  return %3 : memref<?x4xf32, strided<[16, 1], offset: ?>>
}

// -----

"my.types"() : () -> (
  memref<f32>, memref<*xi8>, memref<*xf32, 1>,
  memref<4x?xf32, affine_map<(d0, d1) -> (d1, d0)>>, memref<?xf32, strided<[?], offset: ?>>,
  memref<2xf32, strided<[1], offset: 3>, 2 : i32>, memref<3xmemref<4xf32>>, memref<2xvector<4xf32>>)

// -----

// refused at 3:26: a memref.global without a value, defined elsewhere, cannot be read
memref.global @outside : memref<8xi8>

// -----

// refused at 4:8: 'memref.atomic_rmw' is read in generic form only
func.func @atomics(%x: memref<10xf32>, %i: index, %v: f32) -> f32 {
  %0 = memref.atomic_rmw addf %v, %x[%i] : (f32, memref<10xf32>) -> f32
  %1 = memref.load %x[%i] {nontemporal = true} : memref<10xf32>
  memref.store %1, %x[%i] {nontemporal = true} : memref<10xf32>
  return %0 : f32
}
