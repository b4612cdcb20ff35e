"""Measure how long compiling takes: `python bench/compile_times.py [PROGRAM...] [--runs N]`.

Every run is a fresh process with an empty cache, and weights are arguments. *first* is the first
call of its process: it imports the compiler and compiles the dispatcher too. *later* is the first
call in a process that has compiled another program before. *whole* is a process from start to end.
Processor times are those of the fastest runs: of our process, and of the C compilers it started.
On a busy machine compare these.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent
CASES = {
    ("resnet18_224", "first"): None,
    ("resnet18_224", "later"): 1.2,
    ("bert_base_s128", "first"): None,
    ("bert_base_s128", "later"): 0.9,
    ("distinct", "first"): 2.0,
    ("distinct", "later"): None,
    ("five", "whole"): 0.65,
}
"""The goal in seconds of each program and way of measuring, if it has one."""
FIVE = """
import sys, numpy as np, stepwell as sw, stepwell.numpy as snp
@sw.jit
def f(a, b, c):
    return snp.sum(snp.sqrt((a + b) * c + 1.0), axis=1)
x = np.ones((64, 64), np.float32)
assert np.allclose(f(x, x, x), 64 * 3 ** 0.5)
"""


def program(name: str) -> tuple[Callable[..., Any], list[Any]]:
    """Return a function and the arrays to call it with."""
    import graphs
    from peers.stepwell import StepwellOps
    from workloads import WORKLOADS

    import stepwell as sw

    if name in ("repeated", "distinct"):
        return sw.jit(getattr(graphs, name)), graphs.arguments(name)
    workload, ops = WORKLOADS[name], StepwellOps()
    weights, inputs = workload.data()
    count = len(inputs)

    def model(*a: Any) -> Any:
        return workload.model(ops, dict(zip(weights, a[count:])), dict(zip(inputs, a)))

    return sw.jit(model), [*inputs.values(), *weights.values()]


def serve(name: str, way: str) -> None:
    """Compile a program by calling it, and print how long that took."""
    if name == "five":
        exec(FIVE, {})
        start, before = 0.0, (0.0,) * 4
    else:
        function, arguments = program(name)
        if way == "later":
            exec(FIVE, {})
        start, before = time.perf_counter(), os.times()[:4]
        function(*arguments)
    seconds = time.perf_counter() - start
    took = [b - a for a, b in zip(before, os.times())]
    print(json.dumps([seconds, took[0] + took[1], took[2] + took[3]]))


def run(name: str, way: str) -> list[float]:
    """Run a fresh process; return wall seconds, its processor time and that of its children."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "STEPWELL_CACHE": cache, "STEPWELL_THREADS": "2"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # installed programs have their bytecode
        command = [sys.executable, str(HERE / "compile_times.py"), name, "--serve", way]
        start = time.perf_counter()
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        seconds = time.perf_counter() - start
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return [seconds, *found[1:]] if way == "whole" else found


def main() -> None:
    """Measure the programs in turn, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--serve", choices=("first", "later", "whole"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.programs[0], given.serve)
        return
    cases = {
        case: goal
        for case, goal in CASES.items()
        if not given.programs or case[0] in given.programs
    }
    runs: dict[tuple[str, str], list[list[float]]] = {case: [] for case in cases}
    for _ in range(given.runs):
        for case, found in runs.items():
            found.append(run(*case))
    print("| program | way | least | median | goal | Python (CPU) | C compilers (CPU) |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for (name, way), goal in cases.items():
        wall, python, compilers = zip(*runs[name, way])
        shown = f"{goal:g} s" if goal else ""
        print(
            f"| {name} | {way} | {min(wall):.2f} s | {median(wall):.2f} s | {shown} |"
            f" {min(python):.2f} s | {min(compilers):.2f} s |"
        )


if __name__ == "__main__":
    main()
