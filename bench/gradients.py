"""Measure derivatives op by op, and batched programs beside those written for batches.

`make bench-gradients` writes docs/backward.md. For each op the program that computes the
cotangents of its float arguments is timed beside the op itself, in turn; it is to take at most 3
times as long, or 3 times what the machine needs at least to read what it reads and write what it
writes, where that is more. Then `vmap` of ten functions is timed beside the same on arrays with a
batch axis, written by hand.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fnmatch import fnmatchcase
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from batched import BATCH, FUNCTIONS, Function
from gradients_rows import EXCEPTIONS, REASONS, rows
from limits import processor, spell_limits
from measuring import geometric_mean, spell_seconds

import stepwell as sw
from stepwell.core.machine import thread_count
from stepwell.runtime.limits import Limits, measure_again
from stepwell.runtime.toolchain import find_compiler
from stepwell.testing.op_rows.row import Row

PAGE = Path(__file__).parent.parent / "docs" / "backward.md"
MOST = 3.0
"""How many times an op's own time its backward may take."""
BY_HAND = 1.1
"""How many times what is written for batches `vmap` may take."""
ROUNDS = 15
LEAST = 2e-3
"""Seconds of calls in a round."""
AGAIN = 4
"""How often what seems slow is measured: others may use the machine."""

LEGEND = f"""\
*op* is the time of the op. *backward* is the time of the program that computes the cotangents of
all float arguments from the arguments and the result's cotangent; it recomputes the values of the
forward pass that it needs. *limit* is the minimum time in which this machine reads that program's
inputs and writes its results. *ratio* is backward to the larger of op and limit (goal: at most
{MOST:g}). *kernels* is the number of kernels of the backward program. Arrays have about a million
elements, f32. Times are the least of {ROUNDS} rounds, in which the two were called in turn."""


def backward(row: Row) -> str:
    """Return the program of a row's derivative: from its arguments and a cotangent."""
    assert isinstance(row.results, str)
    text = {k: v.replace("{e}", "f32") for k, v in row.arguments.items()}
    floats = [i for i, type in enumerate(text.values()) if type.endswith("f32>")]
    given = ", ".join(f"%{name} = %{name}_" for name in text)
    found = ", ".join(list(text.values())[i] for i in floats)
    names = ", ".join(f"%d{i}" for i in floats)
    y, types = row.results.replace("{e}", "f32"), ", ".join(text.values())
    arguments = ", ".join(f"%{name}_: {type}" for name, type in text.items())
    how = f"cotangents(%g : {y}) {{wrt = {floats}, of = [0]}} : ({types}) -> ({y}, {found})"
    return f"""\
func.func @main({arguments}, %g: {y}) -> ({found}) {{
  %y_, {names} = nd.vjp ({given}) {how} {{
    {row.text.replace("{e}", "f32")}
    nd.yield %y : {y}
  }}
  func.return {names} : {found}
}}
"""


@dataclass(frozen=True)
class Timed:
    """An op and its derivative; seconds of each, and what the machine needs for the derivative."""

    name: str
    forward: float
    backward: float
    limit: float
    kernels: int
    problem: str = ""
    """Why there are no times."""

    @property
    def ratio(self) -> float:
        """The derivative's time to the op's or the limit, whichever is more."""
        return self.backward / max(self.forward, self.limit)


def alternate(
    calls: Sequence[Callable[[], Any]],
    rounds: int = ROUNDS,
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Return the least time of each of some calls, made in turn."""
    counts: list[int] = []
    for call in calls:
        call()
        begin = clock()
        call()
        counts.append(max(1, int(LEAST / max(clock() - begin, 1e-7))))
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            begin = clock()
            for _ in range(counts[i]):
                call()
            best[i] = min(best[i], (clock() - begin) / counts[i])
    return best


def measured(row: Row, limits: Limits) -> Timed:
    """Time an op and its derivative."""
    try:
        (case,) = row.cases()
        forward, reverse = sw.compile(case.module), sw.compile(backward(row))
    except sw.CompileError as error:
        return Timed(row.name, 0.0, 0.0, 0.0, 0, str(error).splitlines()[0])
    given = case.arguments
    y = forward(*given)
    g = np.random.default_rng(0).uniform(0.5, 1.0, y.shape).astype(y.dtype)
    results = reverse(*given, g)
    results = results if isinstance(results, tuple | list) else (results,)
    bytes = sum(a.nbytes for a in (*given, g, *results))
    found = Timed(row.name, inf, inf, limits.seconds(0, bytes), len(reverse.kernels))
    for _ in range(AGAIN):
        once, back = alternate([lambda: forward(*given), lambda: reverse(*given, g)])
        found = replace(found, forward=min(found.forward, once), backward=min(found.backward, back))
        if found.ratio <= MOST:
            break
    return found


def compared(function: Function) -> Timed:
    """Time a function by `vmap` and as it is written for batches: the latter stands as forward."""
    given = function.inputs(np.random.default_rng(0))
    try:
        mapped = sw.jit(sw.vmap(function.of_one, in_axes=function.in_axes))
        found = mapped(*given)
    except (AttributeError, NotImplementedError, sw.CompileError, sw.TraceError) as error:
        return Timed(function.name, 0.0, 0.0, 0.0, 0, str(error).splitlines()[0])
    by_hand = sw.jit(function.by_hand)
    np.testing.assert_allclose(found, by_hand(*given), rtol=1e-4, atol=1e-4)
    hand, ours = alternate([lambda: by_hand(*given), lambda: mapped(*given)])
    return Timed(function.name, hand, ours, 0.0, len(mapped.trace(*given).compile().kernels))


def ops_table(found: Sequence[Timed]) -> list[str]:
    """Return the table of ops, and what is to be said of it."""
    lines = [
        "| op | its time | backward | limit | ratio | kernels |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    good = [t for t in found if not t.problem]
    for t in good:
        times = " | ".join(spell_seconds(s) for s in (t.forward, t.backward, t.limit))
        lines.append(f"| `{t.name}` | {times} | {t.ratio:.2f} | {t.kernels} |")
    slow = [t for t in good if t.ratio > MOST]
    lines += ["", f"{len(good)} rows, {len(slow)} above {MOST:g}."]
    lines += [
        f"* `{t.name}` ({t.ratio:.1f}): {EXCEPTIONS.get(t.name, 'falls short')}" for t in slow
    ]
    lines += [f"* `{t.name}`: not measured: {t.problem}" for t in found if t.problem]
    return [*lines, "", "Not here, for a reason:", "", *reasons()]


def reasons() -> list[str]:
    """Return why some ops have no row."""
    return [
        f"* {why}: {', '.join(f'`nd.{name}`' for name in names.split())}"
        for why, names in REASONS.items()
    ]


def batches_table(found: Sequence[Timed]) -> list[str]:
    """Return the table of functions that are batched."""
    lines = ["| function | by hand | by vmap | ratio | kernels |", "|---|---:|---:|---:|---:|"]
    good = [t for t in found if not t.problem]
    for t in good:
        times = f"{spell_seconds(t.forward)} | {spell_seconds(t.backward)}"
        lines.append(f"| {t.name} | {times} | {t.ratio:.2f} | {t.kernels} |")
    if good:
        mean = geometric_mean([t.ratio for t in good])
        lines.append(f"| geometric mean of {len(good)} | | | {mean:.2f} | |")
    return [*lines, "", *(f"* {t.name}: {t.problem}" for t in found if t.problem)]


def main() -> None:
    """Measure what is asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--rows", default="*", metavar="PATTERN", help="as in 'nd.cumulative_*' (default all)")
    add("--functions", default="*", metavar="PATTERN", help="which functions are batched")
    add("--page", help=f"where to write the page (default {PAGE} for all, else print)")
    options = parser.parse_args()
    limits = measure_again(thread_count())
    ops: list[Timed] = []
    for row in rows():
        if fnmatchcase(row.name, options.rows):
            ops.append(measured(row, limits))
            _say(ops[-1])
    batches: list[Timed] = []
    for function in FUNCTIONS:
        if fnmatchcase(function.name, options.functions):
            batches.append(compared(function))
            _say(batches[-1])
    about = (
        f"`make bench-gradients` measured these: {date.today()}, {processor()}, "
        f"{thread_count()} threads, load {os.getloadavg()[0]:.1f} (1 or less is a quiet machine), "
        f"Python {platform.python_version()}, {find_compiler().version}; {spell_limits(limits)}."
    )
    title = f"## `vmap` of functions of one, for {BATCH}, beside the same written for batches"
    text = ["# Backward", "", about, "", LEGEND, "", *ops_table(ops), "", title, ""]
    text += [f"Goal: at most {BY_HAND:g} times.", "", *batches_table(batches)]
    page = "\n".join(text).rstrip() + "\n"
    if options.page or options.rows == options.functions == "*":
        Path(options.page or PAGE).write_text(page)
    else:
        print(page, end="")


def _say(t: Timed) -> None:
    times = f"{spell_seconds(t.forward)}, {spell_seconds(t.backward)}"
    said = t.problem or f"{times}, ratio {t.ratio:.2f}, {t.kernels} kernels"
    print(f"{t.name}: {said}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
