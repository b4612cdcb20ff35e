"""Run random programs: `python -m stepwell.testing.user_programs --programs 500 --seed 1`."""

from __future__ import annotations

import argparse
import atexit
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter

from stepwell.core.targets import machine_for
from stepwell.runtime.cache import disk_cache
from stepwell.testing.machines import MACHINES as DESCRIBED
from stepwell.testing.user_programs.checking import check
from stepwell.testing.user_programs.draw import program
from stepwell.testing.user_programs.idioms import IDIOMS
from stepwell.testing.user_programs.recipe import Recipe
from stepwell.testing.user_programs.rules import RULES
from stepwell.testing.user_programs.shrinking import shrink, text_of

MACHINES = (
    *("", "", *(described.text for described in DESCRIBED.values())),
    *("l1=4096,l2=16384,l3=65536,threads=4", "vector_bits=128,fma=0,vector_registers=16"),
    "hoist_constants=0",
)
"""The targets and machines to compile for by default."""


BATCH = 50
"""The number of programs after which the cache is emptied."""


def fresh_cache() -> None:
    """Use a cache folder that is removed at the end of this process."""
    folder = tempfile.mkdtemp(prefix="stepwell-")
    if old := _caches[-1:]:
        shutil.rmtree(old[0], ignore_errors=True)
    _caches.append(folder)
    os.environ["STEPWELL_CACHE"] = folder
    disk_cache.cache_clear()


_caches: list[str] = []
atexit.register(lambda: [shutil.rmtree(folder, ignore_errors=True) for folder in _caches[-1:]])


def recipe_of(seed: int, most: int = 80) -> Recipe:
    """Return the program of a seed."""
    return program(seed, (*RULES, *RULES, *IDIOMS), most)


def for_opencl(machine: str) -> str:
    """Return a machine with vectors that the OpenCL device has."""
    lanes = machine_for("opencl").vector_lanes
    if "vector_bits=512" in machine and lanes < 16:
        return ""
    return machine.replace("vector_lanes=64", f"vector_lanes={lanes}")


def kind_of(error: Exception) -> str:
    """Return the class of a failure: the exception's type and the first line of its message."""
    text = str(error).split("\n")[0]
    if "result" in text and type(error).__name__ == "Wrong":
        return "Wrong"
    return f"{type(error).__name__}: {text.rsplit(' in pass ', 1)[-1]}"[:100]


def run(seed: int, target: str, machine: str, quick: bool = False) -> str:
    """Run one program; return "" or a report of its failure."""
    recipe = recipe_of(seed)
    threads = seed % 7 == 0

    def failure(some: Recipe) -> Exception | None:
        try:
            check(some, seed, target, machine, threads)
        except Exception as error:  # any failure is reported
            return error
        return None

    error = failure(recipe)
    if error is None:
        return ""
    kind = kind_of(error)
    if not quick:

        def fails(some: Recipe) -> bool:
            found = failure(some)
            return found is not None and kind_of(found).split(":")[0] == kind.split(":")[0]

        recipe = shrink(recipe, seed, fails)
        error = failure(recipe) or error
    message = "".join(traceback.format_exception_only(error))
    return f"seed {seed}, {target}, machine '{machine}': {message}\n{text_of(recipe)}\n"


def main(arguments: list[str]) -> int:
    """Run programs from ``--seed`` on; return 1 if one fails."""
    parser = argparse.ArgumentParser(prog="python -m stepwell.testing.user_programs")
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--target", choices=("c", "opencl", "both"), default="c")
    parser.add_argument("--machine", help="instead of several in turn")
    parser.add_argument("--quick", action="store_true", help="do not shrink what fails")
    options = parser.parse_args(arguments)
    end, done, failed = time.monotonic() + options.seconds, 0, Counter[str]()
    for seed in range(options.seed, options.seed + options.programs):
        if time.monotonic() > end:
            break
        if done % BATCH == 0:
            fresh_cache()
        target = options.target if options.target != "both" else ("c", "c", "opencl")[seed % 3]
        machine = options.machine if options.machine is not None else MACHINES[seed % len(MACHINES)]
        if target == "opencl":
            machine = for_opencl(machine)
        report = run(seed, target, machine, options.quick)
        done += 1
        if report:
            failed[report.split("\n")[0]] += 1
            print(report, flush=True)
    print(f"{done} programs, {sum(failed.values())} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
