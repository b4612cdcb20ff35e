// RUN: %stepwell-opt %s -p outline-kernels | filecheck %s

// A loop that only checks indices is a kernel without results: hosts of OpenCL cannot compute what its branches yield.
// CHECK:      kernel.func @main_scatter(
// CHECK:        kernel.check
// CHECK:        arith.addf
// CHECK:      func.func @main
// CHECK:        kernel.launch @main_scatter ins(
// CHECK-NEXT:   func.return %x
func.func @main(%x: tensor<4xf64>, %q: tensor<4xi64>) -> tensor<4xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0 : i64
  scf.for %i = %c0 to %c4 step %c1 {
    %n = tensor.extract %q[%i] : tensor<4xi64>
    %ok = arith.cmpi sge, %n, %zero : i64
    %unused = scf.if %ok -> (f64) {
      kernel.check %ok, %n : i64 {kind = "IndexError", words = ["index ", " is negative"]}
      %a = tensor.extract %x[%i] : tensor<4xf64>
      scf.yield %a : f64
    } else {
      %a = tensor.extract %x[%i] : tensor<4xf64>
      %b = arith.addf %a, %a : f64
      scf.yield %b : f64
    }
  }
  func.return %x : tensor<4xf64>
}
