// Tensors: slices static and not, padding, reshapes, encodings.
func.func @slices(%x: tensor<8x?xf32>, %n: index, %v: f32) -> tensor<?x4xf32> {
  %c1 = arith.constant 1 : index
  %d = tensor.dim %x, %c1 : tensor<8x?xf32>
  %0 = tensor.extract_slice %x[%n, 0] [%d, 4] [1, 1] : tensor<8x?xf32> to tensor<?x4xf32>
  %1 = tensor.insert_slice %0 into %x[0, %n] [%d, 4] [1, 2] : tensor<?x4xf32> into tensor<8x?xf32>
  %2 = tensor.empty(%n) : tensor<?x4xf32>
  %3 = tensor.extract %x[%n, %c1] : tensor<8x?xf32>
  %4 = tensor.insert %3 into %2[%n, %c1] : tensor<?x4xf32>
  %5 = tensor.cast %4 : tensor<?x4xf32> to tensor<6x4xf32>
  %6 = tensor.collapse_shape %5 [[0, 1]] : tensor<6x4xf32> into tensor<24xf32>
  %7 = tensor.expand_shape %6 [[0, 1, 2]] output_shape [2, 3, 4] : tensor<24xf32> into tensor<2x3x4xf32>
  %8 = tensor.from_elements %v, %3 : tensor<2xf32>
  %9 = tensor.splat %v : tensor<3x3xf32>
  %10 = tensor.concat dim(0) %9, %9 : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<6x3xf32>
  %11 = tensor.pad %10 low[1, 0] high[0, %n] {
  ^bb0(%i: index, %j: index):
    tensor.yield %v : f32
  } : tensor<6x3xf32> to tensor<7x?xf32>
  return %4 : tensor<?x4xf32>
}

// -----

#csr = #my.encoding<rows>
"my.types"() : () -> (tensor<4x8xf32, #csr>, tensor<*xf32>, tensor<0x?xi1>, tensor<2xcomplex<f64>>,
  tensor<4xindex>, tensor<f8E4M3FN>, tensor<2xf8E5M2>, tensor<ui8>)
