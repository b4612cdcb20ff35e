// RUN: %stepwell-opt %s -p bufferize | filecheck %s

// A kernel may have checks and no results: those that only unread values of a loop needed. It may have no tensor at all.
// CHECK:      kernel.func @checked(%x: memref<4xi32>)
// CHECK:        memref.alloc
// CHECK:        kernel.check
// CHECK:      kernel.func @constant() attributes
// CHECK:        kernel.check
// CHECK:      func.func @main(
// CHECK:        kernel.launch @checked ins(%x : memref<4xi32>) {kernel.checks}
// CHECK-NEXT:   kernel.launch @constant {kernel.checks}
kernel.func @checked(%x: tensor<4xi32>) attributes {kernel.shared = 0 : i64, kernel.scalar} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<4xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<4xi32>) -> tensor<4xi32>
  %r = scf.for %i = %c0 to %c1 step %c1 iter_args(%t = %f) -> (tensor<4xi32>) {
    %u = scf.for %j = %c0 to %c4 step %c1 iter_args(%v = %t) -> (tensor<4xi32>) {
      %n = tensor.extract %x[%j] : tensor<4xi32>
      %ok = arith.cmpi sge, %n, %zero : i32
      %said = arith.extsi %n : i32 to i64
      kernel.check %ok, %said : i64 {kind = "IndexError", words = ["index ", " is negative"]}
      %w = tensor.insert %n into %v[%j] : tensor<4xi32>
      scf.yield %w : tensor<4xi32>
    }
    scf.yield %u : tensor<4xi32>
  }
  kernel.return
}

kernel.func @constant() attributes {kernel.shared = 0 : i64, kernel.scalar} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %four = arith.constant 4 : i64
  %three = arith.constant 3 : i64
  scf.for %i = %c0 to %c1 step %c1 {
    %ok = arith.cmpi slt, %four, %three : i64
    kernel.check %ok, %four : i64 {kind = "IndexError", words = ["index ", " is out of bounds"]}
  }
  kernel.return
}

kernel.func @double(%x: tensor<4xi32>, %d: tensor<4xi32>) -> tensor<4xi32> attributes {kernel.shared = 1 : i64} {
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<4xi32>) outs(%d : tensor<4xi32>) {
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %a : i32
    linalg.yield %s : i32
  } -> tensor<4xi32>
  kernel.return %r : tensor<4xi32>
}

func.func @main(%x: tensor<4xi32>) -> tensor<4xi32> {
  kernel.launch @checked ins(%x : tensor<4xi32>) {kernel.checks}
  kernel.launch @constant {kernel.checks}
  %e = tensor.empty() : tensor<4xi32>
  %y = kernel.launch @double ins(%x : tensor<4xi32>) outs(%e : tensor<4xi32>) -> tensor<4xi32>
  func.return %y : tensor<4xi32>
}
