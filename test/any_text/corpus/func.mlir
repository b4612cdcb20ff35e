// Functions: declarations, attributes of arguments and results, visibility, recursion, several results.
func.func private @declared(f32 {llvm.noundef, my.rank = 2 : i64}, memref<?xi8> {llvm.noalias}) -> (i32 {llvm.zeroext})
func.func private @variadic_results(index) -> (f32, tensor<?xf32>)
func.func nested @nested() {
  return
}
func.func public @attributed(%x: f32 {my.align = 16 : i32} loc("x.py":3:7), %y: f32 loc(unknown)) -> (f32 {my.out}, f32)
    attributes {llvm.emit_c_interface, my.list = [1, "two", @declared, [unit]], sym_alias = @nested} {
  %0:2 = func.call @attributed(%x, %y) : (f32, f32) -> (f32, f32)
  return %0#1, %0#0 : f32, f32
}
func.func @"quoted name, with \22quotes\22 and \C3\BC"() {
  call @"quoted name, with \22quotes\22 and \C3\BC"() {inline = false} : () -> ()
  return
}

// -----

// refused at 4:3: 'func.return': Expected arguments to have the same types as the function output types: expected [i64], got [i32]
func.func @wrong(%x: i32) -> i64 {
  return %x : i32
}
