"""The levels of a contraction in steps, and the ranges that they have opened."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from stepwell.analysis.levels.in_steps import InSteps
from stepwell.analysis.structured import dims_of
from stepwell.dialects.kernel.levels import FOR, Level
from stepwell.lowering.linalg_to_loops.plan import Plan
from stepwell.lowering.linalg_to_loops.structured import Structured
from stepwell.lowering.linalg_to_loops.writer import Index
from stepwell.transforms.passes import fail


@dataclass(frozen=True)
class Range:
    """The part of a loop that a level has opened."""

    start: Index
    end: Index
    """Where results end: a tile that computes more stores only those before it."""
    size: int
    """Iterations of a whole step; 0 where it is known at launch only."""


Ranges: TypeAlias = dict[int, Range]
"""The open range of each loop."""


@dataclass(frozen=True)
class ContractionLevels:
    """The sum of a plan, and its levels with one at least for the tiles of each loop."""

    sum: Structured
    levels: InSteps
    tile: tuple[int, int]
    """Rows and columns of a register tile."""

    @property
    def row(self) -> int:
        """The loop of the rows of a tile."""
        return self.column - 1

    @cached_property
    def column(self) -> int:
        """The loop of the columns: the last one that is not summed over."""
        return max(k for k, parallel in enumerate(self.levels.loops) if parallel)

    @property
    def width(self) -> int:
        """The columns of a vector."""
        return self.sum.width

    @property
    def lanes(self) -> int:
        """The lanes of a vector, 0 without vectors."""
        return self.width if self.width > 1 else 0

    def lanes_in(self, at: Ranges) -> int:
        """Return the lanes of the vectors of a tile, 0 where it is narrower than a vector."""
        return self.lanes if at[self.column].size >= self.width else 0

    def step(self, k: int) -> int:
        """Return the iterations of a loop that a tile has."""
        return {self.row: self.tile[0], self.column: self.tile[1]}.get(k, 1)

    def is_tile(self, n: int) -> bool:
        """Whether the steps of the ``n``-th level are tiles."""
        level, walked = self.levels.levels[n], self.levels.levels[: self.levels.walked]
        return level.loop <= self.column and all(x.loop != level.loop for x in walked[n + 1 :])

    def sizes(self, n: int, extents: list[Index]) -> list[int]:
        """Return the iterations of each loop inside of the first ``n`` levels, in whole tiles."""
        found = [self.levels.step(k, n) or extents[k].number or 0 for k in range(self.column + 1)]
        return [*found[:-1], -(-found[-1] // self.tile[1]) * self.tile[1]]

    def roles(self) -> tuple[int, int]:
        """Return the input that varies with the rows, and that which varies with columns alone."""
        op = self.sum
        used = [k for k in range(len(op.inputs)) if op.uses(k)]
        dims = {k: dims_of(op.inputs[k].exprs) for k in used}
        by_rows = next(k for k in used if self.row in dims[k])
        return by_rows, next(k for k in used if self.column in dims[k] and k != by_rows)


def contraction_levels(plan: Plan) -> ContractionLevels:
    """Return the levels of the one op that sums, as `check_levels` has checked."""
    found = next(op for op in plan.ops if op.reduced)
    if 0 not in found.initial:
        fail(found.op, "a sum in steps has one output, which a linalg.fill starts")
    written = {o.buffer for op in plan.ops for o in op.outputs}
    if any(a.buffer in written for a in found.inputs):
        fail(found.op, "a sum in steps needs operands that the kernel does not write")
    column, steps = plan.levels.shared - 1, plan.steps_of(found)
    assert steps is not None
    tile = plan.levels.step(column - 1), plan.levels.step(column)
    levels = ContractionLevels(found, steps, tile)
    return replace(levels, levels=_with_tiles(levels))


def _with_tiles(of: ContractionLevels) -> InSteps:
    """Return the levels with one for the tiles of a block, also where the block is one tile.

    The level for columns is outside of the sum, that for rows inside.
    """
    found = of.levels
    for k in (of.column, *range(of.column)):
        inside = found.levels[found.outer : found.walked]
        missing = found.step(k, found.walked) != of.step(k)
        if missing or (k >= of.row and all(level.loop != k for level in inside)):
            at = found.outer if k == of.column else found.walked
            level = Level(FOR, k, of.step(k))
            found = replace(found, levels=(*found.levels[:at], level, *found.levels[at:]))
    return found
