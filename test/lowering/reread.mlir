// RUN: %stepwell-opt %s -p "pack-operands" | filecheck %s
// RUN: %stepwell-opt %s -p "pack-operands{l2=0}" | filecheck %s --check-prefix=OFF
// RUN: %stepwell-opt %s -p "pack-operands{l3=65536}" | filecheck %s --check-prefix=OFF
// RUN: %stepwell-opt %s --check -p "pack-operands,bufferize,plan-memory,linalg-to-loops" | filecheck %s --check-prefix=LOOPS

#k = affine_map<(d0, d1) -> (d1)>
#kn = affine_map<(d0, d1) -> (d1, d0)>
#n = affine_map<(d0, d1) -> (d0)>

// OFF-NOT: @copied_reread

// CHECK-LABEL: kernel.func @copied_reread(
// CHECK-SAME:  #kernel.schedule<[for d0, for d1 by 64 overlap, unroll d1 by 16, vector d1 by 16]>
// LOOPS-LABEL: kernel.func @copied_reread(
// LOOPS:         vector.load %w
// LOOPS:         vector.store
kernel.func @step(%x: tensor<100xf32>, %w: tensor<100x100xf32>, %y: tensor<100xf32>) -> tensor<100xf32> attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[for d0 by 64, for d1, unroll d0 by 16, vector d0 by 16]>} {
  %zero = arith.constant 0.0 : f32
  %s = linalg.fill ins(%zero : f32) outs(%y : tensor<100xf32>) -> tensor<100xf32>
  %r = linalg.generic {indexing_maps = [#k, #kn, #n], iterator_types = ["parallel", "reduction"]} ins(%x, %w : tensor<100xf32>, tensor<100x100xf32>) outs(%s : tensor<100xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<100xf32>
  kernel.return %r : tensor<100xf32>
}

// One copy serves all that the loops read, in whose iterations nothing is copied.
// CHECK-LABEL: func.func @copied
// CHECK:         %[[C:.*]] = kernel.launch @copied_reread ins(%w
// CHECK-NOT:     @copied_reread
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             kernel.launch @step ins(%{{.*}}, %[[C]]
// CHECK:             kernel.launch @step ins(%{{.*}}, %[[C]]
// CHECK-NOT:     @copied_reread
func.func @copied(%x: tensor<100xf32>, %w: tensor<100x100xf32>) -> tensor<100xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %y = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> (tensor<100xf32>) {
    %z = scf.for %j = %c0 to %c4 step %c1 iter_args(%b = %a) -> (tensor<100xf32>) {
      %e = tensor.empty() : tensor<100xf32>
      %s = kernel.launch @step ins(%b, %w : tensor<100xf32>, tensor<100x100xf32>) outs(%e : tensor<100xf32>) -> tensor<100xf32>
      %f = tensor.empty() : tensor<100xf32>
      %t = kernel.launch @step ins(%s, %w : tensor<100xf32>, tensor<100x100xf32>) outs(%f : tensor<100xf32>) -> tensor<100xf32>
      scf.yield %t : tensor<100xf32>
    }
    scf.yield %z : tensor<100xf32>
  }
  func.return %y : tensor<100xf32>
}

// Weights begin with a line; few iterations do not repay a copy.
// CHECK-LABEL: func.func @weight
// CHECK-NOT:     @weight_reread
func.func @weight(%x: tensor<100xf32>, %w: tensor<100x100xf32> {nd.resource = "w"}) -> tensor<100xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c20 = arith.constant 20 : index
  %y = scf.for %i = %c0 to %c20 step %c1 iter_args(%a = %x) -> (tensor<100xf32>) {
    %e = tensor.empty() : tensor<100xf32>
    %s = kernel.launch @step ins(%a, %w : tensor<100xf32>, tensor<100x100xf32>) outs(%e : tensor<100xf32>) -> tensor<100xf32>
    scf.yield %s : tensor<100xf32>
  }
  func.return %y : tensor<100xf32>
}
// CHECK-LABEL: func.func @seldom
// CHECK-NOT:     @seldom_reread
func.func @seldom(%x: tensor<100xf32>, %w: tensor<100x100xf32>) -> tensor<100xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %y = scf.for %i = %c0 to %c8 step %c1 iter_args(%a = %x) -> (tensor<100xf32>) {
    %e = tensor.empty() : tensor<100xf32>
    %s = kernel.launch @step ins(%a, %w : tensor<100xf32>, tensor<100x100xf32>) outs(%e : tensor<100xf32>) -> tensor<100xf32>
    scf.yield %s : tensor<100xf32>
  }
  func.return %y : tensor<100xf32>
}

// A kernel that has the name already keeps it.
// CHECK:       kernel.func @named_reread(%x
// CHECK:       kernel.func @named_reread_1(%w
// CHECK-LABEL: func.func @named(
// CHECK:         kernel.launch @named_reread_1 ins(%w
// CHECK:           kernel.launch @named_reread ins(
kernel.func @named_reread(%x: tensor<100xf32>, %w: tensor<101x100xf32>, %y: tensor<100xf32>) -> tensor<100xf32> attributes {kernel.shared = 1, kernel.schedule = #kernel.schedule<[for d0 by 64, for d1, unroll d0 by 16, vector d0 by 16]>} {
  %zero = arith.constant 0.0 : f32
  %s = linalg.fill ins(%zero : f32) outs(%y : tensor<100xf32>) -> tensor<100xf32>
  %r = linalg.generic {indexing_maps = [#kn, #n], iterator_types = ["parallel", "reduction"]} ins(%w : tensor<101x100xf32>) outs(%s : tensor<100xf32>) {
  ^bb0(%a: f32, %c: f32):
    %q = arith.addf %c, %a : f32
    linalg.yield %q : f32
  } -> tensor<100xf32>
  kernel.return %r : tensor<100xf32>
}
func.func @named(%x: tensor<100xf32>, %w: tensor<101x100xf32>) -> tensor<100xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %y = scf.for %i = %c0 to %c16 step %c1 iter_args(%a = %x) -> (tensor<100xf32>) {
    %e = tensor.empty() : tensor<100xf32>
    %s = kernel.launch @named_reread ins(%a, %w : tensor<100xf32>, tensor<101x100xf32>) outs(%e : tensor<100xf32>) -> tensor<100xf32>
    scf.yield %s : tensor<100xf32>
  }
  func.return %y : tensor<100xf32>
}
