"""The levels of one op in the order in which their loops are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from stepwell.dialects.kernel.levels import FOR, LANE, UNROLL, Level


@dataclass(frozen=True)
class Step:
    """A level, and how many iterations of its loop it walks through; 0 for all of the loop."""

    level: Level
    span: int

    @property
    def kind(self) -> str:
        """What kind of level it is."""
        return self.level.kind

    @property
    def loop(self) -> int:
        """The loop that it walks through."""
        return self.level.loop

    @property
    def size(self) -> int:
        """How many iterations it leaves to the levels inside of it."""
        return self.level.step

    @property
    def count(self) -> int:
        """How many steps it has; 0 where the loop's extent tells."""
        return self.span // self.size


def steps_of(levels: Sequence[Level], sizes: dict[int, int]) -> list[Step]:
    """Return levels with what they walk through, lanes before the loops around them.

    A loop without actions directly around lanes is written inside of them: each lane then takes
    every so many-th iteration, and nobody waits between two.

    sizes : of one step of each loop that levels outside of these walk through

    >>> from stepwell.dialects.kernel.levels import schedule_from
    >>> [str(s.level) for s in steps_of(schedule_from("[for d1 by 256, lane d1]").levels, {})]
    ['lane d1', 'for d1 by 256']
    """
    now = dict(sizes)
    steps: list[Step] = []
    for level in levels:
        step = Step(level, now.get(level.loop, 0))
        now[level.loop] = level.step
        at = len(steps)
        while level.kind == LANE and at and _may_be_inside(steps[at - 1]):
            at -= 1
        steps.insert(at, step)
    return steps


def _may_be_inside(step: Step) -> bool:
    return step.kind in (FOR, UNROLL) and not step.level.actions


def lanes_of(steps: Sequence[Step]) -> int:
    """Return how many lanes levels ask for."""
    return prod(step.count for step in steps if step.kind == LANE)


def without_lanes(steps: Sequence[Step]) -> list[Step]:
    """Return the levels within a lane."""
    return [step for step in steps if step.kind != LANE]
