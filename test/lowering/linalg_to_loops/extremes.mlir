// RUN: %stepwell-opt %s -p linalg-to-loops | filecheck %s

// Vectors side by side that all see one number compute their first maximum once: all begin alike.
// CHECK-LABEL: kernel.func @of_one_number
// CHECK:         %[[M:.*]] = arith.maxnumf %[[LEAST:.*]], %[[ALL:.*]] : vector<16xf32>
// CHECK-NEXT:    %[[NAN:.*]] = arith.cmpf une, %[[ALL]], %[[ALL]]
// CHECK-NOT:     arith.maxnumf %[[LEAST]]
// CHECK:         arith.select %{{.*}}, %{{.*}}, %[[M]]
kernel.func @of_one_number(%s: memref<f32>, %y: memref<f32>) attributes {kernel.shared = 0 : i64, kernel.schedule = #kernel.schedule<[for d0 by 64, unroll d0 by 16, vector d0 by 16]>} {
  %e = memref.alloc() : memref<127xf32>
  %least = arith.constant 0xff800000 : f32
  linalg.fill ins(%least : f32) outs(%y : memref<f32>)
  linalg.generic {indexing_maps = [affine_map<(d0) -> ()>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]} ins(%s, %e : memref<f32>, memref<127xf32>) outs(%y : memref<f32>) attrs =  {} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.maximumf %c, %a : f32
    linalg.yield %m : f32
  }
  kernel.return
}
