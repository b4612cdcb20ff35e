// Arithmetic as importers and lowerings write it: flags, predicates, vectors, literals of all bases.
module {
  func.func @integers(%a: i32, %b: i32, %c: i1) -> (i32, i1) {
    %0 = arith.addi %a, %b overflow<nsw> : i32
    %1 = arith.subi %0, %b overflow<nsw, nuw> : i32
    %2 = arith.muli %1, %1 : i32
    %3 = arith.divsi %2, %a : i32
    %4 = arith.divui %3, %a : i32
    %5 = arith.remsi %4, %b : i32
    %6 = arith.ceildivsi %5, %b : i32
    %7 = arith.floordivsi %6, %b : i32
    %8 = arith.shli %7, %a : i32
    %9 = arith.shrsi %8, %a : i32
    %10 = arith.shrui %9, %a : i32
    %11 = arith.andi %10, %a : i32
    %12 = arith.ori %11, %b : i32
    %13 = arith.xori %12, %b : i32
    %14 = arith.maxsi %13, %a : i32
    %15 = arith.minui %14, %b : i32
    %16 = arith.cmpi ult, %15, %a : i32
    %17 = arith.select %c, %15, %a : i32
    return %17, %16 : i32, i1
  }
  func.func @constants() -> (i64, index, f32, f64, i1, i1, bf16, f16, i8) {
    %0 = arith.constant 0xFF : i64
    %1 = arith.constant -1 : index
    %2 = arith.constant 0x7FC00000 : f32
    %3 = arith.constant 1.000000e-300 : f64
    %4 = arith.constant true
    %5 = arith.constant false
    %6 = arith.constant 0.1 : bf16
    %7 = arith.constant 65504.0 : f16
    %8 = arith.constant -128 : i8
    return %0, %1, %2, %3, %4, %5, %6, %7, %8 : i64, index, f32, f64, i1, i1, bf16, f16, i8
  }
}

// -----

func.func @floats(%a: f32, %b: f32) -> i1 {
  %0 = arith.addf %a, %b fastmath<fast> : f32
  %1 = arith.mulf %0, %b fastmath<nnan,ninf> : f32
  %2 = arith.divf %1, %a : f32
  %3 = arith.negf %2 : f32
  %4 = arith.maximumf %3, %a : f32
  %5 = arith.minnumf %4, %b : f32
  %6 = arith.cmpf une, %5, %a : f32
  func.return %6 : i1
}

// -----

func.func @casts(%a: vector<4xf32>, %b: tensor<?x3xi8>, %i: index) -> (vector<4xi32>, tensor<?x3xi32>, i64) {
  %0 = arith.fptosi %a : vector<4xf32> to vector<4xi32>
  %1 = arith.extsi %b : tensor<?x3xi8> to tensor<?x3xi32>
  %2 = arith.index_cast %i : index to i64
  %3 = arith.truncf %a : vector<4xf32> to vector<4xbf16>
  %4 = arith.extf %3 : vector<4xbf16> to vector<4xf32>
  %5 = arith.bitcast %4 : vector<4xf32> to vector<4xi32>
  %6 = arith.addi %0, %5 : vector<4xi32>
  return %6, %1, %2 : vector<4xi32>, tensor<?x3xi32>, i64
}

// -----

%sum, %carry = arith.addui_extended %x, %x : i32, i1
%low, %high = arith.mulsi_extended %x, %sum : i32
%x = "my.source"() : () -> i32
// Uses before definitions: the body of a module is a graph.

// -----

// refused at 4:24: only numbers that f64 has too can be read as f128
func.func @wide() {
  "my.use"() {number = 0.1 : f128} : () -> ()
  return
}

// -----

// refused at 4:19: %a has type f64, but is used here as f32
func.func @mixed(%a: f64, %b: f64) -> f64 {
  %0 = arith.addf %a, %b : f32
  return %0 : f64
}
