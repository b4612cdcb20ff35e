// Structured control flow, with values carried and without.
func.func @loops(%n: index, %x: memref<?xf32>, %init: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (f32) {
    %v = memref.load %x[%i] : memref<?xf32>
    %next = arith.addf %acc, %v : f32
    scf.yield %next : f32
  }
  scf.for %i = %c0 to %n step %c1 {
    memref.store %sum, %x[%i] : memref<?xf32>
  }
  scf.parallel (%i, %j) = (%c0, %c0) to (%n, %n) step (%c1, %c1) {
    %v = memref.load %x[%i] : memref<?xf32>
    memref.store %v, %x[%j] : memref<?xf32>
    scf.reduce
  }
  return %sum : f32
}

// -----

func.func @while(%limit: i32) -> (i32, i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r:2 = scf.while (%i = %zero, %s = %zero) : (i32, i32) -> (i32, i32) {
    %more = arith.cmpi slt, %i, %limit : i32
    scf.condition(%more) %i, %s : i32, i32
  } do {
  ^bb0(%i: i32, %s: i32):
    %next = arith.addi %i, %one : i32
    %total = arith.addi %s, %i : i32
    scf.yield %next, %total : i32, i32
  } attributes {my.unroll = 4 : i64}
  return %r#0, %r#1 : i32, i32
}

// -----

func.func @branches(%c: i1, %a: tensor<4xf32>, %k: index) -> (tensor<4xf32>, i32) {
  %0 = scf.if %c -> (tensor<4xf32>) {
    scf.yield %a : tensor<4xf32>
  } else {
    %t = arith.addf %a, %a : tensor<4xf32>
    scf.yield %t : tensor<4xf32>
  }
  scf.if %c {
    "my.effect"() : () -> ()
  }
  %1 = scf.index_switch %k -> i32
  case 2 {
    %two = arith.constant 2 : i32
    scf.yield %two : i32
  }
  case 5 {
    %five = arith.constant 5 : i32
    scf.yield %five : i32
  }
  default {
    %none = arith.constant -1 : i32
    scf.yield %none : i32
  }
  %2 = scf.execute_region -> i32 {
    cf.br ^end(%1 : i32)
  ^end(%v: i32):
    scf.yield %v : i32
  }
  return %0, %2 : tensor<4xf32>, i32
}
