"""How fast products of narrow elements are beside those of f32: `python bench/products.py`.

The first table has products of m x k by k x n: the rate of f32 in GFLOP/s, and for each other kind
how many times that rate it reaches. The second has products of 0 (a vector), 1 and 4 rows by
weights that come from memory: GB/s of weights, and the time as a part of that of f32. Operands are
arguments. Calls of all kinds alternate and the least time is printed; STEPWELL_THREADS says how
many threads there are, STEPWELL_MACHINE what the compiler knows of the machine.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from timing import alternate

import stepwell as sw

KINDS: dict[str, Any] = {
    "f32": np.float32,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "i8": np.int8,
}
SIZES = (
    (16, 768, 768),
    (64, 64, 64),
    (128, 768, 768),
    (300, 301, 303),
    (512, 512, 512),
    (128, 3072, 768),
    (1024, 1024, 1024),
)
WEIGHTS = ((768, 768), (768, 3072), (3072, 768))
MIXED = (("f32", "f32"), ("f32", "bf16"), ("f32", "f16"), ("bf16", "bf16"), ("f16", "f16"))
"""Kinds of rows and weights."""
FAR = 80 << 20
"""Bytes of weights that are used in turn, which no cache holds."""
SECONDS = 1.0
"""For each row of the first table."""
RANDOM = np.random.default_rng(0)


def array(shape: tuple[int, ...], kind: str) -> Any:
    """Return numbers at random."""
    if kind == "i8":
        return RANDOM.integers(-128, 128, shape).astype(np.int8)
    return RANDOM.standard_normal(shape, np.float32).astype(KINDS[kind])


def product(kind: str) -> Any:
    """Return the product of two of a kind, bytes being summed up in i32."""
    if kind == "i8":
        return sw.jit(lambda x, w: np.matmul(x, w, dtype=np.int32))
    return sw.jit(lambda x, w: x @ w)


def products(seconds: float, clock: Callable[[], float]) -> None:
    """Print the first table."""
    kinds = list(KINDS)
    print("| m x n x k | f32 GFLOP/s |", *(f"{kind} |" for kind in kinds[1:]))
    print("|---|---:|", *("---:|" for _ in kinds[1:]))
    for m, n, k in SIZES:
        calls: list[Callable[[], object]] = []
        for kind in kinds:
            f, x, w = product(kind), array((m, k), kind), array((k, n), kind)
            calls.append(lambda f=f, x=x, w=w: f(x, w))
        base, *others = alternate(calls, seconds, clock)
        ratios = (f"{base / other:.2f} |" for other in others)
        print(f"| {m} x {n} x {k} | {2e-9 * m * n * k / base:.0f} |", *ratios, flush=True)


def weights(seconds: float, clock: Callable[[], float]) -> None:
    """Print the second table."""
    names = [f"{x} x {w}" for x, w in MIXED]
    print("| rows, weights |", *(f"{name} |" for name in names))
    print("|---|", *("---:|" for _ in names))
    for rows in (0, 1, 4):
        for k, n in WEIGHTS:
            calls: list[Callable[[], object]] = []
            counts = [FAR // (k * n * np.dtype(KINDS[w]).itemsize) for _, w in MIXED]
            for (x_kind, w_kind), count in zip(MIXED, counts, strict=True):
                x = array((rows, k) if rows else (k,), x_kind)
                several = [array((k, n), w_kind) for _ in range(count)]
                f = product(w_kind)
                calls.append(lambda f=f, x=x, all=several: [f(x, w) for w in all])
            found = alternate(calls, seconds, clock)
            times = [t / count for t, count in zip(found, counts, strict=True)]
            cells = [
                f"{k * n * np.dtype(KINDS[w]).itemsize / t * 1e-9:.1f} GB/s, {t / times[0]:.2f} |"
                for (_, w), t in zip(MIXED, times, strict=True)
            ]
            print(f"| {rows}, {k} x {n} |", *cells, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each row")
    parser.add_argument("--only", choices=("products", "weights"), help="one of the tables")
    said = "time of the calling thread, for STEPWELL_THREADS=1 beside other work"
    parser.add_argument("--cpu", action="store_true", help=said)
    given = parser.parse_args()
    clock = time.thread_time if given.cpu else time.perf_counter
    if given.only != "weights":
        products(given.seconds, clock)
    if given.only != "products":
        weights(given.seconds, clock)
