// Locations of all kinds, behind ops, blocks' arguments and modules, by name and in place.
#loc = loc(unknown)
#file = loc("model.py":12:8)
#call = loc(callsite("inner"("model.py":3:4) at #file))
module @located attributes {my.version = 1 : i64} {
  func.func @f(%x: f32 loc("x")) -> f32 {
    %0 = arith.addf %x, %x : f32 loc("add"("lib.py":1:2))
    %1 = arith.mulf %0, %x : f32 loc(fused["a.py":1:1, "b.py":2:2])
    %2 = arith.subf %1, %x : f32 loc(fused<"pass">["c", #file])
    %3 = arith.divf %2, %x : f32 loc(#call)
    return %3 : f32 loc(#loc)
  } loc(#file)
} loc(callsite("main" at "main.py":1:1))
