// RUN: %stepwell-opt %s -p 'linalg-to-loops,canonicalize,cse' | filecheck %s

// A sum that may be taken in any order: two vectors at a time, then one, their lanes, what is left.
// CHECK-LABEL: kernel.func @product
// CHECK:         [[A:%[0-9]+]], [[B:%[0-9]+]] = scf.for {{.*}} -> (vector<8xf64>, vector<8xf64>) {
// CHECK:           vector.load %x[%c2, %k]
// CHECK:           vector.load %y[%k]
// CHECK:         [[SUM:%[0-9]+]] = arith.addf [[A]], [[B]] : vector<8xf64>
// CHECK:         [[ONE:%[0-9]+]] = scf.for {{.*}} iter_args({{.*}} = [[SUM]]) -> (vector<8xf64>) {
// CHECK:         [[ALL:%[0-9]+]] = vector.reduction <add>, [[ONE]]
// CHECK:         arith.addf %zero, [[ALL]]
// CHECK:         scf.for {{.*}} to %n step %c1 {{.*}} -> (f64) {
// CHECK:           memref.load
// CHECK-NOT:       kernel.simd
// A column is read one by one: that is left to the compiler of C.
// CHECK-LABEL: kernel.func @column
// CHECK:         scf.for
// CHECK-NOT:     vector
// CHECK:         } {kernel.simd = 8 : i64}
kernel.func @product(%x: memref<9x99xf64>, %y: memref<99xf64>, %z: memref<f64>, %n: index) {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %s = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f64) {
    %v = memref.load %x[%c2, %k] : memref<9x99xf64>
    %w = memref.load %y[%k] : memref<99xf64>
    %p = arith.mulf %v, %w : f64
    %a = arith.addf %acc, %p : f64
    scf.yield %a : f64
  } {kernel.simd = 8 : i64}
  memref.store %s, %z[] : memref<f64>
  kernel.return
}
kernel.func @column(%x: memref<9x99xf64>, %z: memref<f64>, %n: index) {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = scf.for %k = %c0 to %n step %c1 iter_args(%acc = %zero) -> (f64) {
    %v = memref.load %x[%k, %c1] : memref<9x99xf64>
    %a = arith.addf %acc, %v : f64
    scf.yield %a : f64
  } {kernel.simd = 8 : i64}
  memref.store %s, %z[] : memref<f64>
  kernel.return
}

// Iterations that are apart: two vectors of them at a time, one, what is left. What lies the same way for all is in every lane.
// CHECK-LABEL: kernel.func @neighbours
// CHECK:         scf.for %j = %c0
// CHECK:           scf.for %k = {{.*}} -> (vector<8xf64>, vector<8xf64>) {
// CHECK:             memref.load %x[%c1, %k]
// CHECK:             vector.load %y[%k, %j]
// CHECK:             vector.load %y[%k, %
// CHECK:           vector.store {{.*}}, %z[%j]
// CHECK:           vector.store
// CHECK:         scf.for %j
// CHECK:           scf.for %k{{.*}} -> (vector<8xf64>) {
// CHECK:         scf.for %j{{.*}} to %n step %c1
// CHECK:           memref.store {{.*}}, %z[
// CHECK-NOT:     kernel.columns
kernel.func @neighbours(%x: memref<9x9xf64>, %y: memref<9x99xf64>, %z: memref<99xf64>, %n: index) {
  %zero = arith.constant 0.0 : f64
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  scf.for %j = %c0 to %n step %c1 {
    %s = scf.for %k = %c0 to %c9 step %c1 iter_args(%acc = %zero) -> (f64) {
      %v = memref.load %x[%c1, %k] : memref<9x9xf64>
      %w = memref.load %y[%k, %j] : memref<9x99xf64>
      %p = arith.mulf %v, %w : f64
      %a = arith.addf %acc, %p : f64
      scf.yield %a : f64
    }
    memref.store %s, %z[%j] : memref<99xf64>
  } {kernel.columns = 8 : i64}
  kernel.return
}
