// RUN: %stepwell-opt %s --verify-diagnostics --split-input-file

// elementwise_c1
func.func @f(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error@+1 {{operands must have one type, got tensor<4xf32> and tensor<5xf32>}}
  %z = "nd.add"(%x, %y) : (tensor<4xf32>, tensor<5xf32>) -> tensor<4xf32>
  func.return
}

// -----

// elementwise_c2
func.func @f(%x: tensor<4xi32>) {
  // expected-error@+1 {{elements must be floating point, got tensor<4xi32>}}
  %z = nd.exp %x : tensor<4xi32>
  func.return
}

// -----

// elementwise_c2
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{elements must be integer or i1, got tensor<4xf32>}}
  %z = nd.and %x, %x : tensor<4xf32>
  func.return
}

// -----

// elementwise_c3
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{result must be tensor<4xi1>, got tensor<4xf32>}}
  %z = nd.lt %x, %x : tensor<4xf32> -> tensor<4xf32>
  func.return
}

// -----

func.func @f(%x: tensor<4xi7>) {
  // expected-error@+1 {{i7 is no element type of nd}}
  %z = nd.neg %x : tensor<4xi7>
  func.return
}

// -----

// select_c1
func.func @f(%c: tensor<5xi1>, %x: tensor<4xf32>) {
  // expected-error@+1 {{condition must be tensor<4xi1>, got tensor<5xi1>}}
  %z = "nd.select"(%c, %x, %x) : (tensor<5xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

// select_c2
func.func @f(%c: tensor<4xi1>, %x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error@+1 {{alternatives and result must have one type, got tensor<4xf32>, tensor<4xf64>}}
  %z = "nd.select"(%c, %x, %y) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf64>) -> tensor<4xf32>
  func.return
}

// -----

// bitcast_c1
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{elements must have one width, got f32 and i16}}
  %z = nd.bitcast %x : tensor<4xf32> -> tensor<4xi16>
  func.return
}

// -----

// constant_c1
func.func @f() {
  // expected-error@+1 {{a constant has a static shape, got tensor<?xf32>}}
  %z = nd.constant #nd.resource<"w", ""> : tensor<?xf32>
  func.return
}

// -----

// constant_c1
func.func @f() {
  // expected-error@+1 {{result must be tensor<2xi32>, got tensor<3xi32>}}
  %z = "nd.constant"() <{value = dense<[1, 2]> : tensor<2xi32>}> : () -> tensor<3xi32>
  func.return
}

// -----

// full_c1
func.func @f(%n: index) {
  // expected-error@+1 {{tensor<4xf32> needs 0 operands in sizes(...), got 1}}
  %z = nd.full 1.0, sizes(%n) : tensor<4xf32>
  func.return
}

// -----

// full_c2
func.func @f() {
  // expected-error@+1 {{value must be of type f32, got i32}}
  %z = "nd.full"() <{value = 1 : i32}> : () -> tensor<4xf32>
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{1.5 is no value of i32}}
  %z = nd.full 1.5 : tensor<4xi32>
  func.return
}

// -----

// iota_c1
func.func @f() {
  // expected-error@+1 {{tensor<?xi32> needs 1 operands in sizes(...), got 0}}
  %z = nd.iota {axis = 0} : tensor<?xi32>
  func.return
}

// -----

// iota_c2
func.func @f() {
  // expected-error@+1 {{axis must lie in 0..0, got 1}}
  %z = nd.iota {axis = 1} : tensor<4xi32>
  func.return
}

// -----

// iota_c3
func.func @f() {
  // expected-error@+1 {{elements must be floating point or integer, got tensor<4xi1>}}
  %z = nd.iota {axis = 0} : tensor<4xi1>
  func.return
}

// -----

// random_bits_c1
func.func @f(%k: tensor<2xui32>, %s: tensor<ui64>) {
  // expected-error@+1 {{tensor<?xui32> needs 1 operands in sizes(...), got 0}}
  %z = nd.random_bits %k, %s : tensor<?xui32>
  func.return
}

// -----

// random_bits_c2
func.func @f(%k: tensor<3xui32>, %s: tensor<ui64>) {
  // expected-error@+1 {{key and start must be tensor<2xui32> and tensor<ui64>, got tensor<3xui32>, tensor<ui64>}}
  %z = "nd.random_bits"(%k, %s) : (tensor<3xui32>, tensor<ui64>) -> tensor<4xui32>
  func.return
}

// -----

// random_bits_c3
func.func @f(%k: tensor<2xui32>, %s: tensor<ui64>) {
  // expected-error@+1 {{elements must be ui32 or ui64, got tensor<4xf32>}}
  %z = nd.random_bits %k, %s : tensor<4xf32>
  func.return
}

// -----

// creation_c1
func.func @f(%n: index) {
  // expected-error@+1 {{tensor<4xf32> needs 0 operands in sizes(...), got 1}}
  %z = nd.full 1.0, sizes(%n) : tensor<4xf32>
  func.return
}
