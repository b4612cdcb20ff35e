"""Measure what the README promises and write it to docs/figures.md: `make figures`.

Start-up is measured in fresh processes with caches of their own, everything else beside what it is
compared with, in turn. A loaded machine makes all of it slower: the table says how loaded it was.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import partial
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from statistics import median
from sysconfig import get_path
from types import SimpleNamespace
from typing import Any

import numpy as np
from limits import processor

import stepwell as sw
import stepwell.numpy as snp
from stepwell.core.machine import thread_count
from stepwell.runtime.extension import load_extension
from stepwell.runtime.toolchain import find_compiler

HERE = Path(__file__).parent
RUNS = 7
SMALL = """
import sys, numpy as np, stepwell as sw, stepwell.numpy as snp
@sw.jit
def f(a, b, c):
    return snp.sum(snp.sqrt((a + b) * c + 1.0), axis=1)
x = np.ones((64, 64), np.float32)
assert np.allclose(f(x, x, x), 64 * 3 ** 0.5)
"""
WARM = SMALL + "assert not any(name.partition('.')[0] == 'xdsl' for name in sys.modules)\n"
GRAPH = f"""
import sys, time
sys.path.insert(0, {str(HERE)!r})
import graphs, stepwell as sw
arguments = graphs.arguments(GRAPH)
start = time.perf_counter()
sw.jit(getattr(graphs, GRAPH))(*arguments)
print(time.perf_counter() - start)
"""


@dataclass(frozen=True)
class Figure:
    """One line of the table: a measured value and its target, or none where it is a comparison."""

    what: str
    value: float
    target: float | None
    unit: str
    least: bool = False
    """Whether the target is the least that will do, not the most."""

    def __str__(self) -> str:
        shown = f"{self.value:.3g} {self.unit}".strip()
        if self.target is None:
            return f"| {self.what} | {shown} | | |"
        met = self.value >= self.target if self.least else self.value <= self.target
        sign = "≥" if self.least else "≤"
        target = f"{sign} {self.target:g} {self.unit}".strip()
        return f"| {self.what} | {shown} | {target} | {'yes' if met else 'no'} |"


def process(command: list[str], cache: str) -> tuple[float, float, str]:
    """Run a fresh process; return its seconds, those its CPUs worked, and its output."""
    environment = {**os.environ, "STEPWELL_CACHE": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # installed programs have their bytecode
    before, start = os.times(), time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    seconds, after = time.perf_counter() - start, os.times()
    worked = sum(after[2:4]) - sum(before[2:4])
    return seconds, worked, done.stdout


def start_up() -> Iterator[Figure]:
    """Measure whole processes: a first compile ever, a start from the cache, a tool's answer."""
    with tempfile.TemporaryDirectory() as cache:
        process([sys.executable, "-c", SMALL], cache)  # writes Python's bytecode too
        warm = [process([sys.executable, "-c", WARM], cache) for _ in range(RUNS)]
        tool = [str(Path(sys.executable).with_name("stepwell-opt")), "--list-passes"]
        listed = [process(tool, cache) for _ in range(RUNS)]
        bare = [process([sys.executable, "-c", "import numpy"], cache) for _ in range(RUNS)]
    cold: list[tuple[float, float, str]] = []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(process([sys.executable, "-c", SMALL], cache))
    for what, runs, target in (
        ("first compile ever of five operations, whole process", cold, 0.8),
        ("start from the cache, whole process, no xdsl", warm, 0.2),
        ("`import numpy` alone, for comparison", bare, None),
        ("`stepwell-opt --list-passes`", listed, 0.4),
    ):
        worked = median(run[1] for run in runs)
        yield Figure(f"{what} (CPU: {worked:.2f} s)", median(r[0] for r in runs), target, "s")


def graphs() -> Iterator[Figure]:
    """Measure the first call of graphs of 500 operations, nothing cached."""
    for name in ("repeated", "distinct"):
        seconds: list[float] = []
        worked: list[float] = []
        for _ in range(5):
            with tempfile.TemporaryDirectory() as cache:
                code = GRAPH.replace("GRAPH", repr(name))
                _, cpu, said = process([sys.executable, "-c", code], cache)
            seconds.append(float(said))
            worked.append(cpu)
        what = f"500 operations, layers {name}, traced, compiled, called"
        yield Figure(f"{what} (CPU: {median(worked):.2f} s)", median(seconds), 3.0, "s")


def bare_calls() -> Any:
    """Return the module of bare.c, compiled by what compiles our programs."""
    folder = Path(tempfile.mkdtemp())
    flags = ["-O3", "-march=native", "-pthread", f"-I{get_path('include')}"]
    find_compiler().build_library(HERE / "bare.c", folder / "bare.so", flags)
    loader = ExtensionFileLoader("bare", str(folder / "bare.so"))
    spec = spec_from_loader("bare", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def seconds_of(call: Callable[[], Any]) -> float:
    """Return how long one call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def bandwidth(machine: Any) -> Iterator[Figure]:
    """Measure `sum((a + b) * c)` beside NumPy and beside bare reading."""
    n = 1 << 24
    random = np.random.default_rng(0)
    a, b, c = (random.random(n, np.float32) for _ in range(3))
    ours: Any = sw.jit(lambda a, b, c: snp.sum((a + b) * c))
    kernels = len(ours.trace(a, b, c).compile().kernels)
    addresses = [x.ctypes.data for x in (a, b, c)]
    calls: tuple[Callable[[], Any], ...] = (
        lambda: ours(a, b, c),
        lambda: np.sum((a + b) * c),
        lambda: machine.read(*addresses, n, thread_count()),
    )
    assert np.allclose(calls[0](), calls[1](), rtol=1e-4)
    rounds = [[seconds_of(call) for call in calls] for _ in range(21)]
    mine, numpy, read = (median(times) for times in zip(*rounds, strict=True))
    share = median(r[2] / r[0] for r in rounds)
    faster = median(r[1] / r[0] for r in rounds)
    what = f"`sum((a+b)*c)`, 2^24 f32, {mine * 1e3:.1f} ms: "
    yield Figure(f"{what}kernels", kernels, 1, "")
    yield Figure(f"{what}of read bandwidth ({12 * n / read / 1e9:.1f} GB/s)", share, 0.9, "", True)
    yield Figure(f"{what}times NumPy ({numpy * 1e3:.1f} ms)", faster, 3.0, "", True)


def chains() -> Iterator[Figure]:
    """Measure two chains of products that need nothing of each other, on one thread and on all."""
    random = np.random.default_rng(0)
    arrays = [random.standard_normal((256, 256), np.float32) / 16 for _ in range(4)]

    def chain(x: Any, w: Any) -> Any:
        for _ in range(8):
            x = x @ w
        return x

    def both(x: Any, w: Any, y: Any, v: Any) -> Any:
        return chain(x, w), chain(y, v)

    jitted: Any = sw.jit(both)
    jitted(*arrays)
    extension = load_extension()
    assert extension is not None

    def on(threads: int) -> float:
        extension.set_threads(threads)
        return seconds_of(lambda: jitted(*arrays))

    rounds = [(on(1), on(thread_count())) for _ in range(101)]
    faster = median(r[0] / r[1] for r in rounds)
    what = f"two chains of eight products of 256x256, {thread_count()} threads: times one thread"
    yield Figure(what, faster, 1.7, "", True)


def calls(machine: Any) -> Iterator[Figure]:
    """Measure what a call costs above a bare call of a C function from Python."""
    x = np.ones(4, np.float32)
    tree = {"w": x, "b": x}
    large = {f"w{i}": x for i in range(200)}
    out = np.empty_like(x)
    add: Any = sw.jit(lambda x, y: x + y)
    compiled: Any = add.trace(x, x).compile()
    of_tree: Any = sw.jit(lambda x, p: x * p["w"] + p["b"])
    add(x, x)
    of_tree(x, tree)
    of_large: Any = sw.jit(lambda x, p: x * p["w0"] + p["w199"])
    of_large(x, large)
    loops = {
        "compiled(x, y, out=z)": lambda: compiled(x, x, out=out),
        "compiled(x, y)": lambda: compiled(x, x),
        "jitted(x, y)": lambda: add(x, x),
        "jitted(x, {2 arrays})": lambda: of_tree(x, tree),
        "jitted(x, {200 arrays})": lambda: of_large(x, large),
        "numpy.add(x, y)": lambda: np.add(x, x),
        "": lambda: machine.bare(x, x),
    }
    rounds = [{name: _per_call(call) for name, call in loops.items()} for _ in range(RUNS)]
    best = {name: min(r[name] for r in rounds) for name in loops}
    targets: dict[str, float] = dict.fromkeys(
        ("compiled(x, y, out=z)", "compiled(x, y)", "jitted(x, y)", "jitted(x, {2 arrays})"), 0.3
    )
    for name in loops:
        if name:
            what = f"call of `{name}` above a bare call ({best[''] * 1e9:.0f} ns)"
            yield Figure(what, (best[name] - best[""]) * 1e6, targets.get(name), "µs")


RATE = 2.0
TABLE = {"rate": 2.0}
SETTINGS = SimpleNamespace(rate=2.0)
OFFSETS = np.ones(128, np.float32)
"""Large enough to be a hidden argument."""


def guards() -> Iterator[Figure]:
    """Measure what a call costs more where the function reads something outside of itself."""
    x = np.ones(128, np.float32)
    functions: dict[str, Any] = {
        "": sw.jit(lambda x: x * 2.0),
        "a variable of its module": sw.jit(lambda x: x * RATE),
        "an item of a dict there": sw.jit(lambda x: x * TABLE["rate"]),
        "an attribute of an object there": sw.jit(lambda x: x * SETTINGS.rate),
        "an array there": sw.jit(lambda x: x * OFFSETS),
    }
    calls = {name: partial(f, x) for name, f in functions.items()}
    for call in calls.values():
        call()
    rounds = [{name: _per_call(call) for name, call in calls.items()} for _ in range(RUNS)]
    best = {name: min(r[name] for r in rounds) for name in calls}
    for name in filter(None, calls):
        what = f"call of a function that reads {name}, above one that reads nothing"
        yield Figure(what, (best[name] - best[""]) * 1e6, None, "µs")


def predictions() -> Iterator[Figure]:
    """Measure how far off the cost model is, over all kernels of all workloads."""
    from predicted import GOALS, SHORT, all_kernels, summary

    found = [each for each in all_kernels() if each.measured >= SHORT]
    for what, error, goal in zip(("median", "ninth decile"), summary(found), GOALS):
        name = f"cost model beside {len(found)} kernels of 1 us and more: {what} of the error"
        yield Figure(name, error, goal, "")


def _per_call(call: Callable[[], Any]) -> float:
    times, start = 20_000, time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - start) / times


def main() -> None:
    """Measure, print and write the table."""
    machine = bare_calls()
    rows = ["| figure | measured | target | met |", "|---|---|---|---|"]
    print(*rows, sep="\n")
    load = os.getloadavg()[0]
    for figure in (f for part in (start_up(), graphs()) for f in part):
        rows.append(str(figure))
        print(rows[-1], flush=True)
    for figure in (
        f
        for part in (bandwidth(machine), chains(), calls(machine), guards(), predictions())
        for f in part
    ):
        rows.append(str(figure))
        print(rows[-1], flush=True)
    load = max(load, os.getloadavg()[0])
    about = (
        f"{date.today()}, {processor()}, {thread_count()} cores, load {load:.1f} "
        f"(1 or less is a quiet machine). Stepwell {sw.__version__}, Python "
        f"{platform.python_version()}, NumPy {np.__version__}, {find_compiler().version}."
    )
    text = ["# Figures", "", f"`make figures` measured these: {about}", "", *rows, ""]
    (HERE.parent / "docs" / "figures.md").write_text("\n".join(text))


if __name__ == "__main__":
    main()
