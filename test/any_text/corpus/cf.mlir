// Blocks: successors with arguments, loops backwards, switches, assertions.
func.func @blocks(%c: i1, %n: i32, %x: f32) -> f32 {
  cf.cond_br %c, ^left(%n, %x : i32, f32), ^right
^left(%i: i32, %v: f32):
  %one = arith.constant 1 : i32
  %less = arith.subi %i, %one : i32
  %done = arith.cmpi eq, %less, %one : i32
  cf.cond_br %done, ^exit(%v : f32), ^left(%less, %v : i32, f32)
^right:
  cf.assert %c, "must hold: \22c\22"
  cf.br ^exit(%x : f32)
^exit(%r: f32):
  return %r : f32
}

// -----

func.func @switch(%flag: i32, %a: i64, %b: i64) -> i64 {
  cf.switch %flag : i32, [
    default: ^first(%a : i64),
    42: ^first(%b : i64),
    -7: ^second
  ]
^first(%v: i64):
  return %v : i64
^second:
  "my.br"()[^first, ^second] : () -> ()
}

// -----

"my.region"() ({
^bb0(%x: i32):
  "my.jump"(%x)[^next] : (i32) -> ()
^next:
  "my.jump"()[^next, ^last] {successors = 2 : i32} : () -> ()
^last:
  "my.end"() : () -> ()
}, {
}) : () -> ()

// -----

// refused at 7:3: 'cf.br' goes to the first block of its region
func.func @again() {
^first:
  cf.br ^second
^second:
  cf.br ^first
}
