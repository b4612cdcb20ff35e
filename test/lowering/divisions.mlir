// RUN: %stepwell-opt %s -p expand-math | filecheck %s
// RUN: %stepwell-opt %s -p expand-math --check | filecheck %s --check-prefix SAME
//
// Lanes of integers are divided by a constant by multiplying, a pair of lanes in the room of both.

// SAME: func.func @down

// CHECK-LABEL: func.func @down
//       CHECK: %y = func.call @floordivsi_7_i32x16(%x) : (vector<16xi32>) -> vector<16xi32>
//       CHECK: %z = func.call @remui_10_i64x8(%v) : (vector<8xi64>) -> vector<8xi64>
func.func @down(%x: vector<16xi32>, %v: vector<8xi64>) -> (vector<16xi32>, vector<8xi64>) {
  %d = arith.constant dense<7> : vector<16xi32>
  %y = arith.floordivsi %x, %d : vector<16xi32>
  %e = arith.constant dense<10> : vector<8xi64>
  %z = arith.remui %v, %e : vector<8xi64>
  func.return %y, %z : vector<16xi32>, vector<8xi64>
}

// What is compared away before, so that no lane divides by 0 or -1, is known too.
//
// CHECK-LABEL: func.func @chosen
//       CHECK: func.call @divsi_3_i32x4(%x)
func.func @chosen(%x: vector<4xi32>) -> vector<4xi32> {
  %d = arith.constant dense<3> : vector<4xi32>
  %zero = arith.constant dense<0> : vector<4xi32>
  %one = arith.constant dense<1> : vector<4xi32>
  %none = arith.cmpi eq, %d, %zero : vector<4xi32>
  %by = arith.select %none, %one, %d : vector<4xi1>, vector<4xi32>
  %y = arith.divsi %x, %by : vector<4xi32>
  func.return %y : vector<4xi32>
}

// A power of two shifts.
//
// CHECK-LABEL: func.func @power
//       CHECK: func.call @floordivsi_16_i8x64(%x)
func.func @power(%x: vector<64xi8>) -> vector<64xi8> {
  %d = arith.constant dense<16> : vector<64xi8>
  %y = arith.floordivsi %x, %d : vector<64xi8>
  func.return %y : vector<64xi8>
}

// Two narrow lanes would become a vector of one, which OpenCL does not have: they are divided.
// CHECK-LABEL: func.func @two
//       CHECK: arith.remui %x, %d : vector<2xi8>
//       CHECK: func.call @remui_3_i64x2
func.func @two(%x: vector<2xi8>, %v: vector<2xi64>) -> (vector<2xi8>, vector<2xi64>) {
  %d = arith.constant dense<3> : vector<2xi8>
  %y = arith.remui %x, %d : vector<2xi8>
  %e = arith.constant dense<3> : vector<2xi64>
  %z = arith.remui %v, %e : vector<2xi64>
  func.return %y, %z : vector<2xi8>, vector<2xi64>
}

// CHECK-LABEL: func.func private @floordivsi_7_i32x16(%x: vector<16xi32>) -> vector<16xi32> {
//       CHECK: %[[FACTOR:.*]] = arith.constant dense<2454267027> : vector<8xi64>
//       CHECK: %[[SIGN:.*]] = arith.shrsi %x
//       CHECK: %[[SIZE:.*]] = arith.xori %x, %[[SIGN]]
//       CHECK: %[[PAIRS:.*]] = vector.bitcast %[[SIZE]] : vector<16xi32> to vector<8xi64>
//       CHECK: arith.muli %{{.*}}, %[[FACTOR]] : vector<8xi64>
//       CHECK: arith.muli %{{.*}}, %[[FACTOR]] : vector<8xi64>
//       CHECK: vector.bitcast %{{.*}} : vector<8xi64> to vector<16xi32>
//       CHECK: arith.xori %{{.*}}, %[[SIGN]]

// CHECK-LABEL: func.func private @floordivsi_16_i8x64(%x: vector<64xi8>) -> vector<64xi8> {
//  CHECK-NEXT: arith.constant
//  CHECK-NEXT: arith.shrsi %x
//  CHECK-NEXT: func.return
