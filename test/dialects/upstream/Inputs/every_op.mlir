// Each op that a floor uses, in a form that MLIR takes: what test_verifiers.py alters.

#id = affine_map<(d0) -> (d0)>
#row = affine_map<(d0, d1) -> (d0, d1)>
#first = affine_map<(d0, d1) -> (d0)>

memref.global "private" constant @table : memref<2xf32> = dense<[1.000000e+00, 2.000000e+00]>

func.func private @callee(i32, tensor<4xf32>) -> (f32, index)

func.func @calls(%i: i32, %t: tensor<4xf32>) -> f32 {
  %r, %n = func.call @callee(%i, %t) : (i32, tensor<4xf32>) -> (f32, index)
  func.return %r : f32
}

func.func @tensors(%t: tensor<4xf32>, %d: tensor<?x8xf32>, %s: tensor<2x3xf32>, %f: f32, %n: index) {
  %cast = tensor.cast %d : tensor<?x8xf32> to tensor<4x8xf32>
  %back = tensor.cast %t : tensor<4xf32> to tensor<?xf32>
  %collapsed = tensor.collapse_shape %d [[0, 1]] : tensor<?x8xf32> into tensor<?xf32>
  %collapsed2 = tensor.collapse_shape %s [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>
  %joined = tensor.concat dim(0) %t, %t : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %dim = tensor.dim %d, %n : tensor<?x8xf32>
  %empty = tensor.empty(%n) : tensor<?x8xf32>
  %empty2 = tensor.empty() : tensor<3xf32>
  %expanded = tensor.expand_shape %t [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>
  %expanded2 = tensor.expand_shape %d [[0, 1], [2]] output_shape [%n, 2, 8] : tensor<?x8xf32> into tensor<?x2x8xf32>
  %element = tensor.extract %d[%n, %n] : tensor<?x8xf32>
  %slice = tensor.extract_slice %s[0, 1] [2, 2] [1, 1] : tensor<2x3xf32> to tensor<2x2xf32>
  %slice2 = tensor.extract_slice %d[%n, 0] [%n, 4] [1, 2] : tensor<?x8xf32> to tensor<?x4xf32>
  %slice3 = tensor.extract_slice %s[%n, 1] [1, 2] [1, 1] : tensor<2x3xf32> to tensor<2xf32>
  %made = tensor.from_elements %f, %f, %f, %f : tensor<2x2xf32>
  %put = tensor.insert %f into %d[%n, %n] : tensor<?x8xf32>
  %within = tensor.insert_slice %t into %d[%n, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<?x8xf32>
  %within2 = tensor.insert_slice %s into %d[0, %n] [2, 3] [1, 2] : tensor<2x3xf32> into tensor<?x8xf32>
  %sizes = "test.make"() : () -> tensor<2xindex>
  %reshaped = tensor.reshape %t(%sizes) : (tensor<4xf32>, tensor<2xindex>) -> tensor<2x2xf32>
  %splat = tensor.splat %f : tensor<3xf32>
  %padded = tensor.pad %s low[1, %n] high[0, 2] {
  ^bb0(%i: index, %j: index):
    tensor.yield %f : f32
  } : tensor<2x3xf32> to tensor<3x?xf32>
  func.return
}

func.func @structured(%t: tensor<4xf32>, %d: tensor<?x8xf32>, %s: tensor<8xf32>, %f: f32, %m: memref<4xf32>, %q: tensor<4x8xf32>, %r: tensor<8x4xf32>, %m8: memref<9xf32>) {
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%t : tensor<4xf32>) outs(%t : tensor<4xf32>) {
  ^bb0(%p: f32, %o: f32):
    %i = linalg.index 0 : index
    %v = arith.addf %p, %o : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %z = linalg.generic {indexing_maps = [#row, affine_map<(d0, d1) -> (d1)>, #first], iterator_types = ["parallel", "reduction"]} ins(%q, %s : tensor<4x8xf32>, tensor<8xf32>) outs(%t : tensor<4xf32>) {
  ^bb0(%p: f32, %k: f32, %o: f32):
    %v = arith.addf %p, %o : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0 * 2 + 1)>, #id], iterator_types = ["parallel"]} ins(%m8 : memref<9xf32>) outs(%m : memref<4xf32>) {
  ^bb0(%p: f32, %o: f32):
    linalg.yield %p : f32
  }
  %filled = linalg.fill ins(%f : f32) outs(%d : tensor<?x8xf32>) -> tensor<?x8xf32>
  linalg.fill ins(%f : f32) outs(%m : memref<4xf32>)
  %copied = linalg.copy ins(%t : tensor<4xf32>) outs(%t : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.add ins(%t, %t : tensor<4xf32>, tensor<4xf32>) outs(%t : tensor<4xf32>) -> tensor<4xf32>
  %difference = linalg.sub ins(%t, %t : tensor<4xf32>, tensor<4xf32>) outs(%t : tensor<4xf32>) -> tensor<4xf32>
  %product = linalg.mul ins(%t, %t : tensor<4xf32>, tensor<4xf32>) outs(%t : tensor<4xf32>) -> tensor<4xf32>
  %larger = linalg.max ins(%t, %t : tensor<4xf32>, tensor<4xf32>) outs(%t : tensor<4xf32>) -> tensor<4xf32>
  %smaller = linalg.min ins(%t, %t : tensor<4xf32>, tensor<4xf32>) outs(%t : tensor<4xf32>) -> tensor<4xf32>
  %turned = linalg.transpose ins(%q : tensor<4x8xf32>) outs(%r : tensor<8x4xf32>) permutation = [1, 0]
  %spread = linalg.broadcast ins(%t : tensor<4xf32>) outs(%q : tensor<4x8xf32>) dimensions = [1]
  %x = "test.make"() : () -> tensor<4x4xf32>
  %multiplied = linalg.matmul ins(%q, %r : tensor<4x8xf32>, tensor<8x4xf32>) outs(%x : tensor<4x4xf32>) -> tensor<4x4xf32>
  %reduced = linalg.reduce ins(%q : tensor<4x8xf32>) outs(%t : tensor<4xf32>) dimensions = [1] (%a: f32, %b: f32) {
    %v = arith.addf %a, %b : f32
    linalg.yield %v : f32
  }
  func.return
}

func.func @control(%c: i1, %n: index, %t: tensor<4xf32>, %f: f32) {
  %a = scf.if %c -> (f32) {
    scf.yield %f : f32
  } else {
    scf.yield %f : f32
  }
  scf.if %c {
  }
  %b, %b2 = scf.for %i = %n to %n step %n iter_args(%s = %f, %u = %t) -> (f32, tensor<4xf32>) {
    %v = arith.addf %s, %f : f32
    scf.yield %v, %u : f32, tensor<4xf32>
  }
  %w, %w2 = scf.while (%s = %f, %u = %t) : (f32, tensor<4xf32>) -> (f32, tensor<4xf32>) {
    scf.condition(%c) %s, %u : f32, tensor<4xf32>
  } do {
  ^bb0(%s: f32, %u: tensor<4xf32>):
    scf.yield %s, %u : f32, tensor<4xf32>
  }
  scf.parallel (%i, %j) = (%n, %n) to (%n, %n) step (%n, %n) {
    scf.reduce
  }
  %p = scf.parallel (%i) = (%n) to (%n) step (%n) init (%f) -> f32 {
    scf.reduce(%f : f32) {
    ^bb0(%l: f32, %r: f32):
      scf.reduce.return %l : f32
    }
  }
  %x = scf.execute_region -> f32 {
    scf.yield %f : f32
  }
  %y = scf.index_switch %n -> f32
  case 2 {
    scf.yield %f : f32
  }
  default {
    scf.yield %f : f32
  }
  func.return
}

func.func @memory(%m: memref<4x8xf32>, %d: memref<?x8xf32>, %bytes: memref<?xi8>, %n: index, %f: f32, %l: memref<4xf32>, %k: memref<64xi8>) {
  %e = memref.load %m[%n, %n] : memref<4x8xf32>
  memref.store %f, %d[%n, %n] : memref<?x8xf32>
  %a = memref.alloc(%n) : memref<?x8xf32>
  %a2 = memref.alloca() : memref<4xf32>
  memref.dealloc %a : memref<?x8xf32>
  memref.copy %l, %l : memref<4xf32> to memref<4xf32>
  %c = memref.collapse_shape %m [[0, 1]] : memref<4x8xf32> into memref<32xf32>
  %x = memref.expand_shape %l [[0, 1]] output_shape [2, 2] : memref<4xf32> into memref<2x2xf32>
  %x2 = memref.expand_shape %d [[0, 1], [2]] output_shape [%n, 2, 8] : memref<?x8xf32> into memref<?x2x8xf32>
  %g = memref.get_global @table : memref<2xf32>
  %dim = memref.dim %d, %n : memref<?x8xf32>
  %v = memref.subview %m[1, 2] [2, 4] [1, 1] : memref<4x8xf32> to memref<2x4xf32, strided<[8, 1], offset: 10>>
  %v2 = memref.subview %d[%n, 0] [%n, 4] [1, 2] : memref<?x8xf32> to memref<?x4xf32, strided<[8, 2], offset: ?>>
  %v3 = memref.subview %m[%n, 2] [1, 4] [1, 1] : memref<4x8xf32> to memref<4xf32, strided<[1], offset: ?>>
  %w = memref.view %bytes[%n][%n] : memref<?xi8> to memref<?x8xf32>
  %w2 = memref.view %k[%n][] : memref<64xi8> to memref<2x8xf32>
  %to = memref.cast %l : memref<4xf32> to memref<?xf32>
  %to2 = memref.cast %m : memref<4x8xf32> to memref<?x8xf32, strided<[8, 1], offset: ?>>
  %rank = "memref.rank"(%m) : (memref<4x8xf32>) -> index
  %r = memref.reinterpret_cast %l to offset: [0], sizes: [2, 2], strides: [2, 1] : memref<4xf32> to memref<2x2xf32, strided<[2, 1]>>
  %base, %offset, %sizes:2, %strides:2 = "memref.extract_strided_metadata"(%m) : (memref<4x8xf32>) -> (memref<f32>, index, index, index, index, index)
  %pointer = "memref.extract_aligned_pointer_as_index"(%m) : (memref<4x8xf32>) -> index
  %rmw = "memref.atomic_rmw"(%f, %l, %n) <{kind = 0 : i64}> : (f32, memref<4xf32>, index) -> f32
  func.return
}

func.func @vectors(%m: memref<4x8xf32>, %n: index, %f: f32, %v: vector<8xf32>, %w: vector<4x8xf32>, %mask: vector<8xi1>, %t: tensor<4x8xf32>, %h: vector<8xf16>) {
  %l = vector.load %m[%n, %n] : memref<4x8xf32>, vector<8xf32>
  vector.store %v, %m[%n, %n] {nontemporal = true} : memref<4x8xf32>, vector<8xf32>
  %b = vector.bitcast %v : vector<8xf32> to vector<16xf16>
  %s = vector.broadcast %f : f32 to vector<8xf32>
  %s2 = vector.broadcast %v : vector<8xf32> to vector<4x8xf32>
  %c = vector.create_mask %n, %n : vector<4x8xi1>
  %e = vector.extract %v[3] : f32 from vector<8xf32>
  %e2 = vector.extract %w[3] : vector<8xf32> from vector<4x8xf32>
  %e3 = vector.extract %w[%n, 2] : f32 from vector<4x8xf32>
  %i = vector.insert %f, %v[3] : f32 into vector<8xf32>
  %i2 = vector.insert %v, %w[1] : vector<8xf32> into vector<4x8xf32>
  %i3 = vector.insert %f, %w[1, %n] : f32 into vector<4x8xf32>
  %a = vector.fma %v, %v, %v : vector<8xf32>
  %ml = vector.maskedload %m[%n, %n], %mask, %v : memref<4x8xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
  vector.maskedstore %m[%n, %n], %mask, %v : memref<4x8xf32>, vector<8xi1>, vector<8xf32>
  %r = vector.reduction <add>, %v : vector<8xf32> into f32
  %r2 = vector.reduction <minnumf>, %v, %f : vector<8xf32> into f32
  %x = vector.shuffle %v, %v [0, 1, 9, 15] : vector<8xf32>, vector<8xf32>
  %tr = vector.transfer_read %m[%n, %n], %f {in_bounds = [true]} : memref<4x8xf32>, vector<8xf32>
  vector.transfer_write %w, %m[%n, %n] : vector<4x8xf32>, memref<4x8xf32>
  %tt = vector.transfer_read %t[%n, %n], %f {permutation_map = affine_map<(d0, d1) -> (d0)>} : tensor<4x8xf32>, vector<4xf32>
  func.return
}

func.func @numbers(%f: f32, %h: f16, %i: i32, %l: i64, %b: i1, %n: index, %v: vector<4xf32>, %t: tensor<4xi32>, %d: f64, %k: i8) {
  %constant = arith.constant dense<[1, 2]> : tensor<2xi32>
  %constant2 = arith.constant 1.5 : f32
  %constant3 = arith.constant -7 : i8
  %sum, %over = arith.addui_extended %i, %i : i32, i1
  %low, %high = arith.mului_extended %i, %i : i32
  %low2, %high2 = arith.mulsi_extended %i, %i : i32
  %compared = arith.cmpi slt, %i, %i : i32
  %compared2 = arith.cmpf olt, %v, %v : vector<4xf32>
  %compared3 = arith.cmpi ult, %t, %t : tensor<4xi32>
  %selected = arith.select %b, %f, %f : f32
  %selected2 = arith.select %b, %v, %v : vector<4xf32>
  %selected3 = "arith.select"(%compared2, %v, %v) : (vector<4xi1>, vector<4xf32>, vector<4xf32>) -> vector<4xf32>
  %bits = arith.bitcast %f : f32 to i32
  %cast = arith.index_cast %n : index to i64
  %cast2 = arith.index_cast %t : tensor<4xi32> to tensor<4xindex>
  %x1 = arith.fptosi %f : f32 to i32
  %x2 = arith.fptoui %v : vector<4xf32> to vector<4xi32>
  %x3 = arith.sitofp %i : i32 to f32
  %x4 = arith.uitofp %t : tensor<4xi32> to tensor<4xf32>
  %x5 = arith.extf %h : f16 to f32
  %x6 = arith.truncf %d : f64 to f16
  %x7 = arith.trunci %l : i64 to i32
  %x8 = arith.extsi %i : i32 to i64
  %x9 = arith.extui %t : tensor<4xi32> to tensor<4xi64>
  %negated = arith.negf %f : f32
  %fused = math.fma %f, %f, %f : f32
  %power = math.fpowi %f, %i : f32, i32
  %power2 = math.ipowi %i, %i : i32
  func.return
}

func.func @pointwise(%i: i32, %n: index, %j: vector<4xi8>, %f: f32, %h: vector<4xf16>, %t: tensor<?xf64>) {
  %addi = arith.addi %i, %i : i32
  %subi = arith.subi %i, %i : i32
  %muli = arith.muli %i, %i : i32
  %divui = arith.divui %i, %i : i32
  %divsi = arith.divsi %i, %i : i32
  %floordivsi = arith.floordivsi %i, %i : i32
  %ceildivsi = arith.ceildivsi %i, %i : i32
  %ceildivui = arith.ceildivui %i, %i : i32
  %remui = arith.remui %i, %i : i32
  %remsi = arith.remsi %i, %i : i32
  %minsi = arith.minsi %i, %i : i32
  %maxsi = arith.maxsi %i, %i : i32
  %minui = arith.minui %i, %i : i32
  %maxui = arith.maxui %i, %i : i32
  %andi = arith.andi %i, %i : i32
  %ori = arith.ori %i, %i : i32
  %xori = arith.xori %i, %i : i32
  %shli = arith.shli %i, %i : i32
  %shrui = arith.shrui %i, %i : i32
  %shrsi = arith.shrsi %i, %i : i32
  %of_index = arith.addi %n, %n : index
  %of_vectors = arith.xori %j, %j : vector<4xi8>
  %addf = arith.addf %f, %f : f32
  %subf = arith.subf %f, %f : f32
  %mulf = arith.mulf %f, %f : f32
  %divf = arith.divf %f, %f : f32
  %minimumf = arith.minimumf %f, %f : f32
  %minnumf = arith.minnumf %f, %f : f32
  %maximumf = arith.maximumf %f, %f : f32
  %maxnumf = arith.maxnumf %f, %f : f32
  %of_tensors = arith.addf %t, %t : tensor<?xf64>
  %absf = math.absf %f : f32
  %acos = math.acos %f : f32
  %acosh = math.acosh %f : f32
  %asin = math.asin %f : f32
  %asinh = math.asinh %f : f32
  %atan = math.atan %f : f32
  %atanh = math.atanh %f : f32
  %cbrt = math.cbrt %f : f32
  %ceil = math.ceil %f : f32
  %cos = math.cos %f : f32
  %cosh = math.cosh %f : f32
  %erf = math.erf %f : f32
  %exp2 = math.exp2 %f : f32
  %expm1 = math.expm1 %f : f32
  %exp = math.exp %f : f32
  %floor = math.floor %f : f32
  %log10 = math.log10 %f : f32
  %log1p = math.log1p %f : f32
  %log2 = math.log2 %f : f32
  %log = math.log %f : f32
  %roundeven = math.roundeven %f : f32
  %round = math.round %f : f32
  %rsqrt = math.rsqrt %f : f32
  %sin = math.sin %f : f32
  %sinh = math.sinh %f : f32
  %sqrt = math.sqrt %f : f32
  %tan = math.tan %f : f32
  %tanh = math.tanh %f : f32
  %trunc = math.trunc %f : f32
  %of_halves = math.tanh %h : vector<4xf16>
  %atan2 = math.atan2 %f, %f : f32
  %copysign = math.copysign %f, %f : f32
  %powf = math.powf %f, %f : f32
  %absi = math.absi %i : i32
  %ctlz = math.ctlz %i : i32
  %cttz = math.cttz %i : i32
  %ctpop = math.ctpop %i : i32
  func.return
}
