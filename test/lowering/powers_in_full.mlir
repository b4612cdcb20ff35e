// RUN: %stepwell-opt %s -p expand-math{vector-bits=256} | filecheck %s
//
// Where vectors are too narrow for a table of powers of two there is a longer polynomial.

// CHECK-LABEL: func.func private @exp_f32x8(%x: vector<8xf32>) -> vector<8xf32> {
//       CHECK: arith.constant dense<-1.040000e+02> : vector<8xf32>
//   CHECK-NOT: kernel.lookup
//       CHECK: func.call @ldexp_f32x8
func.func @exponential(%v: vector<8xf32>) -> vector<8xf32> {
  %a = math.exp %v : vector<8xf32>
  func.return %a : vector<8xf32>
}
