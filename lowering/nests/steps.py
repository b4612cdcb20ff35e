"""The levels of one op in the order in which their loops are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from stepwell.dialects.kernel.levels import FOR, LANE, UNROLL, Level


@dataclass(frozen=True)
class Step:
    """A level and the iterations of its loop that it covers; 0 for all of the loop."""

    level: Level
    span: int

    @property
    def kind(self) -> str:
        """The kind of the level."""
        return self.level.kind

    @property
    def loop(self) -> int:
        """The loop of the level."""
        return self.level.loop

    @property
    def size(self) -> int:
        """Iterations of one step, which the levels inside cover."""
        return self.level.step

    @property
    def count(self) -> int:
        """The number of steps; 0 where it depends on the loop's extent."""
        return self.span // self.size


def steps_of(levels: Sequence[Level], sizes: dict[int, int]) -> list[Step]:
    """Return levels with the iterations that they cover, lanes before the loops around them.

    A loop without actions directly around lanes is written inside of them: each lane then strides
    through the loop, without a barrier between its iterations.

    sizes : iterations of one step of each loop that enclosing levels split

    >>> from stepwell.dialects.kernel.levels import schedule_from
    >>> levels = schedule_from("[group d0, for d1 by 256, lane d1]").levels[1:]
    >>> [str(step.level) for step in steps_of(levels, {})]
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
    """Return the number of lanes of these levels."""
    return prod(step.count for step in steps if step.kind == LANE)


def without_lanes(steps: Sequence[Step]) -> list[Step]:
    """Return the levels within a lane."""
    return [step for step in steps if step.kind != LANE]
