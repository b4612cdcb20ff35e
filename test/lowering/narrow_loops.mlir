// RUN: %stepwell-opt %s --check -p narrow-loops | filecheck %s
// RUN: %stepwell-opt %s --check -p narrow-loops,linalg-to-loops,canonicalize | filecheck %s --check-prefix=LOOPS

#id = affine_map<(d0) -> (d0)>
#one = affine_map<(d0) -> ()>
#row = affine_map<(d0, d1) -> (d0)>
#all = affine_map<(d0, d1) -> (d0, d1)>
#none = affine_map<(d0, d1) -> ()>

// What is not before %i adds 0 to a sum that begins with 0.
// CHECK-LABEL: kernel.func @first
// CHECK:         %{{.*}} = memref.load %i[]
// CHECK:         %high = arith.maxsi
// CHECK:         ins(%i, %x, %{{.*}}, %high : memref<i64>, memref<100xf32>, index, index)
// CHECK-SAME:    kernel.within = [array<i64: 0, 2, 3>]
// The loop of two vectors ends behind the last element that counts, that of what is left over runs.
// LOOPS-LABEL: kernel.func @first
// LOOPS:         %[[END:.*]] = arith.muli %{{.*}}, %c16 : index
// LOOPS:         scf.for %{{.*}} = %{{.*}} to %[[END]] step %c16
// LOOPS:         vector.load %x[%c96]
kernel.func @first(%i: memref<i64>, %x: memref<100xf32>, %s: memref<f32>) attributes {kernel.shared = 0, kernel.schedule = #kernel.schedule<[for d0 by 16, unroll d0 by 8, vector d0 by 8]>} {
  %z = arith.constant 0.0 : f32
  linalg.fill ins(%z : f32) outs(%s : memref<f32>)
  linalg.generic {indexing_maps = [#one, #id, #one], iterator_types = ["reduction"]} ins(%i, %x : memref<i64>, memref<100xf32>) outs(%s : memref<f32>) {
  ^bb0(%n: i64, %a: f32, %o: f32):
    %k = linalg.index 0 : index
    %j = arith.index_cast %k : index to i64
    %c = arith.cmpi slt, %j, %n : i64
    %zero = arith.constant 0.0 : f32
    %t = arith.select %c, %a, %zero : f32
    %u = arith.addf %o, %t : f32
    linalg.yield %u : f32
  }
  kernel.return
}

// A number that the kernel computes for itself is known right before the loop.
// CHECK-LABEL: kernel.func @computed
// CHECK:         linalg.yield
// CHECK:         memref.load %m[]
// CHECK:         kernel.within = [array<i64: 0, 2, 3>]
kernel.func @computed(%i: memref<i64>, %x: memref<100xf32>, %s: memref<f32>) attributes {kernel.shared = 0} {
  %m = memref.alloc() : memref<i64>
  linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []} ins(%i : memref<i64>) outs(%m : memref<i64>) {
  ^bb0(%n: i64, %o: i64):
    %u = arith.addi %n, %n : i64
    linalg.yield %u : i64
  }
  %z = arith.constant 0.0 : f32
  linalg.fill ins(%z : f32) outs(%s : memref<f32>)
  linalg.generic {indexing_maps = [#one, #id, #one], iterator_types = ["reduction"]} ins(%m, %x : memref<i64>, memref<100xf32>) outs(%s : memref<f32>) {
  ^bb0(%n: i64, %a: f32, %o: f32):
    %k = linalg.index 0 : index
    %j = arith.index_cast %k : index to i64
    %c = arith.cmpi slt, %j, %n : i64
    %zero = arith.constant 0.0 : f32
    %t = arith.select %c, %a, %zero : f32
    %u = arith.addf %o, %t : f32
    linalg.yield %u : f32
  }
  kernel.return
}

// 0 * inf is NaN: what is beyond %i does something.
// CHECK-LABEL: kernel.func @factor
// CHECK-NOT:     kernel.within
kernel.func @factor(%i: memref<i64>, %x: memref<100xf32>, %y: memref<100xf32>, %s: memref<f32>) attributes {kernel.shared = 0} {
  %z = arith.constant 0.0 : f32
  linalg.fill ins(%z : f32) outs(%s : memref<f32>)
  linalg.generic {indexing_maps = [#one, #id, #id, #one], iterator_types = ["reduction"]} ins(%i, %x, %y : memref<i64>, memref<100xf32>, memref<100xf32>) outs(%s : memref<f32>) {
  ^bb0(%n: i64, %a: f32, %b: f32, %o: f32):
    %k = linalg.index 0 : index
    %j = arith.index_cast %k : index to i64
    %c = arith.cmpi slt, %j, %n : i64
    %zero = arith.constant 0.0 : f32
    %t = arith.select %c, %a, %zero : f32
    %v = arith.mulf %t, %b : f32
    %u = arith.addf %o, %v : f32
    linalg.yield %u : f32
  }
  kernel.return
}

// -0.0 + 0.0 is 0.0, and nobody says what the sum begins with.
// CHECK-LABEL: kernel.func @start
// CHECK-NOT:     kernel.within
kernel.func @start(%i: memref<i64>, %x: memref<100xf32>, %s: memref<f32>) attributes {kernel.shared = 0} {
  linalg.generic {indexing_maps = [#one, #id, #one], iterator_types = ["reduction"]} ins(%i, %x : memref<i64>, memref<100xf32>) outs(%s : memref<f32>) {
  ^bb0(%n: i64, %a: f32, %o: f32):
    %k = linalg.index 0 : index
    %j = arith.index_cast %k : index to i64
    %c = arith.cmpi slt, %j, %n : i64
    %zero = arith.constant 0.0 : f32
    %t = arith.select %c, %a, %zero : f32
    %u = arith.addf %o, %t : f32
    linalg.yield %u : f32
  }
  kernel.return
}

// The kernel itself writes %i before.
// CHECK-LABEL: kernel.func @changed
// CHECK-NOT:     kernel.within
kernel.func @changed(%i: memref<i64>, %x: memref<100xi32>, %s: memref<i32>) attributes {kernel.shared = 0} {
  %m = arith.constant 4 : i64
  %z = arith.constant 0 : i32
  linalg.fill ins(%m : i64) outs(%i : memref<i64>)
  linalg.fill ins(%z : i32) outs(%s : memref<i32>)
  linalg.generic {indexing_maps = [#one, #id, #one], iterator_types = ["reduction"]} ins(%i, %x : memref<i64>, memref<100xi32>) outs(%s : memref<i32>) {
  ^bb0(%n: i64, %a: i32, %o: i32):
    %k = linalg.index 0 : index
    %j = arith.index_cast %k : index to i64
    %c = arith.cmpi slt, %j, %n : i64
    %zero = arith.constant 0 : i32
    %t = arith.select %c, %a, %zero : i32
    %u = arith.addi %o, %t : i32
    linalg.yield %u : i32
  }
  kernel.return
}

// What is written is what is there, where the launch gives one array for both. A product is nothing
// where it is for a column that does not count.
// CHECK-LABEL: kernel.func @updated
// CHECK:         arith.subi %{{.*}}, %{{.*}} : i64
// CHECK:         kernel.within = [array<i64: 1, 2, 3>]
// LOOPS-LABEL: kernel.func @updated
// LOOPS:         scf.for %{{.*}} = %c0 to %c40
// LOOPS:           scf.for %j = %c0 to %{{.*}} step %c8
// LOOPS:             %[[AT:.*]] = arith.addi %{{.*}}, %j
// LOOPS:             vector.load %x[%{{.*}}, %[[AT]]]
kernel.func @updated(%i: memref<i64>, %x: memref<40x?xf32>, %y: memref<40x?xf32>) attributes {kernel.shared = 2, kernel.in_place = [array<i64: 1, 2>], kernel.schedule = #kernel.schedule<[for d0, for d1 by 8, vector d1 by 8]>} {
  linalg.generic {indexing_maps = [#none, #all, #all], iterator_types = ["parallel", "parallel"]} ins(%i, %x : memref<i64>, memref<40x?xf32>) outs(%y : memref<40x?xf32>) {
  ^bb0(%n: i64, %a: f32, %o: f32):
    %k = linalg.index 1 : index
    %j = arith.index_cast %k : index to i64
    %two = arith.constant 2 : i64
    %m = arith.subi %n, %two : i64
    %c = arith.cmpi sge, %j, %m : i64
    %d = arith.cmpi sle, %j, %n : i64
    %e = arith.andi %c, %d : i1
    %b = arith.mulf %a, %a : f32
    %t = arith.select %e, %b, %a : f32
    linalg.yield %t : f32
  }
  kernel.return
}

// Columns may be computed twice, by vectors that lie over each other, where what was there is only kept.
// CHECK-LABEL: kernel.func @kept
// LOOPS-LABEL: kernel.func @kept
// LOOPS:         vector.store %{{.*}}, %z[%c0]
// LOOPS-NEXT:    scf.for
// LOOPS:         vector.store %{{.*}}, %z[%c4]
// LOOPS-NEXT:    kernel.return
kernel.func @kept(%b: memref<12xi1>, %x: memref<9x12xf32>, %y: memref<12xf32>, %z: memref<12xf32>) attributes {kernel.shared = 1, kernel.in_place = [array<i64: 2, 3>], kernel.schedule = #kernel.schedule<[for d0 by 8 overlap], op 0 [for d1, vector d0 by 8], op 1 [vector d0 by 8]>} {
  %s = memref.alloc() : memref<12xf32>
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%s : memref<12xf32>)
  linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, #row], iterator_types = ["parallel", "reduction"]} ins(%x : memref<9x12xf32>) outs(%s : memref<12xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  }
  linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel"]} ins(%b, %s, %y : memref<12xi1>, memref<12xf32>, memref<12xf32>) outs(%z : memref<12xf32>) {
  ^bb0(%c: i1, %a: f32, %old: f32, %o: f32):
    %t = arith.select %c, %a, %old : f32
    linalg.yield %t : f32
  }
  kernel.return
}

// Two arrays may not be one.
// CHECK-LABEL: kernel.func @copied
// CHECK-NOT:     kernel.within
kernel.func @copied(%i: memref<i64>, %x: memref<40xf32>, %y: memref<40xf32>) attributes {kernel.shared = 1, kernel.in_place = [array<i64: 1, 2>]} {
  linalg.generic {indexing_maps = [#one, #id, #id], iterator_types = ["parallel"]} ins(%i, %x : memref<i64>, memref<40xf32>) outs(%y : memref<40xf32>) {
  ^bb0(%n: i64, %a: f32, %o: f32):
    %k = linalg.index 0 : index
    %j = arith.index_cast %k : index to i64
    %c = arith.cmpi slt, %j, %n : i64
    %b = arith.mulf %a, %a : f32
    %t = arith.select %c, %b, %a : f32
    linalg.yield %t : f32
  }
  kernel.return
}

func.func @main(%i: memref<i64>, %x: memref<40x?xf32> {kernel.role = "output"}, %y: memref<40xf32>, %z: memref<40xf32> {kernel.role = "output"}) {
  kernel.launch @updated ins(%i, %x : memref<i64>, memref<40x?xf32>) outs(%x : memref<40x?xf32>)
  kernel.launch @copied ins(%i, %y : memref<i64>, memref<40xf32>) outs(%y : memref<40xf32>)
  kernel.launch @copied ins(%i, %y : memref<i64>, memref<40xf32>) outs(%z : memref<40xf32>)
  func.return
}
