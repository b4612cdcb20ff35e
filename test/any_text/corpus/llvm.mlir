// The LLVM dialect as translators write it.
llvm.mlir.global internal constant @message("hello\0A\00") {addr_space = 0 : i32}
llvm.mlir.global external @counter() {addr_space = 0 : i32} : i64
llvm.func @printf(!llvm.ptr, ...) -> i32
llvm.func @malloc(i64 {llvm.noundef}) -> !llvm.ptr
llvm.func hidden fastcc @work(%n: i64, %p: !llvm.ptr {llvm.noalias}) -> i64 attributes {passthrough = ["noinline"]} {
  %0 = llvm.mlir.constant(1 : i64) : i64
  %1 = llvm.add %n, %0 overflow<nsw> : i64
  %2 = llvm.icmp "slt" %1, %0 : i64
  %3 = llvm.getelementptr %p[%1] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %4 = llvm.load %3 : !llvm.ptr -> f32
  llvm.store %4, %p : f32, !llvm.ptr
  llvm.return %1 : i64
}

// -----

"my.types"() : () -> (!llvm.ptr, !llvm.ptr<1>, !llvm.array<4 x f32>, !llvm.struct<(i32, f32)>, !llvm.func<i32 (ptr, ...)>, !llvm.void)
