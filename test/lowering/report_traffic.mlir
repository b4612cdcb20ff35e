// RUN: stepwell-opt %s -p 'through(buffers),report-traffic' --remarks 2>&1 | filecheck %s
//
// A sum of two arrays moves no byte too many; a product whose operands do not fit into the cache
// fetches one of them again and again; rows of a matrix that overlap are counted once.

func.func @add(%x: tensor<1000x8xf32>, %y: tensor<1000x8xf32>) -> tensor<1000x8xf32> {
  %z = nd.add %x, %y : tensor<1000x8xf32>
  func.return %z : tensor<1000x8xf32>
}

// CHECK-DAG: @add_add moves 96000 bytes, the least possible

func.func @product(%x: tensor<2048x2048xf32>, %y: tensor<2048x2048xf32>) -> tensor<2048x2048xf32> {
  %z = nd.matmul %x, %y : (tensor<2048x2048xf32>, tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  func.return %z : tensor<2048x2048xf32>
}

// CHECK-DAG: @product_matmul moves {{[0-9]+}} bytes, 50331648 would do ({{[0-9.]+}} times)

func.func @neighbours(%x: tensor<1000xf32>) -> tensor<998xf32> {
  %a = nd.slice %x[:998] : tensor<1000xf32> -> tensor<998xf32>
  %b = nd.slice %x[2:1000] : tensor<1000xf32> -> tensor<998xf32>
  %z = nd.add %a, %b : tensor<998xf32>
  func.return %z : tensor<998xf32>
}

// CHECK-DAG: @neighbours_add moves 7992 bytes, the least possible
