// RUN: %stepwell-opt %s -p inline-calls,decompose,nd-to-linalg,canonicalize,cse,fuse-elementwise,outline-kernels | filecheck %s

// What a loop goes on with, and reads besides, is made by a kernel of its own: of a size that only the run knows, the loop's kernel has no room for a copy.
// CHECK:     kernel.func @main_sum
// CHECK:     kernel.func @main_
// CHECK:     func.func @main
// CHECK:       kernel.launch @main_sum
// CHECK:       kernel.launch @main_
func.func @main(%x: tensor<?x?xi32>) -> tensor<?xi32> {
  %s = nd.reduce_sum %x {axes = [0]} : tensor<?x?xi32> -> tensor<?xi32>
  %n = nd.dim %x {axis = 1} : tensor<?x?xi32>
  %a, %b = nd.scan (%c = %s) over (%r = %x) sizes(%n) : (tensor<?xi32>, tensor<?x?xi32>) -> (tensor<?xi32>, tensor<?x?xi32>) {
    nd.yield %s, %r : tensor<?xi32>, tensor<?xi32>
  }
  func.return %a : tensor<?xi32>
}
