// RUN: %stepwell-opt %s | %stepwell-opt | filecheck %s

// Infinities and NaN in a dense literal are written as their bits and read as such.
func.func @bits() -> (tensor<2xf16>, tensor<3xbf16>, tensor<2xf32>, tensor<1xf64>) {
  %a = arith.constant dense<[0x7C00, 1.0]> : tensor<2xf16>
  %b = arith.constant dense<[0xFF80, 1.0, 2.0]> : tensor<3xbf16>
  %c = arith.constant dense<0x7FC00000> : tensor<2xf32>
  %d = arith.constant dense<0x7FF0000000000000> : tensor<1xf64>
  func.return %a, %b, %c, %d : tensor<2xf16>, tensor<3xbf16>, tensor<2xf32>, tensor<1xf64>
}

// CHECK-LABEL: @bits
// CHECK: dense<[0x7c00, 1.000000e+00]> : tensor<2xf16>
// CHECK: dense<[0xff80, 1.000000e+00, 2.000000e+00]> : tensor<3xbf16>
// CHECK: dense<[0x7fc00000, 0x7fc00000]> : tensor<2xf32>
// CHECK: dense<0x7ff0000000000000> : tensor<1xf64>
