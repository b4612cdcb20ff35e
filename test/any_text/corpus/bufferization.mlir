// Between tensors and buffers.
func.func @crossing(%m: memref<?xf32>, %t: tensor<4xf32>, %n: index) -> (tensor<?xf32>, memref<4xf32>) {
  %0 = bufferization.to_tensor %m restrict writable : memref<?xf32> to tensor<?xf32>
  %1 = bufferization.to_buffer %t : tensor<4xf32> to memref<4xf32>
  %2 = bufferization.alloc_tensor(%n) : tensor<?xf32>
  %3 = bufferization.clone %1 : memref<4xf32> to memref<4xf32>
  return %0, %3 : tensor<?xf32>, memref<4xf32>
}
