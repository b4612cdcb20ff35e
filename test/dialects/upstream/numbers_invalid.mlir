// RUN: %stepwell-opt %s --split-input-file --verify-diagnostics

func.func @f(%f: f32) {
  // expected-error@+1 {{'arith.extf': f16 is not wider than f32}}
  %e = arith.extf %f : f32 to f16
  func.return
}

// -----

func.func @f(%f: f16) {
  // expected-error@+1 {{'arith.truncf': f32 is not narrower than f16}}
  %e = arith.truncf %f : f16 to f32
  func.return
}

// -----

func.func @f(%v: vector<4xf16>) {
  // expected-error@+1 {{'arith.extf': operand and result must have one shape, not vector<4xf16> and vector<8xf32>}}
  %e = arith.extf %v : vector<4xf16> to vector<8xf32>
  func.return
}

// -----

func.func @f(%f: f32) {
  // expected-error@+1 {{'arith.sitofp': it goes from signless integers to floats, but f32 is not of signless integers}}
  %e = "arith.sitofp"(%f) : (f32) -> f64
  func.return
}

// -----

func.func @f(%b: i1, %f: f32, %g: f64) {
  // expected-error@+1 {{'arith.select': it chooses one of two f32, not of f32 and f64}}
  %e = "arith.select"(%b, %f, %g) : (i1, f32, f64) -> f32
  func.return
}

// -----

func.func @f(%i: i32) {
  // expected-error@+1 {{'arith.cmpi': it has 3 operands, there must be 2}}
  %e = "arith.cmpi"(%i, %i, %i) <{predicate = 0 : i64}> : (i32, i32, i32) -> i1
  func.return
}

// -----

func.func @f(%i: i32) {
  // expected-error@+1 {{'arith.cmpi': there is no predicate 10}}
  %e = "arith.cmpi"(%i, %i) <{predicate = 10 : i64}> : (i32, i32) -> i1
  func.return
}

// -----

// expected-error@+1 {{an integer of 99999999 bits is wider than any may be, 16777215}}
func.func private @wide(i99999999)
