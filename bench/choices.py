"""What the cost model would choose, beside what is best: `python bench/choices.py`.

Each product is compiled with its schedule and with those that differ from it in one choice: the
tile, the rows of a block, its depth, its marks. They run in turn on one thread, and the least time
of the processor counts, so that other work on the machine matters little. The table has, for each
choice, the time lost to the best candidate (regret, the geometric mean of all products): of what
the rules chose, and of what the model predicts to be quickest.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

SIZES = (
    *((512, 512, 512), (1024, 1024, 1024), (128, 768, 768), (128, 3072, 768), (64, 768, 3072)),
    *((445, 676, 684), (751, 224, 356), (303, 135, 1888), (909, 94, 1763), (32, 700, 1500)),
)
"""Rows, depth and columns; the last five are shapes that were drawn."""
ROUNDS = 12


class Timed(NamedTuple):
    """A candidate: the choice that it differs in, "" for what is chosen; seconds."""

    choice: str
    measured: float
    predicted: float


def product(m: int, k: int, n: int) -> str:
    """Return the program of a product."""
    x, w, y = (f"tensor<{a}x{b}xf32>" for a, b in ((m, k), (k, n), (m, n)))
    return (
        f"func.func @main(%x: {x}, %w: {w}) -> {y} {{\n"
        f"  %y = nd.matmul %x, %w : ({x}, {w}) -> {y}\n  func.return %y : {y}\n}}\n"
    )


def candidates(sizes: tuple[int, int, int], rounds: int) -> list[Timed]:
    """Time and predict the schedules near that of a product."""
    from stepwell.analysis.cost import Predictor
    from stepwell.analysis.levels.queries import KernelLevels
    from stepwell.core.diagnostics import CompileError
    from stepwell.core.machine import this_machine
    from stepwell.core.source import Source
    from stepwell.driver.tuning import Search, candidates_of
    from stepwell.transforms.kernels.schedule.variants import variants

    machine = this_machine()
    source = Source(product(*sizes), "product", "main", machine)
    chosen = candidates_of(source)[0]
    predictor = Predictor(chosen.function, machine)
    levels = KernelLevels(chosen.function, chosen.schedule)
    near = [each for some in variants(levels, machine) for each in some]
    with TemporaryDirectory(prefix="stepwell-choices-") as folder:
        search = Search(chosen, source, Path(folder))
        runs: list[tuple[str, float, Any]] = []
        for schedule in (chosen.schedule, *near):
            try:
                run = search.compiled(schedule)
            except CompileError:
                continue
            search.tried += 1
            choice = differs(levels, KernelLevels(chosen.function, schedule))
            runs.append((choice, predictor.predict(schedule).seconds, run))
        least = alternate([run for _, _, run in runs], rounds)
    return [Timed(c, t, p) for (c, p, _), t in zip(runs, least, strict=True)]


def differs(old: Any, new: Any) -> str:
    """Name the choice in which two schedules differ."""
    if old.tile != new.tile:
        return "tile"
    if old.blocks != new.blocks:
        return "depth" if old.blocks[-1] != new.blocks[-1] else "rows"
    return "" if old.schedule == new.schedule else "marks"


def alternate(runs: Sequence[Any], rounds: int) -> list[float]:
    """Return the least seconds of the processor of each program."""
    least = [float("inf")] * len(runs)
    for _ in range(rounds):
        for number, run in enumerate(runs):
            begin = time.thread_time()
            run.program.call(*run.arguments[0], out=run.results[0])
            least[number] = min(least[number], time.thread_time() - begin)
    return least


def regrets(found: Sequence[Sequence[Timed]], choice: str) -> tuple[int, float, float]:
    """Return how many products have the choice, and the regret of the rules and of the model."""
    rules: list[float] = []
    model: list[float] = []
    for timed in found:
        some = [each for each in timed if each.choice in ("", choice)]
        if len(some) < 2:
            continue
        best = min(each.measured for each in some)
        rules.append(some[0].measured / best)
        model.append(min(some, key=lambda each: each.predicted).measured / best)
    return len(rules), mean(rules), mean(model)


def mean(ratios: Sequence[float]) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else 1.0


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--sizes", default="", help="as 512x512x512, with commas")
    options = parser.parse_args()
    os.environ["STEPWELL_THREADS"] = "1"
    asked = [tuple(map(int, each.split("x"))) for each in options.sizes.split(",") if each]
    found = [candidates((m, k, n), options.rounds) for m, k, n in asked or SIZES]
    print("| choice | products | regret of the rules | of the model |\n|---|---:|---:|---:|")
    for choice in ("tile", "rows", "depth", "marks"):
        many, rules, model = regrets(found, choice)
        print(f"| {choice} | {many} | {rules - 1:.1%} | {model - 1:.1%} |")


if __name__ == "__main__":
    main()
