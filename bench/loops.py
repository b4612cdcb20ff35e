"""Measure loops over numbers beside Numba, and without the pass that makes them native: note 042.

Every program's loops, as a user of Numba writes them, run under `sw.jit` with one thread, with and
without `scalar-loops`, and under `njit`, which is asked in its own process, in turn. The least of
all calls counts. `python bench/loops.py [PROGRAM ...]`; Numba is left out where it is not
installed (make bench-peers PEERS=numba).
"""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from measuring import spell_seconds
from peers import interpreter, state
from processes import Gone, Process
from programs import Program, program
from timing import batch

import stepwell as sw
from stepwell.driver import pipeline

NAMES = (
    *("lcs", "edit_distance", "nussinov", "floyd_warshall", "seidel_2d", "lu", "gemm", "nbody"),
    *("durbin", "collatz", "crc16", "knapsack", "levinson", "smoothing", "iir_filter"),
)
PASS = "scalar-loops"
ROUNDS = 5
SECONDS = 0.1
PATIENCE = 180.0
"""Seconds that Numba has for a program."""


@contextmanager
def without(name: str) -> Generator[None]:
    """Leave a pass out of the pipeline."""
    stages = pipeline.STAGES
    pipeline.STAGES = tuple(
        replace(s, passes=",".join(p for p in s.passes.split(",") if p != name)) for s in stages
    )
    try:
        yield
    finally:
        pipeline.STAGES = stages


def prepared(asked: Program) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return a call of a program's loops, and what restores the arguments that it changes."""
    function = sw.jit(asked.loops, static_argnames=asked.static, threads=1)
    given, fresh = asked.inputs(False), asked.inputs(False)
    pairs = [(a, b) for a, b in zip(given, fresh, strict=True) if isinstance(a, np.ndarray)]

    def restore() -> None:
        for array, before in pairs:
            array[...] = before

    function(*given)
    return lambda: function(*given), restore


def measured(name: str, numba: Process | None) -> str:
    """Return a row of the table."""
    asked = program(name)
    with without(PASS):
        slow = prepared(asked)
    fast = prepared(asked)
    if numba is not None:
        request = {"program": name, "tiny": False}
        form = "njit" if asked.loops is asked.function else "loops"
        said = numba.ask(PATIENCE, do="prepare", form=form, **request)
        numba = numba if "compile" in said else None
    times: tuple[list[float], ...] = [], [], []
    for _ in range(ROUNDS):
        for k, (call, restore) in enumerate((slow, fast)):
            times[k].append(batch(call, SECONDS, lambda: 0.0, restore)["least"])
        if numba is not None:
            times[2].append(numba.ask(PATIENCE, do="batch", seconds=SECONDS)["least"])
    cells = [spell_seconds(min(each)) if each else "" for each in times]
    ratio = f"{min(times[1]) / min(times[2]):.2f}" if times[2] else ""
    return f"| {name} | {' | '.join(cells)} | {ratio} |"


def main() -> None:
    """Print the table."""
    folder = Path(tempfile.mkdtemp(prefix="stepwell-loops-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    variables = {"NUMBA_CACHE_DIR": str(state() / "numba")}
    numba = Process("numba", 1, folder, variables, script="programs_worker.py")
    there = interpreter("numba").exists()
    print("| loops | without | with | Numba | / Numba |", "|---|---:|---:|---:|---:|", sep="\n")
    try:
        for name in sys.argv[1:] or NAMES:
            try:
                print(measured(name, numba if there else None), flush=True)
            except (sw.TraceError, Gone) as error:
                print(f"| {name} | {str(error).splitlines()[0]} | | | |", flush=True)
    finally:
        numba.stop()


if __name__ == "__main__":
    main()
