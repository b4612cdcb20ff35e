"""Products beside NumPy's BLAS: `python bench/blas.py`.

Products of an array with itself, of which a BLAS computes half; large products in double precision,
alone and in chains; and products with vectors, which memory bounds. Groups of calls alternate, and
the least time is printed; `--threads` says how many threads both use.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

SECONDS = 1.0
"""For each row."""
GROUPS_OF_CALLS = 5
"""Groups in which each side's calls are timed."""
REST = 0.05
"""Seconds before a group, after which OpenBLAS's threads no longer wait on a core for work."""


class Row(NamedTuple):
    """A product: its text, the function, the shapes and the dtype of its arguments."""

    text: str
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    kind: str


def symmetric() -> Iterator[Row]:
    """Yield products of an array with itself, and of transposed rows."""
    for m, n in (
        (100, 100),
        (256, 256),
        (512, 512),
        (1000, 1000),
        (2000, 300),
        (300, 2000),
        (5000, 50),
    ):
        for kind in ("float64", "float32"):
            yield Row("A.T @ A", lambda a: a.T @ a, ((m, n),), kind)
            yield Row("A @ A.T", lambda a: a @ a.T, ((m, n),), kind)
            yield Row("A.T @ B", lambda a, b: a.T @ b, ((m, n), (m, n)), kind)


def chains() -> Iterator[Row]:
    """Yield products of two and of three arrays."""
    for n in (1000, 1500, 2500):
        square = ((n, n),)
        yield Row("A @ B", lambda a, b: a @ b, square * 2, "float64")
        yield Row("A @ B @ C", lambda a, b, c: a @ b @ c, square * 3, "float64")
    shapes = ((1500, 400), (400, 2500), (2500, 1000))
    yield Row("A @ B @ C", lambda a, b, c: a @ b @ c, shapes, "float64")


def vectors() -> Iterator[Row]:
    """Yield products with vectors."""
    for m, n, kind in (
        (4000, 5000, "float64"),
        (1000, 1000, "float64"),
        (4000, 5000, "float32"),
        (1000, 1000, "float32"),
    ):
        yield Row("A @ x", lambda a, x: a @ x, ((m, n), (n,)), kind)
        yield Row("y @ A", lambda a, y: y @ a, ((m, n), (m,)), kind)
        yield Row("A.T @ (A @ x)", lambda a, x: a.T @ (a @ x), ((m, n), (n,)), kind)
        yield Row("y @ (A @ x)", lambda a, x, y: y @ (a @ x), ((m, n), (n,), (m,)), kind)


def in_turn(
    calls: list[Callable[[], Any]], seconds: float, clock: Callable[[], float]
) -> list[float]:
    """Return the least time of each call by a clock; the sides are called in groups, in turn."""
    best = [float("inf")] * len(calls)
    for _ in range(GROUPS_OF_CALLS):
        for n, call in enumerate(calls):
            time.sleep(REST)
            end = time.perf_counter() + seconds / GROUPS_OF_CALLS / len(calls)
            while True:
                start = clock()
                call()
                best[n] = min(best[n], clock() - start)
                if time.perf_counter() > end:
                    break
    return best


GROUPS: dict[str, Callable[[], Iterator[Row]]] = {
    "symmetric": symmetric,
    "chains": chains,
    "vectors": vectors,
}


def table(rows: Iterator[Row], seconds: float, clock: Callable[[], float]) -> None:
    """Print the table of some rows."""
    import numpy as np  # after the number of threads is set

    import stepwell as sw

    random = np.random.default_rng(0)
    for row in rows:
        arrays = [random.standard_normal(shape).astype(row.kind) for shape in row.shapes]
        calls = [partial(each, *arrays) for each in (sw.jit(row.function), row.function)]
        have, want = (np.asarray(call()) for call in calls)
        tolerance = np.finfo(row.kind).eps * max(map(max, row.shapes)) * abs(want).max()
        np.testing.assert_allclose(have, want, rtol=0, atol=tolerance)
        times = in_turn(calls, seconds, clock)
        spelled = ", ".join(" x ".join(map(str, shape)) for shape in dict.fromkeys(row.shapes))
        cells = f"{1e3 * times[0]:.3f} | {1e3 * times[1]:.3f} | {times[0] / times[1]:.2f}"
        print(f"| {row.text} | {spelled} | {row.kind} | {cells} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=GROUPS, help="products of one kind")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each row")
    parser.add_argument("--threads", default="1", help="that programs and NumPy use")
    said = "time of the calling thread, for one thread beside other work"
    parser.add_argument("--cpu", action="store_true", help=said)
    given = parser.parse_args()
    for name in ("STEPWELL_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = given.threads
    clock = time.thread_time if given.cpu else time.perf_counter
    print("| product | arguments | dtype | ms | NumPy | ratio |\n|---|---|---|---:|---:|---:|")
    for group, rows in GROUPS.items():
        if given.only in (None, group):
            table(rows(), given.seconds, clock)
