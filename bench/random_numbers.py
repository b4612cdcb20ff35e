"""Measure `stepwell.random` beside NumPy's Generator: milliseconds for a million elements."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import stepwell as sw

N = 1_000_000
KEY = sw.random.key(1)
THEIRS = np.random.default_rng(1)
R = sw.random
F4 = np.float32

PAIRS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "bits of 64": (lambda: R.bits(KEY, N, np.uint64), lambda: THEIRS.bytes(8 * N)),
    "uniform f64": (lambda: R.uniform(KEY, N), lambda: THEIRS.random(N)),
    "uniform f32": (lambda: R.uniform(KEY, N, F4), lambda: THEIRS.random(N, F4)),
    "normal f64": (lambda: R.normal(KEY, N), lambda: THEIRS.standard_normal(N)),
    "normal f32": (lambda: R.normal(KEY, N, F4), lambda: THEIRS.standard_normal(N, F4)),
    "exponential": (lambda: R.exponential(KEY, N), lambda: THEIRS.exponential(size=N)),
    "integers": (lambda: R.integers(KEY, 0, 1000, N), lambda: THEIRS.integers(0, 1000, N)),
    "bernoulli": (lambda: R.bernoulli(KEY, 0.3, N), lambda: THEIRS.random(N) < 0.3),
    "gumbel": (lambda: R.gumbel(KEY, N), lambda: THEIRS.gumbel(size=N)),
    "laplace": (lambda: R.laplace(KEY, N), lambda: THEIRS.laplace(size=N)),
    "permutation": (lambda: R.permutation(KEY, N), lambda: THEIRS.permutation(N)),
    "gamma": (lambda: R.gamma(KEY, 2.0, N), lambda: THEIRS.gamma(2.0, size=N)),
    "poisson": (lambda: R.poisson(KEY, 100.0, N), lambda: THEIRS.poisson(100.0, size=N)),
}


def best(call: Callable[[], Any], times: int = 15) -> float:
    """Return the least time of a call, in milliseconds."""
    call()
    found: list[float] = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return 1e3 * min(found)


def main() -> None:
    """Print a table."""
    print(f"{'':12} {'ours':>8} {'NumPy':>8}  times")
    for name, (ours, theirs) in PAIRS.items():
        a, b = best(ours), best(theirs, 5)
        print(f"{name:12} {a:8.2f} {b:8.2f}  {b / a:5.2f}")


if __name__ == "__main__":
    main()
