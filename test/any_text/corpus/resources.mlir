// Constants beside the text.
func.func @weights() -> (tensor<4xf32>, tensor<2xi64>) {
  %0 = arith.constant dense_resource<w0> : tensor<4xf32>
  %1 = arith.constant dense_resource<"layer.1/bias"> : tensor<2xi64>
  return %0, %1 : tensor<4xf32>, tensor<2xi64>
}
{-#
  dialect_resources: {
    builtin: {
      w0: "0x040000000000803F000000400000404000008040",
      "layer.1/bias": "0x0800000001000000000000000200000000000000"
    }
  }
#-}
