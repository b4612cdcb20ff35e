// RUN: %stepwell-opt %s -p outline-kernels --check | filecheck %s
//
// A loop that carries a number beside a tensor, as running sums do, is the host's: a kernel gives
// tensors only. What writes the element is a kernel.

func.func @running(%counts: tensor<5xi32>) -> (tensor<5xi32>, i32) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 5 : index
  %none = arith.constant 0 : i32
  %places, %all = scf.for %i = %zero to %n step %one iter_args(%t = %counts, %sum = %none) -> (tensor<5xi32>, i32) {
    %count = tensor.extract %t[%i] : tensor<5xi32>
    %written = tensor.insert %sum into %t[%i] : tensor<5xi32>
    %next = arith.addi %sum, %count : i32
    scf.yield %written, %next : tensor<5xi32>, i32
  }
  func.return %places, %all : tensor<5xi32>, i32
}
// CHECK-LABEL: func.func @running
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (tensor<5xi32>, i32)
// CHECK: kernel.launch
