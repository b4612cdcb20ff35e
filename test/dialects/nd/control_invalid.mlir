// RUN: %stepwell-opt %s --split-input-file --verify-diagnostics

// if_c1
func.func @arguments(%c: tensor<i1>) {
  // expected-error@+1 {{first region must not have arguments}}
  "nd.if"(%c) ({
  ^bb0(%x: tensor<f32>):
    nd.yield
  }, {
    nd.yield
  }) : (tensor<i1>) -> ()
  func.return
}

// -----

// if_c2
func.func @yields(%c: tensor<i1>, %x: tensor<f32>) {
  // expected-error@+1 {{second region must yield (tensor<f32>), got ()}}
  %y = nd.if %c -> tensor<f32> {
    nd.yield %x : tensor<f32>
  } else {
    nd.yield
  }
  func.return
}

// -----

// if_c2
func.func @ends(%c: tensor<i1>) {
  // expected-error@+1 {{first region must end in nd.yield}}
  nd.if %c {
    nd.condition %c
  } else {
    nd.yield
  }
  func.return
}

// -----

// while_c1
func.func @while_arguments(%c: tensor<i1>) {
  // expected-error@+1 {{body must have arguments (tensor<i1>), got (tensor<f32>)}}
  %y = "nd.while"(%c) ({
  ^bb0(%x: tensor<i1>):
    nd.condition %x
  }, {
  ^bb0(%x: tensor<f32>):
    nd.yield %c : tensor<i1>
  }) : (tensor<i1>) -> tensor<i1>
  func.return
}

// -----

// while_c2
func.func @test_ends(%c: tensor<i1>) {
  // expected-error@+1 {{test must end in nd.condition}}
  %y = nd.while (%x = %c) : tensor<i1> {
    nd.yield %x : tensor<i1>
  } do (%z) {
    nd.yield %z : tensor<i1>
  }
  func.return
}

// -----

// while_c2
func.func @body_yields(%c: tensor<i1>) {
  // expected-error@+1 {{body must yield (tensor<i1>), got (tensor<i1>, tensor<i1>)}}
  %y = nd.while (%x = %c) : tensor<i1> {
    nd.condition %x
  } do (%z) {
    nd.yield %z, %z : tensor<i1>, tensor<i1>
  }
  func.return
}

// -----

// while_c3
func.func @while_results(%c: tensor<i1>) {
  // expected-error@+1 {{results must be (tensor<i1>), got (tensor<f32>)}}
  %y = "nd.while"(%c) ({
  ^bb0(%x: tensor<i1>):
    nd.condition %x
  }, {
  ^bb0(%x: tensor<i1>):
    nd.yield %x : tensor<i1>
  }) : (tensor<i1>) -> tensor<f32>
  func.return
}

// -----

// scan_c1
func.func @untold(%c: tensor<f32>) {
  // expected-error@+1 {{a scan over nothing must be given its length}}
  %y = nd.scan (%x = %c) : (tensor<f32>) -> tensor<f32> {
    nd.yield %x : tensor<f32>
  }
  func.return
}

// -----

// scan_c1
func.func @lengths(%a: tensor<4xf32>, %b: tensor<5xf32>) {
  // expected-error@+1 {{a scan of 4 steps cannot run along axis 0 of 5}}
  nd.scan () over (%x = %a, %y = %b) : (tensor<4xf32>, tensor<5xf32>) -> () {
    nd.yield
  }
  func.return
}

// -----

// scan_c1
func.func @scalar(%a: tensor<f32>) {
  // expected-error@+1 {{a scan runs along axis 0 of a tensor, got a scalar}}
  nd.scan () over (%x = %a) : (tensor<f32>) -> () {
    nd.yield
  }
  func.return
}

// -----

// scan_c2
func.func @slices(%a: tensor<4xf32>) {
  // expected-error@+1 {{body must have arguments (tensor<f32>), got (tensor<4xf32>)}}
  "nd.scan"(%a) <{operandSegmentSizes = array<i32: 0, 1, 0, 0>}> ({
  ^bb0(%x: tensor<4xf32>):
    nd.yield
  }) : (tensor<4xf32>) -> ()
  func.return
}

// -----

// scan_c3
func.func @stacks(%a: tensor<4xf32>) {
  // expected-error@+1 {{stacked result must have 4 elements, got tensor<5xf32>}}
  %y = nd.scan () over (%x = %a) : (tensor<4xf32>) -> tensor<5xf32> {
    nd.yield %x : tensor<f32>
  }
  func.return
}

// -----

// scan_c3
func.func @scan_yields(%a: tensor<4xf32>, %c: tensor<f32>) {
  // expected-error@+1 {{body must yield (tensor<f32>, tensor<f32>), got (tensor<f32>)}}
  %z, %y = nd.scan (%s = %c) over (%x = %a) : (tensor<f32>, tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>) {
    nd.yield %x : tensor<f32>
  }
  func.return
}

// -----

// scan_c4
func.func @sizes(%a: tensor<4x?xf32>) {
  // expected-error@+1 {{expected 1 sizes, one for each ? beyond axis 0 of the stacked results, got 0}}
  %y = nd.scan () over (%x = %a) : (tensor<4x?xf32>) -> tensor<4x?xf32> {
    nd.yield %x : tensor<?xf32>
  }
  func.return
}

// -----

// call_c1
func.func @nobody(%x: tensor<f32>) {
  // expected-error@+1 {{no function @somebody in the module}}
  %y = nd.call @somebody(%x) : (tensor<f32>) -> tensor<f32>
  func.return
}

// -----

func.func private @f(tensor<f32>) -> tensor<f32>

// call_c2
func.func @mismatch(%x: tensor<f64>) {
  // expected-error@+1 {{arguments of @f must be (tensor<f32>), got (tensor<f64>)}}
  %y = nd.call @f(%x) : (tensor<f64>) -> tensor<f32>
  func.return
}
