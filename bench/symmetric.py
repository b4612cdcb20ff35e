"""Products of arrays with themselves and of transposed rows: `python bench/symmetric.py`.

The time of `A.T @ A`, `A @ A.T` and `A.T @ B` beside NumPy's, whose BLAS computes half of the first
two. Calls alternate, and the least time is printed; `--threads` says how many threads both use.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from timing import alternate

SHAPES = ((100, 100), (256, 256), (512, 512), (1000, 1000), (2000, 300), (300, 2000), (5000, 50))
KINDS = ("float64", "float32")
SECONDS = 1.0
"""For each row."""


def table(seconds: float, clock: Callable[[], float]) -> None:
    """Print the table."""
    import numpy as np  # after the number of threads is set

    import stepwell as sw

    random = np.random.default_rng(0)
    products: dict[str, Callable[[Any, Any], Any]] = {
        "A.T @ A": lambda a, b: a.T @ a,
        "A @ A.T": lambda a, b: a @ a.T,
        "A.T @ B": lambda a, b: a.T @ b,
    }
    print("| product | A | dtype | ms | NumPy | ratio |\n|---|---|---|---:|---:|---:|")
    for m, n in SHAPES:
        for kind in KINDS:
            a, b = (random.standard_normal((m, n)).astype(kind) for _ in range(2))
            for name, f in products.items():
                calls = [partial(each, a, b) for each in (sw.jit(f), f)]
                times = alternate(calls, seconds, clock)
                cells = f"{1e3 * times[0]:.3f} | {1e3 * times[1]:.3f} | {times[0] / times[1]:.2f}"
                print(f"| {name} | {m} x {n} | {kind} | {cells} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each row")
    parser.add_argument("--threads", default="1", help="that programs and NumPy use")
    said = "time of the calling thread, for one thread beside other work"
    parser.add_argument("--cpu", action="store_true", help=said)
    given = parser.parse_args()
    for name in ("STEPWELL_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = given.threads
    table(given.seconds, time.thread_time if given.cpu else time.perf_counter)
