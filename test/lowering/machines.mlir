// RUN: %stepwell-opt %s -p 'through(structured),outline-kernels,schedule' --machine zen4,threads=2 | filecheck %s --check-prefix=ZEN4
// RUN: %stepwell-opt %s -p 'through(structured),outline-kernels,schedule' --machine sapphire-rapids,threads=2 | filecheck %s --check-prefix=XEON
// RUN: %stepwell-opt %s -p 'through(structured),outline-kernels,schedule{far-bytes=30}' --machine sapphire-rapids,threads=2 | filecheck %s --check-prefix=QUICK
// RUN: %stepwell-opt %s -p 'through(structured),outline-kernels,schedule' --machine haswell,threads=2 | filecheck %s --check-prefix=HASWELL
// RUN: %stepwell-opt %s -p 'through(structured),outline-kernels,schedule' --machine neoverse,threads=2 | filecheck %s --check-prefix=NEOVERSE

// What is chosen follows the machine that is described, whatever the host is: the tile its registers, the depth its
// caches, prefetching and packing in the first tile what comes from beyond its second cache. What is written stays.
// ZEN4:     kernel.tile = [6 : i64, 4 : i64], kernel.block = [342 : i64, 64 : i64, 344 : i64], kernel.pack_first, kernel.prefetch
// XEON:     kernel.tile = [6 : i64, 4 : i64], kernel.block = [342 : i64, 64 : i64, 512 : i64], kernel.parallel
// QUICK:    kernel.block = [342 : i64, 64 : i64, 512 : i64], kernel.pack_first, kernel.prefetch
// HASWELL:  kernel.tile = [6 : i64, 2 : i64], kernel.block = [90 : i64, 16 : i64, 344 : i64], kernel.pack_first, kernel.prefetch
// HASWELL:  kernel.loops = #kernel.loops<axis = 1, width = 8, interleave = 1>
// NEOVERSE: kernel.tile = [6 : i64, 4 : i64], kernel.block = [210 : i64, 16 : i64, 512 : i64]
// NEOVERSE: kernel.loops = #kernel.loops<axis = 1, width = 4, interleave = 1>
func.func @product(%x: tensor<1024x1024xf32>, %w: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %y = nd.matmul %x, %w : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  func.return %y : tensor<1024x1024xf32>
}
