"""The levels of a sum that is taken in steps: a level splits it around levels of other loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from stepwell.dialects.kernel.levels import FOR, PARALLEL, Level, Levels


@dataclass(frozen=True)
class InSteps:
    """All levels of one op, from the outermost to the innermost."""

    levels: Levels
    loops: tuple[bool, ...]
    """For each loop of the op, whether its iterations are independent."""

    @cached_property
    def depth(self) -> int:
        """The loop that is split: the last one of the sum."""
        return max((k for k, parallel in enumerate(self.loops) if not parallel), default=-1)

    @cached_property
    def splits(self) -> list[int]:
        """The positions of the levels that split the sum.

        The innermost level of all runs within a tile; it splits nothing.
        """
        found = [n for n, level in enumerate(self.levels) if level.kind == FOR]
        return [n for n in found[:-1] if self.levels[n].loop == self.depth]

    @cached_property
    def outer(self) -> int:
        """The number of first levels that split a loop for the first time: they make a block."""
        seen: set[int] = set()
        for n, level in enumerate(self.levels):
            first = level.loop not in seen and self.loops[level.loop]
            if level.kind not in (PARALLEL, FOR) or not first:
                return n
            seen.add(level.loop)
        return len(self.levels)

    @cached_property
    def walked(self) -> int:
        """The number of levels around a register tile."""
        ends = [
            n
            for n, level in enumerate(self.levels)
            if level.kind in (PARALLEL, FOR) and (self.loops[level.loop] or n in self.splits)
        ]
        return ends[-1] + 1 if ends else 0

    @cached_property
    def packs(self) -> dict[int, str]:
        """How each operand is packed that a level packs, by its number."""
        found = (action for level in self.levels for action in level.actions)
        return {each.number or 0: each.detail for each in found if each.name == "pack"}

    def step(self, loop: int, before: int) -> int:
        """Return the step of a loop inside of the first ``before`` levels, 0 if none splits it."""
        steps = [level.step for level in self.levels[:before] if level.loop == loop]
        return steps[-1] if steps else 0

    def action(self, name: str, number: int | None = None) -> tuple[int, Level] | None:
        """Return the first level, and its position, with an action on operand ``number``."""
        for n, level in enumerate(self.levels):
            if any(a.name == name and number in (None, a.number) for a in level.actions):
                return n, level
        return None


def in_steps(levels: Levels, loops: Sequence[bool]) -> InSteps | None:
    """Return the levels of an op whose sum is taken in steps; None for other ops.

    >>> from stepwell.dialects.kernel.levels import schedule_from
    >>> levels = schedule_from("[for d0 by 6, for d2 by 8, for d1 by 4, for d2, vector d1 by 4]")
    >>> found = in_steps(levels.of(0), [True, True, False])
    >>> found.splits, found.outer, found.walked
    ([1], 1, 3)
    """
    found = InSteps(levels, tuple(loops))
    if any(level.loop >= len(loops) for level in levels):
        return None
    return found if found.splits and not any(level.parts for level in levels) else None
