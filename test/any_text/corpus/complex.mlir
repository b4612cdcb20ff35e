// Complex numbers.
func.func @complex(%a: complex<f32>, %b: complex<f32>, %x: f32) -> (complex<f32>, f32, i1) {
  %0 = complex.add %a, %b : complex<f32>
  %1 = complex.mul %0, %b fastmath<fast> : complex<f32>
  %2 = complex.constant [1.0 : f32, -2.0 : f32] : complex<f32>
  %3 = complex.create %x, %x : complex<f32>
  %4 = complex.re %3 : complex<f32>
  %5 = complex.eq %1, %2 : complex<f32>
  %6 = complex.abs %1 : complex<f32>
  return %1, %6, %5 : complex<f32>, f32, i1
}
