// The functions that a model's activations come down to.
#fm = #arith.fastmath<contract>
func.func @unary(%x: tensor<2x?xf32>) -> tensor<2x?xf32> {
  %0 = math.exp %x : tensor<2x?xf32>
  %1 = math.exp2 %0 : tensor<2x?xf32>
  %2 = math.expm1 %1 : tensor<2x?xf32>
  %3 = math.log %2 : tensor<2x?xf32>
  %4 = math.log1p %3 : tensor<2x?xf32>
  %5 = math.log2 %4 : tensor<2x?xf32>
  %6 = math.sqrt %5 : tensor<2x?xf32>
  %7 = math.rsqrt %6 : tensor<2x?xf32>
  %8 = math.sin %7 : tensor<2x?xf32>
  %9 = math.cos %8 : tensor<2x?xf32>
  %10 = math.tanh %9 fastmath<fast> : tensor<2x?xf32>
  %11 = math.erf %10 : tensor<2x?xf32>
  %12 = math.absf %11 : tensor<2x?xf32>
  %13 = math.ceil %12 : tensor<2x?xf32>
  %14 = math.floor %13 : tensor<2x?xf32>
  %15 = math.roundeven %14 : tensor<2x?xf32>
  return %15 : tensor<2x?xf32>
}

// -----

func.func @several(%x: vector<8xf16>, %n: i32, %y: f64) -> (vector<8xf16>, f64, i32) {
  %0 = math.powf %x, %x : vector<8xf16>
  %1 = math.fma %0, %x, %x : vector<8xf16>
  %2 = math.atan2 %1, %x : vector<8xf16>
  %3 = math.copysign %2, %x : vector<8xf16>
  %4 = math.fpowi %y, %n : f64, i32
  %5 = math.ctpop %n : i32
  %6 = math.ctlz %5 : i32
  %7 = math.absi %6 : i32
  return %3, %4, %7 : vector<8xf16>, f64, i32
}
