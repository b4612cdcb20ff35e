// Patterns as data.
pdl.pattern @fold : benefit(1) {
  %type = pdl.type
  %x = pdl.operand
  %attribute = pdl.attribute = 0 : i32
  %zero = pdl.operation "arith.constant" {"value" = %attribute} -> (%type : !pdl.type)
  %z = pdl.result 0 of %zero
  %sum = pdl.operation "arith.addi"(%x, %z : !pdl.value, !pdl.value) -> (%type : !pdl.type)
  pdl.rewrite %sum {
    pdl.replace %sum with (%x : !pdl.value)
  }
}
