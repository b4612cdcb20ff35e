"""One product under five schedules, from three plain loops to packed blocks on all threads.

A schedule is a list of levels on the kernel: what each does to the time is printed. The kernel is
text as `stepwell-opt -p '...,outline-kernels'` prints it; only the levels differ.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

import stepwell as sw

KERNEL = """
#rows = affine_map<(d0, d1, d2) -> (d0, d2)>
#columns = affine_map<(d0, d1, d2) -> (d2, d1)>
#result = affine_map<(d0, d1, d2) -> (d0, d1)>
kernel.func @product(%x: tensor<{n}x{n}xf32>, %w: tensor<{n}x{n}xf32>, %y: tensor<{n}x{n}xf32>)
    -> tensor<{n}x{n}xf32>
    attributes {{kernel.shared = 2, kernel.schedule = #kernel.schedule<{levels}>}} {{
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%y : tensor<{n}x{n}xf32>) -> tensor<{n}x{n}xf32>
  %sum = linalg.generic {{indexing_maps = [#rows, #columns, #result],
                         iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%x, %w : tensor<{n}x{n}xf32>, tensor<{n}x{n}xf32>) outs(%start : tensor<{n}x{n}xf32>) {{
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %c, %p : f32
    linalg.yield %t : f32
  }} -> tensor<{n}x{n}xf32>
  kernel.return %sum : tensor<{n}x{n}xf32>
}}
func.func @main(%x: tensor<{n}x{n}xf32>, %w: tensor<{n}x{n}xf32>) -> tensor<{n}x{n}xf32> {{
  %e = tensor.empty() : tensor<{n}x{n}xf32>
  %y = kernel.launch @product ins(%x, %w : tensor<{n}x{n}xf32>, tensor<{n}x{n}xf32>)
      outs(%e : tensor<{n}x{n}xf32>) -> tensor<{n}x{n}xf32>
  func.return %y : tensor<{n}x{n}xf32>
}}
"""

SCHEDULES = {
    "three loops": "[for d0, for d1, for d2]",
    "vectors along the columns": "[for d0, for d1 by 16, for d2, vector d1 by 16]",
    "a tile in registers": (
        "[for d0 by 6, for d1 by 64, for d2, unroll d0, unroll d1 by 16, vector d1 by 16]"
    ),
    "blocks, %w packed": (
        "[for d0 by 192, for d1 by 64, for d2 by 256 {pack 1}, for d0 by 6, "
        "for d2, unroll d0, unroll d1 by 16, vector d1 by 16]"
    ),
    "blocks on all threads": (
        "[parallel d0 by 192, parallel d1 by 64, for d2 by 256 {pack 1}, for d0 by 6, "
        "for d2, unroll d0, unroll d1 by 16, vector d1 by 16]"
    ),
}


def least_time(program: sw.Compiled, x: object, w: object, rounds: int) -> float:
    """Return the least seconds of some calls."""
    times: list[float] = []
    for _ in range(rounds):
        begin = time.perf_counter()
        program(x, w)
        times.append(time.perf_counter() - begin)
    return min(times)


def main() -> int:
    """Run the product under each schedule, and as the compiler schedules it."""
    parser = argparse.ArgumentParser(description="One product under five schedules.")
    parser.add_argument("--size", type=int, default=768)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    random = np.random.default_rng(0)
    x, w = (random.standard_normal((options.size,) * 2, np.float32) for _ in range(2))
    wanted = x.astype(np.float64) @ w
    chosen = sw.jit(lambda x, w: x @ w).trace(x, w).compile()
    programs = {
        name: sw.compile(KERNEL.format(n=options.size, levels=levels))
        for name, levels in SCHEDULES.items()
    }
    for name, program in (programs | {"as the compiler chooses": chosen}).items():
        np.testing.assert_allclose(program(x, w), wanted, rtol=1e-3, atol=1e-2)
        seconds = least_time(program, x, w, options.rounds)
        rate = 2 * options.size**3 / seconds / 1e9
        print(f"{name:26} {seconds * 1e3:8.2f} ms  {rate:6.1f} GFLOP/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
