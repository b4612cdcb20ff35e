// Globals of a model.
ml_program.global private @state(dense<0> : tensor<4xi32>) : tensor<4xi32>
func.func @read() -> tensor<4xi32> {
  %0 = ml_program.global_load_const @state : tensor<4xi32>
  return %0 : tensor<4xi32>
}

// -----

"ml_program.global"() <{sym_name = "w", sym_visibility = "private", type = tensor<2xf32>, value = dense<1.0> : tensor<2xf32>}> : () -> ()
%0 = "ml_program.global_load_const"() <{global = @w}> : () -> tensor<2xf32>
