func.func @main(%x: memref<?xf32>, %y: memref<?xf32> {kernel.role = "output"}) {
  kernel.launch @k ins(%x : memref<?xf32>) outs(%y : memref<?xf32>)
  func.return
}
func.func @main.shapes(%n: index) -> index {
  func.return %n : index
}
kernel.func @k(%x: memref<?xf32>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant dense<0.0> : vector<8xf32>
  %n = memref.dim %x, %c0 : memref<?xf32>
  %whole = arith.divsi %n, %c8 : index
  %end = arith.muli %whole, %c8 : index
  scf.parallel (%i) = (%c0) to (%end) step (%c8) {
    %v = vector.load %x[%i] : memref<?xf32>, vector<8xf32>
    %w = arith.addf %v, %v : vector<8xf32>
    vector.store %w, %y[%i] : memref<?xf32>, vector<8xf32>
    scf.reduce
  }
  %rest = arith.subi %n, %end : index
  %mask = vector.create_mask %rest : vector<8xi1>
  %m = vector.maskedload %x[%end], %mask, %zero : memref<?xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
  %k = arith.remui %rest, %c8 : index
  %lane = vector.extract %m[%k] : f32 from vector<8xf32>
  %t = memref.alloca() : memref<2xf32>
  %u = scf.for %j = %c0 to %c2 step %c1 iter_args(%a = %lane) -> (f32) {
    memref.store %a, %t[%j] : memref<2xf32>
    %b = arith.addf %a, %a : f32
    scf.yield %b : f32
  }
  %f = vector.insert %u, %m [%k] : f32 into vector<8xf32>
  vector.maskedstore %y[%end], %mask, %f : memref<?xf32>, vector<8xi1>, vector<8xf32>
  kernel.return
}
