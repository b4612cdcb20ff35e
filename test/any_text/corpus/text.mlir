// Words and letters: names of values, comments in odd places, unicode in strings, long lines, CR LF.
func.func @names(%_: i32, %a.b$c-d: i32, %0: i32, %very_long_name_of_a_value_that_an_importer_made_out_of_a_path: i32) -> i32 { // a comment
  %1 = arith.addi %_, // in the middle
       %a.b$c-d : i32
  %x_1 = arith.addi %0, %1 : i32   %y = arith.addi %x_1, %x_1 : i32
  return %y : i32
} // the end

// -----

"my.text"() {a = "\F0\9F\8E\89 party", b = "日本語 ελληνικά", c = "tab\09newline\0Anul\00end", d = "// no comment", e = "// -----"} : () -> ()

// -----

// refused at 3:1: unknown op 'ünicode.op': only its generic form is read
ünicode.op

// -----

// refused at 4:8: unexpected end of the file
func.func @open() {
  return

// -----

// refused at 3:14: type expected
"my.op"() : (->) -> ()
