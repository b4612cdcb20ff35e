// RUN: %stepwell-opt %s -p plan-memory | filecheck %s

kernel.func @flip(%x: memref<5x5xf32>, %y: memref<5x5xf32>) {
  kernel.return
}
kernel.func @double(%x: memref<5x5xf32>, %y: memref<5x5xf32>) attributes {kernel.in_place = [array<i64: 0, 1>]} {
  kernel.return
}

// Three temporaries in a row need room for two; the fourth takes the memory of the third, which
// dies where its kernel allows it; the last one that does so is the output itself.
func.func @chain(%x: memref<5x5xf32> {kernel.role = "input"}, %y: memref<5x5xf32> {kernel.role = "output"}) {
  %a = memref.alloc() : memref<5x5xf32>
  %b = memref.alloc() : memref<5x5xf32>
  %c = memref.alloc() : memref<5x5xf32>
  %d = memref.alloc() : memref<5x5xf32>
  kernel.launch @flip ins(%x : memref<5x5xf32>) outs(%a : memref<5x5xf32>)
  kernel.launch @flip ins(%a : memref<5x5xf32>) outs(%b : memref<5x5xf32>)
  kernel.launch @flip ins(%b : memref<5x5xf32>) outs(%c : memref<5x5xf32>)
  kernel.launch @double ins(%c : memref<5x5xf32>) outs(%d : memref<5x5xf32>)
  kernel.launch @double ins(%d : memref<5x5xf32>) outs(%y : memref<5x5xf32>)
  func.return
}

// An input of the launch that is looked at in another way too keeps its memory.
kernel.func @add(%x: memref<?xf32>, %z: memref<?xf32>, %y: memref<?xf32>) attributes {kernel.in_place = [array<i64: 0, 2>]} {
  kernel.return
}
func.func @open(%x: memref<?xf32> {kernel.role = "input"}, %y: memref<?xf32> {kernel.role = "output"}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %a = memref.alloc(%n) : memref<?xf32>
  %b = memref.alloc(%n) : memref<?xf32>
  kernel.launch @add ins(%x, %x : memref<?xf32>, memref<?xf32>) outs(%a : memref<?xf32>)
  kernel.launch @add ins(%a, %a : memref<?xf32>, memref<?xf32>) outs(%b : memref<?xf32>)
  kernel.launch @add ins(%x, %b : memref<?xf32>, memref<?xf32>) outs(%y : memref<?xf32>)
  func.return
}

// CHECK:       func.func @chain(
// CHECK-SAME:    %arena: memref<?xi8> {kernel.role = "arena"}) attributes {kernel.arena_bytes = 256 : i64}
// CHECK:         %a = memref.view %arena[%{{.*}}][] : memref<?xi8> to memref<5x5xf32>
// CHECK-NEXT:    %b = memref.view %arena
// CHECK-NEXT:    kernel.launch @flip ins(%x : {{.*}}) outs(%a :
// CHECK-NEXT:    kernel.launch @flip ins(%a : {{.*}}) outs(%b :
// CHECK-NEXT:    kernel.launch @flip ins(%b : {{.*}}) outs(%y :
// CHECK-NEXT:    kernel.launch @double ins(%y : {{.*}}) outs(%y :
// CHECK-NEXT:    kernel.launch @double ins(%y : {{.*}}) outs(%y :
// CHECK:       func.func @chain.arena() -> index

// CHECK:       func.func @open(
// CHECK:         kernel.launch @add ins(%x, %x : {{.*}}) outs(%a :
// CHECK-NEXT:    kernel.launch @add ins(%a, %a : {{.*}}) outs(%b :
// CHECK:       func.func @open.arena(%d0: index) -> index
