// RUN: %stepwell-opt %s -p expand-math | filecheck %s
//
// One function for each math function and type, called wherever it was used; what has no rule is
// left alone; a name that is taken is not taken again.

// CHECK-LABEL: func.func @calls
//       CHECK: %{{.*}} = func.call @exp_f32x16(%v) : (vector<16xf32>) -> vector<16xf32>
//       CHECK: %{{.*}} = func.call @exp_f32x16(%{{.*}}) : (vector<16xf32>) -> vector<16xf32>
//       CHECK: %{{.*}} = func.call @exp_f32_(%s) : (f32) -> f32
//       CHECK: %{{.*}} = func.call @powf_f32(%s, %s) : (f32, f32) -> f32
//       CHECK: %{{.*}} = func.call @exp_f64(%d) : (f64) -> f64
//       CHECK: %{{.*}} = func.call @cbrt_f64(%d) : (f64) -> f64
//       CHECK: math.erf %h : f16
//       CHECK: math.sqrt %v : vector<16xf32>
func.func @calls(%v: vector<16xf32>, %s: f32, %d: f64, %h: f16) {
  %a = math.exp %v : vector<16xf32>
  %b = math.exp %a : vector<16xf32>
  %c = math.exp %s : f32
  %p = math.powf %s, %s : f32
  %e = math.exp %d : f64
  %g = math.cbrt %d : f64
  %k = math.erf %h : f16
  %f = math.sqrt %v : vector<16xf32>
  func.return
}

func.func @exp_f32(%x: f32) -> f32 {
  func.return %x : f32
}

// CHECK-LABEL: func.func private @exp_f32x16(%x: vector<16xf32>) -> vector<16xf32> {
//       CHECK: arith.constant dense<[1.000000e+00, 1.044{{.*}}]> : vector<16xf32>
//       CHECK: func.call @bounded_f32x16(%x)
//       CHECK: %[[R:.*]] = math.fma %{{.*}}, %{{.*}}, %{{.*}} : vector<16xf32>
//       CHECK: func.call @tamed_f32x16(%r)
//       CHECK: kernel.lookup %{{.*}}[%{{.*}}] : vector<16xf32>, vector<16xi32> -> vector<16xf32>
//       CHECK: func.call @ldexp_f32x16(%{{.*}}, %{{.*}})
//   CHECK-NOT: math.exp
//       CHECK: func.return

// What one instruction of some machines does is a function that says so.
//
// CHECK-LABEL: func.func private @ldexp_f32(%x: f32, %y: f32) -> f32 attributes {kernel.instruction = "ldexp"} {
//       CHECK: arith.bitcast %{{.*}} : i32 to f32

// CHECK-LABEL: func.func private @exp_f32_(%x: f32) -> f32 {
//       CHECK: func.call @ldexp_f32(%{{.*}}, %{{.*}})

// CHECK-LABEL: func.func private @powf_f32(%x: f32, %y: f32) -> f32 {

// Where a lane is too large for the reduction of the argument the C library serves the vector.
//
// CHECK-LABEL: func.func private @sin_f32x4
//       CHECK: %[[WORST:.*]] = vector.reduction <maxsi>, %{{.*}} : vector<4xi32> into i32
//       CHECK: %[[BEYOND:.*]] = arith.cmpi sgt, %[[WORST]], %{{.*}} : i32
//       CHECK: scf.if %[[BEYOND]] -> (vector<4xf32>) {
//       CHECK: math.sin %x : vector<4xf32>
//       CHECK: } else {
//   CHECK-NOT: math.sin
func.func @sine(%v: vector<4xf32>) -> vector<4xf32> {
  %a = math.sin %v : vector<4xf32>
  func.return %a : vector<4xf32>
}
