"""The position in its loops of a nest that is being written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from xdsl.ir import SSAValue

from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.writer import Index


@dataclass(frozen=True)
class Scope:
    """The points that are computed side by side, and the known bounds of their loops.

    The index of a point in a loop is the beginning of the current step; 0 before any level has
    walked through the loop.
    """

    points: tuple[Point, ...]
    ends: tuple[Index, ...]
    """The end of each loop."""
    sizes: dict[int, int] = field(default_factory=dict[int, int])
    """Iterations of the current step of each loop that a level walks through."""
    exact: frozenset[int] = frozenset()
    """The loops in which no point exceeds the end."""
    lane: Index | None = None
    """The number of the lane, inside a loop over lanes."""

    def at(self, loop: int, by: Index, size: int) -> Scope:
        """Return the scope of one step of a loop, ``by`` iterations after the current one."""
        points = tuple(p.bind(loop, begin(p, loop) + by) for p in self.points)
        return self.to(points, loop, size)

    def to(self, points: tuple[Point, ...], loop: int, size: int) -> Scope:
        """Return the scope of other points, each of which is one step of a loop.

        Levels of lanes around it may have smaller steps.
        """
        size = min(size, self.sizes.get(loop, size))
        return replace(self, points=points, sizes={**self.sizes, loop: size})

    def exactly(self, loop: int) -> Scope:
        """Return this scope, knowing that no point exceeds the end of the loop."""
        return replace(self, exact=self.exact | {loop})

    def step_sizes(self) -> list[int]:
        """Return the size of the current step of each loop: the extent where no level has split it.

        0 where it is known at run time only.
        """
        return [self.sizes.get(k, end.number or 0) for k, end in enumerate(self.ends)]

    def divides(self, loop: int, size: int) -> bool:
        """Whether whole steps cover the loop exactly."""
        extent = self.ends[loop].number
        return loop in self.exact or (extent is not None and extent % size == 0)


def begin(point: Point, loop: int) -> Index:
    """Return the index of a point in a loop."""
    found = point.indices[loop]
    assert found is not None
    return found


State: TypeAlias = Sequence[SSAValue]
"""The accumulators of a sum, point by point."""
Inner: TypeAlias = Callable[[Scope, State], State]
"""Writes the contents of a level; returns the accumulators after it."""
