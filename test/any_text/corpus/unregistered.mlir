// Dialects that nobody here has, in generic form: regions, successors, properties, packs of results.
"onnx.Graph"() <{name = "g"}> ({
^bb0(%x: tensor<1x3x224x224xf32>, %w: !onnx.weights):
  %0:3 = "onnx.Split"(%x) <{axis = 1 : si64}> {onnx_node_name = "split/0"} : (tensor<1x3x224x224xf32>) -> (tensor<1x1x224x224xf32>, tensor<1x1x224x224xf32>, tensor<1x1x224x224xf32>)
  %1 = "stablehlo.add"(%0#0, %0#2) : (tensor<1x1x224x224xf32>, tensor<1x1x224x224xf32>) -> tensor<1x1x224x224xf32>
  "torch.return"(%1, %0#1, %w) : (tensor<1x1x224x224xf32>, tensor<1x1x224x224xf32>, !onnx.weights) -> ()
}, {
}) : () -> ()

// -----

// refused at 3:62: expected bare-id or string-literal here as part of attribute entry
%r, %s:2 = "tosa_like.conv"() {pad = array<i64: 0, 0, 1, 1>, #quant = "x"} : () -> (i32, i32, f32)

// -----

%r, %s:2 = "shape_like.of"() {pad = array<i64: 0, 0, 1, 1>} : () -> (i32, i32, f32)
"shape_like.use"(%s#1, %r, %s#0) : (f32, i32, i32) -> ()

// -----

// refused at 3:1: unknown op 'stablehlo.add': only its generic form is read
stablehlo.add %a, %b : tensor<4xf32>
