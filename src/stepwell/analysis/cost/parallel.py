"""The distribution of parallel steps over threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import ceil, prod

from stepwell.analysis.cost.nest import Nest, Step
from stepwell.core.machine import Machine

MAX_EXACT_STEPS = 1 << 10
"""Steps beyond which all are taken to be equal: the shorter ones at ends are a small part."""


@dataclass(frozen=True)
class Shares:
    """The number of threads, and the share of the busiest."""

    threads: int = 1
    longest: float = 1.0
    """The part of all steps that the busiest thread takes."""


def shares_of(nests: Sequence[Nest], machine: Machine) -> Shares:
    """Return how threads share a kernel: in equal runs of steps, each at least a grain."""
    return max(
        (_shares(nest, machine) for nest in nests), key=lambda s: s.threads, default=Shares()
    )


def _shares(nest: Nest, machine: Machine) -> Shares:
    steps = [step for step in nest.steps if step.is_parallel]
    sizes = [_steps(nest, step) for step in steps]
    count = prod(map(len, sizes))
    if not steps or not count:
        return Shares()
    grains = [a.number or 1 for s in steps for a in s.level.actions if a.name == "grain"]
    grain = max(grains, default=1)
    for step in steps:  # a grain counts iterations, not steps
        grain = max(grain // min(step.level.step, nest.sizes[step.loop]), 1)
    most = min(machine.threads, machine.cores)
    threads = max(min(most, count // grain), 1)
    if nest.computed < 1:  # runs have equally many of the blocks that are computed
        count = ceil(count * nest.computed)
    runs = [count * k // threads for k in range(threads + 1)]
    longest = max(end - begin for begin, end in pairwise(runs)) / count
    whole = nest.computed == 1
    if (
        whole
        and threads > 1
        and count <= MAX_EXACT_STEPS
        and any(len(set(each)) > 1 for each in sizes)
    ):
        work = [prod(chosen) for chosen in product(*sizes)]
        longest = max(sum(work[begin:end]) for begin, end in pairwise(runs)) / sum(work)
    return Shares(threads, longest)


def _steps(nest: Nest, step: Step) -> Sequence[float]:
    """Return the iterations of each step of a parallel level, in order."""
    if step.level.parts:
        return [1.0] * step.level.parts
    size, by = nest.sizes[step.loop], step.level.step
    whole, rest = divmod(size, by)
    return [float(by)] * whole + ([float(rest)] if rest else [])
