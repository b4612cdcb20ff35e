// RUN: %stepwell-opt %s -p canonicalize | filecheck %s

// Sums of products of bytes are exact in 32 bits while they are short: 33025 times 255 * 255 is not.
func.func @bytes(%x: tensor<4x7xi8>, %w: tensor<7x3xui8>, %v: tensor<4x33026xui8>) -> (tensor<4x3xi64>, tensor<4x4xi64>) {
  %a = nd.cast %x : tensor<4x7xi8> -> tensor<4x7xi64>
  %b = nd.cast %w : tensor<7x3xui8> -> tensor<7x3xi64>
  %y = nd.matmul %a, %b : (tensor<4x7xi64>, tensor<7x3xi64>) -> tensor<4x3xi64>
  %c = nd.cast %v : tensor<4x33026xui8> -> tensor<4x33026xi64>
  %z = nd.dot_general %c, %c contract [1] x [1] : (tensor<4x33026xi64>, tensor<4x33026xi64>) -> tensor<4x4xi64>
  func.return %y, %z : tensor<4x3xi64>, tensor<4x4xi64>
}
// CHECK-LABEL: @bytes(
//       CHECK:   %[[A:.*]] = nd.cast %x : tensor<4x7xi8> -> tensor<4x7xi32>
//  CHECK-NEXT:   %[[B:.*]] = nd.cast %w : tensor<7x3xui8> -> tensor<7x3xi32>
//  CHECK-NEXT:   %[[Y:.*]] = nd.matmul %[[A]], %[[B]]
//  CHECK-NEXT:   nd.cast %[[Y]] : tensor<4x3xi32> -> tensor<4x3xi64>
//       CHECK:   nd.dot_general {{.*}} -> tensor<4x4xi64>
