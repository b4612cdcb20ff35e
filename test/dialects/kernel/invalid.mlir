// RUN: %stepwell-opt %s --verify-diagnostics --split-input-file

// Each case breaks one numbered constraint of the kernel dialect.

// kernel_func_c1
// expected-error@+1 {{arguments must have the types that the kernel's type says}}
"kernel.func"() <{sym_name = "k", function_type = (tensor<4xf32>) -> ()}> ({
^bb0(%x: tensor<8xf32>):
  "kernel.return"() : () -> ()
}) : () -> ()

// -----

// kernel_func_c2
// expected-error@+1 {{kernel body must end in kernel.return}}
kernel.func @k(%x: tensor<4xf32>) {
  %c = arith.constant 0 : index
}

// -----

// kernel_func_c2
// expected-error@+1 {{kernel returns (tensor<4xf32>), but its type says (tensor<8xf32>)}}
kernel.func @k(%x: tensor<4xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  kernel.return %x : tensor<4xf32>
}

// -----

// kernel_func_c3
// expected-error@+1 {{each result must have a destination among the last arguments}}
kernel.func @k(%x: tensor<4xf32>, %y: tensor<8xf32>) -> tensor<4xf32> {
  kernel.return %x : tensor<4xf32>
}

// -----

// kernel_func_c4
// expected-error@+1 {{kernel.shared must be a number of 0 or more, got -1 : i64}}
kernel.func @k(%x: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {kernel.shared = -1} {
  kernel.return %x : tensor<4x4xf32>
}

// -----

// kernel_func_c4
// expected-error@+1 {{kernel.shared must be a number of 0 or more, got -1 : i64}}
kernel.func @k(%x: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {kernel.shared = -1} {
  kernel.return %x : tensor<4x4xf32>
}

// -----

// kernel_func_c5
// expected-error@+1 {{the first 2 loops of every linalg.generic must be parallel: kernel.shared says that they are the same}}
kernel.func @k(%x: tensor<4x4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> attributes {kernel.shared = 2} {
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<4x4xf32>) outs(%y : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<4xf32>
  kernel.return %r : tensor<4xf32>
}

// -----

// kernel_func_c6
// expected-error@+1 {{a value is read at other indices of shared loop 0 than it is written at}}
kernel.func @k(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {kernel.shared = 1} {
  %e = tensor.empty() : tensor<4x4xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<4x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
    ins(%t : tensor<4x4xf32>) outs(%y : tensor<4x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<4x4xf32>
  kernel.return %r : tensor<4x4xf32>
}

// -----

// kernel_func_c7
// expected-error@+1 {{a kernel has no kernel.shred; did you mean 'kernel.shared'?}}
kernel.func @k(%x: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {kernel.shred = 2} {
  kernel.return %x : tensor<4x4xf32>
}

// -----

// kernel_func_c8
// expected-error@+1 {{kernel.in_place is found by bufferize: leave it off on tensors}}
kernel.func @k(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> attributes {kernel.in_place = [array<i64: 0, 1>]} {
  kernel.return %x : tensor<4xf32>
}

// -----

// kernel_func_c8
// expected-error@+1 {{kernel.in_place must be pairs of numbers of arguments that are buffers, got [array<i64: 7, 64>]}}
kernel.func @k(%x: memref<4xf32>, %y: memref<4xf32>) attributes {kernel.in_place = [array<i64: 7, 64>]} {
  kernel.return
}

// -----

// kernel_func_c9
// expected-error@+1 {{kernel.within must be arrays of three numbers on a linalg.generic: a loop, and the inputs, of type index, where its part begins and ends, got [array<i64: 0, 0, 1>]}}
kernel.func @k(%x: memref<4xf32>, %n: index, %y: memref<4xf32>) {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x, %n : memref<4xf32>, index) outs(%y : memref<4xf32>) attrs = {kernel.within = [array<i64: 0, 0, 1>]} {
  ^bb0(%a: f32, %m: index, %o: f32):
    linalg.yield %a : f32
  }
  kernel.return
}

// -----

// kernel_launch_c1
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{no kernel.func @k in the module}}
  %y = kernel.launch @k outs(%x : tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// kernel_launch_c2
kernel.func @k(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  kernel.return %x : tensor<4x4xf32>
}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{operands do not have the types of the arguments of @k}}
  %y = kernel.launch @k outs(%x : tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// kernel_launch_c3
kernel.func @k(%x: tensor<4xf32>) -> tensor<4xf32> {
  kernel.return %x : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{each tensor among outs must give one result of its type}}
  %y = kernel.launch @k outs(%x : tensor<4xf32>) -> tensor<4x4xf32>
  func.return %x : tensor<4xf32>
}

// -----

// kernel_concurrent_c1
func.func @main() {
  // expected-error@+1 {{there must be two branches or more, without arguments}}
  kernel.concurrent {
  }
  func.return
}

// -----

// kernel_concurrent_c2
kernel.func @k(%x: memref<4xf32>, %y: memref<4xf32>) {
  kernel.return
}
func.func @main(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>) {
  // expected-error@+1 {{a branch touches what another one writes}}
  kernel.concurrent {
    kernel.launch @k ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
  } and {
    kernel.launch @k ins(%y : memref<4xf32>) outs(%z : memref<4xf32>)
  }
  func.return
}

// -----

// kernel_prefetch_c1
func.func @main(%x: memref<4x4xf32>, %i: index) {
  // expected-error@+1 {{a buffer of 2 axes needs as many indices}}
  kernel.prefetch %x[%i] : memref<4x4xf32>
  func.return
}

// -----

// kernel_lookup_c1
func.func @main(%t: vector<12xf32>, %i: i32) {
  // expected-error@+1 {{a table has a power of two of lanes, this is vector<12xf32>}}
  %y = kernel.lookup %t[%i] : vector<12xf32>, i32 -> f32
  func.return
}

// -----

func.func @main(%t: vector<16xf32>, %i: f32) {
  // expected-error@+1 {{indices must be integers, not f32}}
  %y = kernel.lookup %t[%i] : vector<16xf32>, f32 -> f32
  func.return
}

// -----

// kernel_lookup_c2
func.func @main(%t: vector<16xf32>, %i: vector<8xi32>) {
  // expected-error@+1 {{gives vector<8xf32>, not vector<16xf32>}}
  %y = kernel.lookup %t[%i] : vector<16xf32>, vector<8xi32> -> vector<16xf32>
  func.return
}

// -----

// kernel_check_c1
func.func @kind(%c: i1) {
  // expected-error@+1 {{no check raises 'Error'}}
  kernel.check %c {kind = "Error", words = ["a"]}
  func.return
}

// -----

// kernel_check_c2
func.func @words(%c: i1, %i: i64) {
  // expected-error@+1 {{there must be one text more than numbers, got 1 and 1}}
  kernel.check %c, %i : i64 {kind = "ValueError", words = ["a"]}
  func.return
}

// -----

// kernel_stack_c1
func.func @main(%a: tensor<f32>) {
  // expected-error@+1 {{a part must have axes, not be tensor<f32>}}
  %s = kernel.stack %a, %a : tensor<f32> -> tensor<2x8xf32>
  func.return
}

// -----

func.func @main(%a: tensor<4xf32>, %b: tensor<2x2xf32>) {
  // expected-error@+1 {{there must be parts, all of one type}}
  %s = "kernel.stack"(%a, %b) <{operandSegmentSizes = array<i32: 2, 0>}> : (tensor<4xf32>, tensor<2x2xf32>) -> tensor<2x8xf32>
  func.return
}

// -----

// kernel_stack_c2
func.func @main(%a: tensor<3x3xf32>) {
  // expected-error@+1 {{2 parts of type tensor<3x3xf32> make 2 rows of 9 elements or more, not tensor<2x8xf32>}}
  %s = kernel.stack %a, %a : tensor<3x3xf32> -> tensor<2x8xf32>
  func.return
}

// -----

// kernel_stack_c3
func.func @main(%a: tensor<?xf32>) {
  // expected-error@+1 {{parts, rows and the length must all be known, or none of them}}
  %s = kernel.stack %a, %a : tensor<?xf32> -> tensor<2x?xf32>
  func.return
}

// -----

// kernel_dot_c1
func.func @main(%s: i32, %x: i32) {
  // expected-error@+1 {{words hold one of i8, ui8, f16, bf16}}
  %y = kernel.dot %s, %x of i8, %x of i16 : i32 -> i32
  func.return
}

// -----

func.func @main(%s: f32, %x: i32) {
  // expected-error@+1 {{no instruction multiplies f16 by bf16}}
  %y = kernel.dot %s, %x of f16, %x of bf16 : i32 -> f32
  func.return
}

// -----

func.func @main(%s: i32, %x: i32) {
  // expected-error@+1 {{products of bf16 are added to f32}}
  %y = kernel.dot %s, %x of bf16, %x of bf16 : i32 -> i32
  func.return
}

// -----

// kernel_dot_c2
func.func @main(%s: vector<4xf32>, %x: vector<8xi32>) {
  // expected-error@+1 {{there is a total for each lane of words}}
  %y = kernel.dot %s, %x of bf16, %x of bf16 : vector<8xi32> -> vector<4xf32>
  func.return
}

// -----

// kernel_dot_tile_c1
func.func @main(%z: memref<32x32xi32>, %x: memref<32x9xi32>, %w: memref<9x32xi32>, %i: index, %s: memref<1xi64>) {
  // expected-error@+1 {{products of bf16 are added to f32}}
  kernel.dot_tile %z[%i, %i], %x[%i, %i] of bf16, %w of bf16, %i rows %i of 32 shapes %s : memref<32x32xi32>, memref<32x9xi32>, memref<9x32xi32>
  func.return
}

// -----

// kernel_dot_tile_c2
func.func @main(%z: memref<?x32xi32>, %x: memref<32x9xi32>, %w: memref<?x32xi32>, %i: index, %s: memref<1xi64>) {
  // expected-error@+1 {{a tile needs an index for each axis of sums and rows, and i32 words of columns}}
  kernel.dot_tile %z[%i, %i], %x[%i, %i] of i8, %w of i8, %i rows %i of 32 shapes %s : memref<?x32xi32>, memref<32x9xi32>, memref<?x32xi32>
  func.return
}

// -----

// kernel_dot_tile_c3
func.func @main(%z: memref<32x24xi32>, %x: memref<32x9xi32>, %w: memref<9x24xi32>, %i: index, %s: memref<1xi64>) {
  // expected-error@+1 {{a tile of 32 rows and 24 columns is not made of 16 by 16}}
  kernel.dot_tile %z[%i, %i], %x[%i, %i] of i8, %w of i8, %i rows %i of 32 shapes %s : memref<32x24xi32>, memref<32x9xi32>, memref<9x24xi32>
  func.return
}
