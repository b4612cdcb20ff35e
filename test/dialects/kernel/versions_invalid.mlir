// RUN: %stepwell-opt %s --verify-diagnostics --split-input-file

// Each case breaks one rule of versions of a kernel.

// kernel_version_c1
// expected-error@+1 {{a version runs from one length to one as large, of 0 or more, got 4 to 2}}
"test.op"() {v = #kernel.version<d0 from 4 to 2, #kernel.schedule<[for d0]>>} : () -> ()

// -----

// expected-error@+1 {{expected a loop, as d0, got 'x'}}
"test.op"() {v = #kernel.version<x from 4 to 8, {}>} : () -> ()

// -----

// kernel_func_c11
// expected-error@+1 {{kernel.versions must be a list of #kernel.version<...>, got []}}
kernel.func @k(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> attributes {kernel.versions = []} {
  kernel.return %y : tensor<4xf32>
}

// -----

// kernel_func_c11
// expected-error@+1 {{a version is for the length of a loop, of which no op has more than 1, got d1}}
kernel.func @k(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> attributes {kernel.shared = 1, kernel.versions = [#kernel.version<d1 from 1 to 1, #kernel.schedule<[for d0]>>]} {
  kernel.return %y : tensor<4xf32>
}

// -----

// expected-error@+1 {{expected #kernel.schedule<[...]>}}
"test.op"() {v = #kernel.version<d0 from 4 to 8, {}>} : () -> ()

// -----

// kernel_func_c11
// expected-error@+1 {{kernel.first_fits has no value, got 1 : i64}}
kernel.func @k(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> attributes {kernel.first_fits = 1} {
  kernel.return %y : tensor<4xf32>
}
