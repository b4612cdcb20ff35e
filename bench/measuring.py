"""What was measured, and how far it can be trusted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median, quantiles

NOISY = 0.05
"""Threads may wait for a processor for this part of the time; rounds may differ by twice it."""
FOREIGN = 0.25
"""Other programs may work for this part of one processor's time."""


@dataclass(frozen=True)
class Batch:
    """One round: calls for a tenth of a second or so."""

    seconds: float
    """The median of a call."""
    least: float
    waited: float
    """Seconds that threads stood in line for a processor, for each second."""
    others: float
    """Seconds that other programs worked, for each second."""
    pace: float = 0.0
    """What one core gave just before or after, in 1e9 operations a second."""


@dataclass(frozen=True)
class Outcome:
    """A peer on a workload: how long a call takes, or why that is not known."""

    peer: str
    batches: tuple[Batch, ...] = ()
    threads: int = 1
    compile: float = 0.0
    """Seconds from the model to the first result, nothing cached."""
    error: float = 0.0
    correct: bool = True
    way: str = ""
    problem: str = ""
    """Why there are no batches: "unsupported: ..." or "failed: ..."."""

    @property
    def counts(self) -> bool:
        """Whether it ran and was right."""
        return bool(self.batches) and self.correct and not self.problem

    @property
    def seconds(self) -> float:
        """The median over the rounds of the median call."""
        return median(b.seconds for b in self.batches)

    @property
    def spread(self) -> float:
        """The middle half of the rounds, against their median."""
        if len(self.batches) < 2:
            return 0.0
        low, _, high = quantiles([b.seconds for b in self.batches], n=4)
        return (high - low) / self.seconds

    @property
    def waited(self) -> float:
        """For what part of the time a thread waited for a processor."""
        return median(b.waited for b in self.batches) / self.threads

    @property
    def noisy(self) -> bool:
        """Whether the figure may be off by some percent."""
        return self.waited > NOISY or self.spread > 2 * NOISY

    @property
    def disturbed(self) -> bool:
        """Whether other programs took the processors: the figure is worth nothing."""
        return median(b.others for b in self.batches) > FOREIGN and self.waited > 2 * NOISY

    @property
    def mark(self) -> str:
        """A sign behind the figure."""
        if not self.batches:
            return ""
        return "!" if self.disturbed else "~" if self.noisy else ""


def best(outcomes: Iterable[Outcome]) -> Outcome | None:
    """Return the fastest that was right."""
    good = [o for o in outcomes if o.counts]
    return min(good, key=lambda o: o.seconds) if good else None


def geometric_mean(ratios: Sequence[float]) -> float:
    """Return the mean ratio; 1 where there is none.

    >>> geometric_mean([0.5, 2.0])
    1.0
    """
    return math.exp(fmean(map(math.log, ratios))) if ratios else 1.0


def spell_seconds(seconds: float) -> str:
    """Spell a time with three digits.

    >>> spell_seconds(1.5e-7), spell_seconds(0.0123), spell_seconds(2)
    ('0.150 µs', '12.3 ms', '2.00 s')
    """
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1 or unit == "µs":
            value = seconds * factor
            digits = 3 if value < 1 else 2 if value < 10 else 1 if value < 100 else 0
            return f"{value:.{digits}f} {unit}"
    raise AssertionError
