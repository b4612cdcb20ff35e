// Dialects that xDSL has not and mlir-opt has: their generic form is read and kept.
func.func @f(%a: index, %b: index) -> index {
  %0 = "index.add"(%a, %b) : (index, index) -> index
  %1 = "index.constant"() <{value = 4 : index}> : () -> index
  %2 = "index.mul"(%0, %1) : (index, index) -> index
  return %2 : index
}

// -----

func.func @shape(%t: tensor<?xf32>) -> index {
  %0 = "shape.shape_of"(%t) : (tensor<?xf32>) -> tensor<1xindex>
  %1 = "shape.num_elements"(%0) : (tensor<1xindex>) -> index
  return %1 : index
}
