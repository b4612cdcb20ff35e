// RUN: %stepwell-opt %s --split-input-file --verify-diagnostics

// Buffers and views of them.

func.func @f(%m: memref<4x8xf32>) {
  // expected-error@+1 {{'memref.subview': a slice up to element 8 does not lie within axis 1 of memref<4x8xf32>}}
  %v = memref.subview %m[0, 5] [4, 4] [1, 1] : memref<4x8xf32> to memref<4x4xf32, strided<[8, 1], offset: 5>>
  func.return
}

// -----

func.func @f(%m: memref<4x8xf32>) {
  // expected-error@+1 {{'memref.subview': the view has the layout strided<[8, 1], offset: 4>, not strided<[8, 1]>}}
  %v = memref.subview %m[0, 4] [4, 4] [1, 1] : memref<4x8xf32> to memref<4x4xf32, strided<[8, 1]>>
  func.return
}

// -----

func.func @f(%m: memref<4x8xf32>) {
  // expected-error@+1 {{'memref.subview': a view of 4x4, or without axes of size 1, is not one of 4x5}}
  %v = memref.subview %m[0, 4] [4, 4] [1, 1] : memref<4x8xf32> to memref<4x5xf32, strided<[8, 1], offset: 4>>
  func.return
}

// -----

func.func @f(%m: memref<4xf32>) {
  // expected-error@+1 {{'memref.cast': memref<4xf32> cannot have the sizes of memref<5xf32>}}
  %v = memref.cast %m : memref<4xf32> to memref<5xf32>
  func.return
}

// -----

func.func @f(%m: memref<4xf32>) {
  // expected-error@+1 {{'memref.cast': memref<4xf32> cannot have the layout of memref<4xf32, strided<[2]>>}}
  %v = memref.cast %m : memref<4xf32> to memref<4xf32, strided<[2]>>
  func.return
}

// -----

func.func @f(%m: memref<4xf32>) {
  // expected-error@+1 {{'memref.expand_shape': axes of 2x4 elements are one of 8, not memref<4xf32>}}
  %v = memref.expand_shape %m [[0, 1]] output_shape [2, 4] : memref<4xf32> into memref<2x4xf32>
  func.return
}

// -----

func.func @f(%m: memref<4x4xf32, strided<[8, 1]>>) {
  // expected-error@+1 {{'memref.collapse_shape': axes of memref<4x4xf32, strided<[8, 1]>> with gaps between cannot be made one}}
  %v = memref.collapse_shape %m [[0, 1]] : memref<4x4xf32, strided<[8, 1]>> into memref<16xf32>
  func.return
}

// -----

func.func @f(%m: memref<4xf32>) {
  // expected-error@+1 {{'memref.reinterpret_cast': elements 0 to 4 do not all lie within memref<4xf32>}}
  %v = memref.reinterpret_cast %m to offset: [0], sizes: [5], strides: [1] : memref<4xf32> to memref<5xf32, strided<[1]>>
  func.return
}

// -----

func.func @f(%m: memref<64xi8>) {
  %zero = arith.constant 0 : index
  // expected-error@+1 {{'memref.view': memref<17xf32> has 68 bytes, which memref<64xi8> has not}}
  %v = memref.view %m[%zero][] : memref<64xi8> to memref<17xf32>
  func.return
}

// -----

memref.global "private" constant @table : memref<2xf32> = dense<[1.0, 2.0]>
func.func @f() {
  // expected-error@+1 {{'memref.get_global': @table is memref<2xf32>, not memref<20xf32>}}
  %v = memref.get_global @table : memref<20xf32>
  func.return
}

// -----

// expected-error@+1 {{'memref.global': @table is memref<3xf32>, its value is tensor<2xf32>}}
"memref.global"() <{sym_name = "table", type = memref<3xf32>, initial_value = dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>, sym_visibility = "private", constant}> : () -> ()
