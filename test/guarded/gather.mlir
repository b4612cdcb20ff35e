func.func @main(%x: memref<?xf32> {kernel.role = "input"}, %i: memref<4xi64>, %y: memref<4xf32> {kernel.role = "output"}) {
  kernel.launch @k ins(%x, %i : memref<?xf32>, memref<4xi64>) outs(%y : memref<4xf32>)
  func.return
}
kernel.func @k(%x: memref<?xf32>, %i: memref<4xi64>, %y: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.parallel (%k) = (%c0) to (%c4) step (%c1) {
    %j = memref.load %i[%k] : memref<4xi64>
    %at = arith.index_cast %j : i64 to index
    %v = memref.load %x[%at] : memref<?xf32>
    memref.store %v, %y[%k] : memref<4xf32>
    scf.reduce
  }
  kernel.return
}
