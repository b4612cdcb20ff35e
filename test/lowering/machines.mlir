// RUN: %stepwell-opt %s -p 'through(structured),outline-kernels,schedule' --machine zen4,threads=2 | filecheck %s --check-prefix=ZEN4
// RUN: %stepwell-opt %s -p 'through(structured),outline-kernels,schedule' --machine sapphire-rapids,threads=2 | filecheck %s --check-prefix=XEON
// RUN: %stepwell-opt %s -p 'through(structured),outline-kernels,schedule' --machine sapphire-rapids,threads=2,l3_latency=100 | filecheck %s --check-prefix=QUICK
// RUN: %stepwell-opt %s -p 'through(structured),outline-kernels,schedule' --machine haswell,threads=2 | filecheck %s --check-prefix=HASWELL
// RUN: %stepwell-opt %s -p 'through(structured),outline-kernels,schedule' --machine neoverse,threads=2 | filecheck %s --check-prefix=NEOVERSE

// What is chosen follows the machine that is described, whatever the host is: the tile its registers, the depth its
// caches, prefetching and packing in the first tile what comes from beyond its second cache. What is written stays.
// ZEN4:     #kernel.schedule<[parallel d0 by 342, parallel d1 by 64, for d2 by 344 {pack 1 as first, prefetch}, for d0 by 6, for d2, unroll d0, unroll d1 by 16, vector d1 by 16]>
// XEON:     #kernel.schedule<[parallel d0 by 342, parallel d1 by 64, for d2 by 512 {pack 1}, for d0 by 6, for d2, unroll d0, unroll d1 by 16, vector d1 by 16]>
// QUICK:    #kernel.schedule<[parallel d0 by 342, parallel d1 by 64, for d2 by 512 {pack 1 as first, prefetch}, for d0 by 6, for d2, unroll d0, unroll d1 by 16, vector d1 by 16]>
// HASWELL:  #kernel.schedule<[parallel d0 by 90, parallel d1 by 16, for d2 by 344 {pack 1 as first, prefetch}, for d0 by 6, for d2, unroll d0, unroll d1 by 8, vector d1 by 8]>
// NEOVERSE: #kernel.schedule<[parallel d0 by 210, parallel d1 by 16, for d2 by 512 {pack 1 as first, prefetch}, for d0 by 6, for d2, unroll d0, unroll d1 by 4, vector d1 by 4]>
func.func @product(%x: tensor<1024x1024xf32>, %w: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %y = nd.matmul %x, %w : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  func.return %y : tensor<1024x1024xf32>
}
