// RUN: %stepwell-opt %s --split-input-file --verify-diagnostics

// checkpoint_c1
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{body must yield (tensor<f32>), got (tensor<4xf32>)}}
  %y = nd.checkpoint (%a = %x) : (tensor<4xf32>) -> tensor<f32> {
    nd.yield %a : tensor<4xf32>
  }
  func.return
}

// -----

// checkpoint_c3
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{named and unnamed exclude each other}}
  %y = nd.checkpoint (%a = %x) {named = ["a"], unnamed = ["b"]} : (tensor<4xf32>) -> tensor<4xf32> {
    nd.yield %a : tensor<4xf32>
  }
  func.return
}

// -----

// checkpoint_name_c1
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{called must be a name}}
  %y = nd.checkpoint_name %x {called = ""} : tensor<4xf32>
  func.return
}

// -----

// checkpoint_c2
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{policy must be one of nothing, everything, dots, dots_without_batch, got some}}
  %y = nd.checkpoint (%a = %x) {policy = "some"} : (tensor<4xf32>) -> tensor<4xf32> {
    nd.yield %a : tensor<4xf32>
  }
  func.return
}

// -----

// custom_jvp_c1
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{body must have arguments (tensor<4xf32>), got ()}}
  %y = "nd.custom_jvp"(%x) ({
    nd.yield %x : tensor<4xf32>
  }, {
  ^bb0(%a: tensor<4xf32>, %t: tensor<4xf32>):
    nd.yield %a, %t : tensor<4xf32>, tensor<4xf32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

// custom_jvp_c2
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{tangents must have arguments (tensor<4xf32>, tensor<4xf32>), got (tensor<4xf32>)}}
  %y = nd.custom_jvp (%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    nd.yield %a : tensor<4xf32>
  } tangents {
  ^bb0(%a: tensor<4xf32>):
    nd.yield %a, %a : tensor<4xf32>, tensor<4xf32>
  }
  func.return
}

// -----

// custom_jvp_c2
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{tangents must yield (tensor<4xf32>, tensor<4xf32>), got (tensor<4xf32>)}}
  %y = nd.custom_jvp (%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    nd.yield %a : tensor<4xf32>
  } tangents {
  ^bb0(%a: tensor<4xf32>, %t: tensor<4xf32>):
    nd.yield %a : tensor<4xf32>
  }
  func.return
}

// -----

// custom_vjp_c1
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{body must yield (), got (tensor<4xf32>)}}
  nd.custom_vjp (%a = %x) : (tensor<4xf32>) -> () {
    nd.yield %a : tensor<4xf32>
  } forward {
  ^bb0(%a: tensor<4xf32>):
    nd.yield %a : tensor<4xf32>
  } backward {
  ^bb0(%g: tensor<4xf32>):
    nd.yield %g : tensor<4xf32>
  }
  func.return
}

// -----

// custom_vjp_c2
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{forward must have arguments (tensor<4xf32>), got ()}}
  %y = nd.custom_vjp (%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    nd.yield %a : tensor<4xf32>
  } forward {
    nd.yield %x : tensor<4xf32>
  } backward {
  ^bb0(%g: tensor<4xf32>):
    nd.yield %g : tensor<4xf32>
  }
  func.return
}

// -----

// custom_vjp_c2
func.func @f(%x: tensor<4xf32>, %n: tensor<i32>) {
  // expected-error@+1 {{forward must yield first (tensor<4xf32>), got (tensor<i32>)}}
  %y = nd.custom_vjp (%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    nd.yield %a : tensor<4xf32>
  } forward {
  ^bb0(%a: tensor<4xf32>):
    nd.yield %n : tensor<i32>
  } backward {
  ^bb0(%g: tensor<4xf32>):
    nd.yield %g : tensor<4xf32>
  }
  func.return
}

// -----

// custom_vjp_c3
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{backward must have arguments (tensor<4xf32>, tensor<4xf32>), got (tensor<4xf32>)}}
  %y = nd.custom_vjp (%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    nd.yield %a : tensor<4xf32>
  } forward {
  ^bb0(%a: tensor<4xf32>):
    nd.yield %a, %a : tensor<4xf32>, tensor<4xf32>
  } backward {
  ^bb0(%g: tensor<4xf32>):
    nd.yield %g : tensor<4xf32>
  }
  func.return
}

// -----

// custom_vjp_c3
func.func @f(%x: tensor<4xf32>) {
  // expected-error@+1 {{backward must yield (tensor<4xf32>), got ()}}
  %y = nd.custom_vjp (%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
    nd.yield %a : tensor<4xf32>
  } forward {
  ^bb0(%a: tensor<4xf32>):
    nd.yield %a : tensor<4xf32>
  } backward {
  ^bb0(%g: tensor<4xf32>):
    nd.yield
  }
  func.return
}
