"""Where in its loops a nest is while it is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from xdsl.ir import SSAValue

from stepwell.lowering.linalg_to_loops.body import Point
from stepwell.lowering.linalg_to_loops.writer import Index


@dataclass(frozen=True)
class Scope:
    """The points that are computed side by side, and what is known of their loops.

    Of each loop a point has where the present step begins: 0 where no level has walked through it.
    """

    points: tuple[Point, ...]
    ends: tuple[Index, ...]
    """Where each loop ends."""
    sizes: dict[int, int] = field(default_factory=dict[int, int])
    """Iterations of the present step of each loop that a level walks through."""
    exact: frozenset[int] = frozenset()
    """The loops of which no point is beyond the end."""
    lane: Index | None = None
    """The number of the lane, inside of lanes."""

    def at(self, loop: int, by: Index, size: int) -> Scope:
        """Return the scope of one step of a loop, which begins ``by`` iterations further."""
        points = tuple(p.bind(loop, begin(p, loop) + by) for p in self.points)
        return self.to(points, loop, size)

    def to(self, points: tuple[Point, ...], loop: int, size: int) -> Scope:
        """Return the scope of other points, of which each is one step of a loop.

        Lanes may have made its steps smaller before.
        """
        size = min(size, self.sizes.get(loop, size))
        return replace(self, points=points, sizes={**self.sizes, loop: size})

    def exactly(self, loop: int) -> Scope:
        """Return this, no point of the loop being beyond its end."""
        return replace(self, exact=self.exact | {loop})

    def step_sizes(self) -> list[int]:
        """Return the size of the present step of each loop: all of one that no level took so far.

        0 where only the run knows.
        """
        return [self.sizes.get(k, end.number or 0) for k, end in enumerate(self.ends)]

    def divides(self, loop: int, size: int) -> bool:
        """Whether whole steps cover the loop, so that none goes beyond its end."""
        extent = self.ends[loop].number
        return loop in self.exact or (extent is not None and extent % size == 0)


def begin(point: Point, loop: int) -> Index:
    """Return where a point is in a loop."""
    found = point.indices[loop]
    assert found is not None
    return found


State: TypeAlias = Sequence[SSAValue]
"""The running values of a sum, those of one point after those of another."""
Inner: TypeAlias = Callable[[Scope, State], State]
"""Writes what is inside of a level; returns the running values after it."""
