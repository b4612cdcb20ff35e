// Every builtin attribute and type, in the spellings that tools write.
"my.attributes"() {
  unit_word, unit_value = unit, "quoted key" = 1 : i8, dotted.key = 2, _under = 3 : index,
  yes = true, no = false, hex = 0xFFFFFFFF : i32, negative = -5 : si8, unsigned = 250 : ui8, wide = 170141183460469231731687303715884105727 : i128,
  float = 1.5, half = 2.5 : f16, brain = -0.0 : bf16, double = 1.0E+10 : f64, nan = 0x7FF8000000000000 : f64, infinity = 0x7F800000 : f32,
  string = "a\09b\22c\\ \E2\82\AC", empty = "",
  list = [1, 2.0, "x", [], {}], dictionary = {a = 1 : i32, b = {c}}, type = tensor<?xf32>, function_type = (i32, f32) -> (), none_type = none,
  symbol = @f, nested_symbol = @a::@b::@"c d",
  dense_splat = dense<2> : tensor<3x4xi32>, dense_list = dense<[[1, 2], [3, 4]]> : tensor<2x2xi64>, dense_floats = dense<[1.0, -2.5e3, 0x7FC00000]> : tensor<3xf32>,
  dense_bools = dense<[true, false, true]> : tensor<3xi1>, dense_hex = dense<"0x0100000002000000"> : tensor<2xi32>, dense_empty = dense<> : tensor<0xf32>,
  dense_scalar = dense<7> : tensor<i32>, dense_vector = dense<1.0> : vector<4xf32>, dense_complex = dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>,
  array = array<i64: 1, -2, 3>, array_of_bools = array<i1: true, false>, array_of_floats = array<f32: 1.0, 2.0>, array_empty = array<i8>,
  strided = strided<[4, 1], offset: 2>, opaque = #foreign.attribute<a, [b, <c>], "d">, opaque_type = !foreign.type<x -> y>
} : () -> ()

// -----

"my.types"() : () -> (i1, i7, si16, ui64, i128, index, none, f16, bf16, f32, f64, f80, f128, tf32, f8E5M2, f8E4M3FNUZ, f6E2M3FN, f4E2M1FN,
  complex<f32>, complex<i8>, tuple<>, tuple<i32, tuple<f32>>, (i32) -> i32, () -> (), (i32, i32) -> (i32, f32), (() -> ()) -> (() -> ()))

// -----

!alias = tensor<4xf32>
#map = affine_map<(d0) -> (d0)>
#list = [1 : i32, #map]
#deep = {list = #list, type = !alias}
!pair = tuple<!alias, !alias>
func.func @aliases(%x: !alias, %p: !pair) -> !alias attributes {deep = #deep} {
  return %x : !alias
}

// -----

// refused at 3:27: integer value 300 is out of range for type i8 which supports values in the range [-128, 256)
"my.range"() {too_large = 300 : i8, fine = 2147483648 : i32} : () -> ()

// -----

// refused at 3:23: '}' expected
"my.typed"() {a = "s" : !my.string} : () -> ()
