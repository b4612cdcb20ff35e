"""Measure sorting and what is built on it beside NumPy: microseconds, least of many calls.

`python bench/sorting.py [--quick] [name ...]`: programs whose name contains one of the words.
Calls alternate, so that what else the machine does falls on both.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import stepwell as sw
import stepwell.numpy as snp

DRAW = np.random.default_rng(1)
SHAPES = ((10,), (1000,), (1_000_000,), (100_000, 10), (15_625, 64), (3_906, 256), (1_000, 1_000))
"""Of what is sorted along the last axis."""
DTYPES = ("f4", "f8", "i4", "i8", "u1", "i2", "f2", "?")
FEW = ("f4", "f8", "i8")


def drawn(shape: tuple[int, ...], dtype: str, order: str = "random") -> Any:
    """Return numbers in random order, or ``sorted``, ``reversed``, ``constant``, with ``nan``."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        x: Any = DRAW.standard_normal(shape).astype(kind)
    elif kind.kind == "b":
        x = DRAW.random(shape) < 0.5
    else:
        info = np.iinfo(kind)
        x = DRAW.integers(info.min, info.max, shape, kind, endpoint=True)
    if order == "nan":
        x[DRAW.random(shape) < 0.1] = np.nan
    elif order in ("sorted", "reversed"):
        x = np.sort(x, axis=-1)
        x = np.ascontiguousarray(x[..., ::-1]) if order == "reversed" else x
    elif order == "constant":
        x[...] = x.flat[0]
    return x


Pair = tuple[str, Callable[..., Any], Callable[..., Any], tuple[Any, ...]]


def _sorts() -> Iterator[Pair]:
    for shape in SHAPES:
        for dtype in DTYPES:
            x = drawn(shape, dtype)
            yield f"sort {dtype} {shape}", lambda x: snp.sort(x), lambda x: np.sort(x), (x,)
    for shape in SHAPES:
        for dtype in FEW:
            x = drawn(shape, dtype)
            yield (
                f"argsort {dtype} {shape}",
                lambda x: snp.argsort(x),
                lambda x: np.argsort(x),
                (x,),
            )
    for order in ("sorted", "reversed", "constant", "nan"):
        for shape in ((1_000_000,), (15_625, 64)):
            x = drawn(shape, "f8", order)
            yield f"sort f8 {shape} {order}", lambda x: snp.sort(x), lambda x: np.sort(x), (x,)
    x = drawn((64, 15_625), "f4")
    yield "sort f4 (64, 15625) axis 0", lambda x: snp.sort(x, 0), lambda x: np.sort(x, 0), (x,)


def _statistics() -> Iterator[Pair]:
    q = [0.1, 0.5, 0.9]
    for shape in ((1000,), (1_000_000,), (15_625, 64), (1_000, 1_000)):
        for dtype in ("f4", "f8"):
            x = drawn(shape, dtype)
            k = shape[-1] // 3
            name = f"{dtype} {shape}"
            yield f"median {name}", lambda x: snp.median(x, -1), lambda x: np.median(x, -1), (x,)
            yield (
                f"quantile {name}",
                lambda x: snp.quantile(x, q, axis=-1),
                lambda x: np.quantile(x, q, axis=-1),
                (x,),
            )
            yield (
                f"partition {name}",
                lambda x, k=k: snp.partition(x, k),
                lambda x, k=k: np.partition(x, k),
                (x,),
            )
            yield (
                f"argpartition {name}",
                lambda x, k=k: snp.argpartition(x, k),
                lambda x, k=k: np.argpartition(x, k),
                (x,),
            )


def _searches() -> Iterator[Pair]:
    n = 1_000_000
    x, few = drawn((n,), "f8"), DRAW.integers(0, 1000, n)
    mask = x > 0.5
    for m in (20, 1000, n):
        row = np.sort(drawn((m,), "f8"))
        yield (
            f"searchsorted {m}",
            lambda row, x: snp.searchsorted(row, x),
            lambda row, x: np.searchsorted(row, x),
            (row, x),
        )
        yield f"isin {m}", lambda x, row: snp.isin(x, row), lambda x, row: np.isin(x, row), (x, row)
    yield (
        "bincount",
        lambda x: snp.bincount(x, length=1000),
        lambda x: np.bincount(x, minlength=1000),
        (few,),
    )
    yield "histogram", lambda x: snp.histogram(x, 50), lambda x: np.histogram(x, 50), (x,)
    yield (
        "nonzero",
        lambda x: snp.nonzero(x, size=n),
        lambda x: np.nonzero(x),
        (mask,),
    )
    square = mask.reshape(1000, 1000)
    yield (
        "argwhere",
        lambda x: snp.argwhere(x, size=n),
        lambda x: np.argwhere(x),
        (square,),
    )
    yield "unique i8", lambda x: snp.unique(x, size=1000), lambda x: np.unique(x), (few,)
    yield "unique f8", lambda x: snp.unique(x, size=n), lambda x: np.unique(x), (x,)
    y = drawn((n,), "f8")
    yield (
        "intersect1d",
        lambda x, y: snp.intersect1d(x, y, size=n),
        lambda x, y: np.intersect1d(x, y),
        (x, y),
    )


def compared(pair: Pair, seconds: float) -> tuple[float, float]:
    """Return the least time of a call of ours and of NumPy's, in microseconds, in turns."""
    _, ours, theirs, arguments = pair
    compiled = sw.jit(ours)
    compiled(*arguments)
    calls: tuple[Callable[..., Any], ...] = (compiled, theirs)
    found: list[list[float]] = [[], []]
    end = time.perf_counter() + seconds
    while len(found[1]) < 5 or (time.perf_counter() < end and len(found[1]) < 1000):
        for call, times in zip(calls, found, strict=True):
            start = time.perf_counter()
            call(*arguments)
            times.append(time.perf_counter() - start)
    return 1e6 * min(found[0]), 1e6 * min(found[1])


def main() -> None:
    """Print a table: the least times, and how many times faster than NumPy."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("words", nargs="*")
    options.add_argument("--quick", action="store_true", help="a tenth of a second for each")
    given = options.parse_args()
    print(f"{'':34} {'ours':>10} {'NumPy':>10}  times")
    for pair in (*_sorts(), *_statistics(), *_searches()):
        if given.words and not any(word in pair[0] for word in given.words):
            continue
        a, b = compared(pair, 0.1 if given.quick else 1.0)
        print(f"{pair[0]:34} {a:10.1f} {b:10.1f}  {b / a:5.2f}", flush=True)


if __name__ == "__main__":
    main()
