"""How threads share the steps of parallel levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod

from stepwell.analysis.cost.nest import Nest
from stepwell.core.machine import Machine


@dataclass(frozen=True)
class Shares:
    """How many threads there are, and how much the busiest does."""

    threads: int = 1
    longest: float = 1.0
    """The part of all steps that the busiest thread takes."""


def shares_of(nests: Sequence[Nest], machine: Machine) -> Shares:
    """Return how threads share a kernel: in equal runs of steps, each of a grain or more."""
    return max(
        (_shares(nest, machine) for nest in nests), key=lambda s: s.threads, default=Shares()
    )


def _shares(nest: Nest, machine: Machine) -> Shares:
    steps = [step for step in nest.steps if step.is_parallel]
    if not steps:
        return Shares()
    count = prod(ceil(step.trips - 1e-9) for step in steps)
    grains = [a.number or 1 for s in steps for a in s.level.actions if a.name == "grain"]
    grain = max(max(grains, default=1) // steps[-1].level.step, 1)
    most = min(machine.threads, machine.cores)
    threads = max(min(most, count // grain), 1)
    return Shares(threads, ceil(count / threads) / count)
