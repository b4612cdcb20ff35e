// RUN: %stepwell-opt %s --split-input-file --verify-diagnostics

func.func @f(%v: vector<8xf32>) {
  // expected-error@+1 {{'vector.extract': 9 does not lie within axis 0 of vector<8xf32>}}
  %e = vector.extract %v[9] : f32 from vector<8xf32>
  func.return
}

// -----

func.func @f(%v: vector<8xf32>, %f: f32) {
  // expected-error@+1 {{'vector.insert': 8 does not lie within axis 0 of vector<8xf32>}}
  %e = vector.insert %f, %v[8] : f32 into vector<8xf32>
  func.return
}

// -----

func.func @f(%m: memref<4x8xf32, strided<[1, 4]>>, %n: index) {
  // expected-error@+1 {{'vector.load': vectors are of elements that lie side by side, those of memref<4x8xf32, strided<[1, 4]>> may not}}
  %v = vector.load %m[%n, %n] : memref<4x8xf32, strided<[1, 4]>>, vector<8xf32>
  func.return
}

// -----

func.func @f(%m: memref<8xf32>, %n: index, %k: vector<4xi1>, %v: vector<8xf32>) {
  // expected-error@+1 {{'vector.maskedload': vector<8xf32> needs a mask of as many lanes, not vector<4xi1>}}
  %l = vector.maskedload %m[%n], %k, %v : memref<8xf32>, vector<4xi1>, vector<8xf32> into vector<8xf32>
  func.return
}

// -----

func.func @f(%v: vector<4xf32>) {
  // expected-error@+1 {{'vector.broadcast': vector<4xf32> cannot be repeated to vector<8xf32>}}
  %l = vector.broadcast %v : vector<4xf32> to vector<8xf32>
  func.return
}
