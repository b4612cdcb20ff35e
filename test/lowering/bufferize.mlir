// RUN: %stepwell-opt %s -p bufferize | filecheck %s
//
// Kernels write into their destinations. softmax keeps its exponentials in the result, so that the
// caller may give one memory for input and result; what is left as temporary is a row's part.

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#v = affine_map<(d0) -> (d0)>
kernel.func @softmax(%x: tensor<?x16xf32>, %y: tensor<?x16xf32>) -> tensor<?x16xf32> attributes {kernel.shared = 1 : i64, kernel.schedule = #kernel.schedule<[parallel d0, for d1]>} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x16xf32>
  %e0 = tensor.empty(%n) : tensor<?xf32>
  %e1 = tensor.empty(%n) : tensor<?x16xf32>
  %e2 = tensor.empty(%n) : tensor<?xf32>
  %ninf = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%ninf : f32) outs(%e0 : tensor<?xf32>) -> tensor<?xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x16xf32>) outs(%f : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %1 = arith.maximumf %a, %acc : f32
    linalg.yield %1 : f32
  } -> tensor<?xf32>
  %ex = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %m : tensor<?x16xf32>, tensor<?xf32>) outs(%e1 : tensor<?x16xf32>) {
  ^bb0(%a: f32, %mm: f32, %o: f32):
    %1 = arith.subf %a, %mm : f32
    %2 = math.exp %1 : f32
    linalg.yield %2 : f32
  } -> tensor<?x16xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%ex : tensor<?x16xf32>) outs(%f2 : tensor<?xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %1 = arith.addf %a, %acc : f32
    linalg.yield %1 : f32
  } -> tensor<?xf32>
  %r = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%ex, %s : tensor<?x16xf32>, tensor<?xf32>) outs(%y : tensor<?x16xf32>) {
  ^bb0(%a: f32, %mm: f32, %o: f32):
    %1 = arith.divf %a, %mm : f32
    linalg.yield %1 : f32
  } -> tensor<?x16xf32>
  kernel.return %r : tensor<?x16xf32>
}
kernel.func @double(%x: tensor<?x16xf32>, %y: tensor<?x16xf32>) -> tensor<?x16xf32> attributes {kernel.shared = 2 : i64} {
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x16xf32>) outs(%y : tensor<?x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = arith.addf %a, %a : f32
    linalg.yield %1 : f32
  } -> tensor<?x16xf32>
  kernel.return %r : tensor<?x16xf32>
}
func.func @main(%x: tensor<?x16xf32>) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x16xf32>
  %e = tensor.empty(%n) : tensor<?x16xf32>
  %d = kernel.launch @double ins(%x : tensor<?x16xf32>) outs(%e : tensor<?x16xf32>) -> tensor<?x16xf32>
  %y = kernel.launch @softmax ins(%d : tensor<?x16xf32>) outs(%e : tensor<?x16xf32>) -> tensor<?x16xf32>
  %n2 = arith.addi %n, %n : index
  %both = tensor.empty(%n2) : tensor<?x16xf32>
  %i1 = tensor.insert_slice %y into %both[0, 0] [%n, 16] [1, 1] : tensor<?x16xf32> into tensor<?x16xf32>
  %dd = kernel.launch @double ins(%y : tensor<?x16xf32>) outs(%e : tensor<?x16xf32>) -> tensor<?x16xf32>
  %i2 = tensor.insert_slice %dd into %i1[%n, 0] [%n, 16] [1, 1] : tensor<?x16xf32> into tensor<?x16xf32>
  func.return %i2, %x : tensor<?x16xf32>, tensor<?x16xf32>
}

// Scatter is a loop that stores into its destination, begun as a copy of the argument.
kernel.func @scatter(%u: tensor<4xf32>, %y: tensor<9xf32>) -> tensor<9xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %y) -> (tensor<9xf32>) {
    %a = tensor.extract %u[%i] : tensor<4xf32>
    %b = tensor.extract %acc[%i] : tensor<9xf32>
    %s = arith.addf %a, %b : f32
    %n = tensor.insert %s into %acc[%i] : tensor<9xf32>
    scf.yield %n : tensor<9xf32>
  }
  kernel.return %r : tensor<9xf32>
}
func.func @update(%u: tensor<4xf32>, %x: tensor<9xf32>) -> tensor<9xf32> {
  %y = kernel.launch @scatter ins(%u : tensor<4xf32>) outs(%x : tensor<9xf32>) -> tensor<9xf32>
  func.return %y : tensor<9xf32>
}

// CHECK:       kernel.func @softmax(%x: memref<?x16xf32>, %y: memref<?x16xf32>)
// CHECK-SAME:    kernel.in_place = [array<i64: 0, 1>]
// CHECK:         %m = memref.alloc(%n) : memref<?xf32>
// CHECK:         %s = memref.alloc(%n) : memref<?xf32>
// CHECK:         ins(%x, %m : {{.*}}) outs(%y : memref<?x16xf32>)
// CHECK:         ins(%y : {{.*}}) outs(%s : memref<?xf32>)
// CHECK:         ins(%y, %s : {{.*}}) outs(%y : memref<?x16xf32>)
// CHECK:       kernel.func @double_view(%x: memref<?x16xf32>, %y: memref<?x16xf32, strided<[16, 1], offset: ?>>)

// Two launches write the halves of one result; the argument that is returned is copied.
// CHECK:       func.func @main(%x: memref<?x16xf32> {kernel.role = "input"}, %both: memref<?x16xf32> {kernel.role = "output"}, %x_1: memref<?x16xf32> {kernel.role = "output"})
// CHECK:         kernel.launch @softmax ins(%d : {{.*}}) outs(%{{.*}} : memref<?x16xf32>)
// CHECK:         kernel.launch @double_view ins({{.*}}) outs(%both_2 : memref<?x16xf32, strided<[16, 1], offset: ?>>)
// CHECK-NEXT:    memref.copy %x, %x_1
// CHECK-NEXT:    func.return
// CHECK:       func.func @main.shapes(%d0: index) -> (index, index)
// CHECK:         func.return %{{.*}}, %d0 : index, index

// CHECK:       kernel.func @scatter(%u: memref<4xf32>, %y: memref<9xf32>)
// CHECK:         scf.for %i = %c0 to %c4 step %c1 {
// CHECK:           memref.store %s, %y[%i]
// CHECK:         }
// CHECK-NEXT:    kernel.return

// CHECK:       func.func @update(
// CHECK:         memref.copy %x, %y : memref<9xf32> to memref<9xf32>
// CHECK-NEXT:    kernel.launch @scatter ins(%u : memref<4xf32>) outs(%y : memref<9xf32>)
