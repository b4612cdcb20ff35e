"""Contractions in steps: one walk down the levels of a schedule, from the outermost inwards.

A level of a loop opens that loop in steps. A level that splits the sum leaves partial sums in
scratch, which holds all results of one step of the levels around it. A packed operand is copied
into a panel before the inside of the outermost level that fixes the part to be packed. The
innermost levels are the points of a register tile (`contraction_tile`), which adds one part of the
sum.

If the operand of the columns is packed, the last tiles are computed whole, and only the part inside
is stored: the epilogue reads the registers of the last part. An operand that is read in
place ends in narrower tiles instead; the epilogue reads the partial sums, in loops of its
own.
"""

from __future__ import annotations

from xdsl.dialects import arith

from stepwell.dialects.kernel.levels import PARALLEL, Level
from stepwell.lowering.linalg_to_loops.contraction_levels import Range, Ranges
from stepwell.lowering.linalg_to_loops.contraction_tile import Tiles
from stepwell.lowering.linalg_to_loops.frame import Frame
from stepwell.lowering.linalg_to_loops.mirror import mirror
from stepwell.lowering.linalg_to_loops.plan import Plan
from stepwell.lowering.linalg_to_loops.tails import steps
from stepwell.lowering.linalg_to_loops.threads import Opened, in_threads
from stepwell.lowering.linalg_to_loops.writer import NAMES, Index


def is_in_steps(plan: Plan) -> bool:
    """Whether the sum of these ops is taken in steps."""
    return any(op.reduced and plan.steps_of(op) is not None for op in plan.ops)


class Contraction:
    """Writes the loops of a plan whose sum is taken in steps."""

    def __init__(self, frame: Frame) -> None:
        self.frame, self.writer = frame, frame.writer
        self.tiles = Tiles(frame)
        self.of, self.operands, self.sums = self.tiles.of, self.tiles.operands, self.tiles.sums
        self.threads = sum(level.kind == PARALLEL for level in self.of.levels.levels)
        """The number of parallel levels."""
        self.finishing = False
        """Whether the loops of the epilogue are written."""

    def write(self) -> None:
        """Write the whole nest."""
        levels, row = self.of.levels, self.of.row
        blocks = [levels.step(k, self.threads) for k in range(self.frame.plan.levels.parallel)]
        evens = row < len(blocks) and blocks[row] > 1
        unit = blocks[-1] if self.frame.plan.levels.mirrors else self.of.tile[0]
        in_threads(self.frame, blocks, self._inside_threads, (row if evens else -1, unit))

    def _inside_threads(self, opened: Opened) -> None:
        """Walk down the levels inside of the parallel ones."""
        levels, ends = self.of.levels, self.frame.ends
        at: Ranges = {}
        for k, end in enumerate(ends[: self.of.column + 1]):
            size = levels.step(k, self.threads) or end.number or 1
            at[k] = Range(*opened.get(k, (Index(), end)), size)
        extent = self.tiles.extent
        at[levels.depth] = Range(Index(), extent, extent.number or 0)
        if self.tiles.unit is not None:
            self.tiles.unit.begin()
        self._walk(self.threads, at)
        if self.tiles.unit is not None:
            self.tiles.unit.end()
        if self.frame.plan.levels.mirrors:
            mirror(self.frame, self.of, at)

    # levels

    def _walk(self, n: int, at: Ranges) -> None:
        """Write the levels from the ``n``-th on, inside of those that have opened ``at``."""
        if n == self.of.levels.outer and not self.finishing:
            self.tiles.begin_block(at)
        if n == self.of.levels.walked:
            (self.tiles.finish_tile if self.finishing else self.tiles.tile)(at)
        elif n not in self.of.levels.splits:
            self._loop(n, self.of.levels.levels[n], at)
        elif self.finishing:
            self._walk(n + 1, at)
        else:
            self._parts(n, self.of.levels.levels[n], at)

    def _inside(self, n: int, at: Ranges) -> None:
        """Pack the operands whose part the ``n``-th level fixes, then write the levels inside."""
        if not self.finishing:
            self.operands.pack(n, at)
        self._walk(n + 1, at)

    def _loop(self, n: int, level: Level, at: Ranges) -> None:
        """Write a level of a loop that is not summed over."""
        k, around = level.loop, at[level.loop]
        tile = self.of.is_tile(n)
        names = {self.of.row: "i", self.of.column: "j"} if tile else {}

        def body(start: Index, size: int) -> None:
            end = around.end if tile else self._end(start, size, (around.start, around.end))
            self._inside(n, {**at, k: Range(start, end, size)})

        sizes = self._tails(k) if tile else [level.step]
        hint = names.get(k, NAMES[k % len(NAMES)])
        self.writer.cover((around.start, around.end), sizes, body, hint)

    def _tails(self, k: int) -> list[int]:
        """Return the steps of the tiles along a loop: whole ones, then narrower ones."""
        extent = self.frame.ends[k].number
        if k == self.of.column and self.operands.in_place:
            return list(dict.fromkeys([self.of.tile[1], *steps(self.of.width, 1)]))
        if k == self.of.row and extent is not None and extent % self.of.tile[0]:
            return [self.of.tile[0], extent % self.of.tile[0]]
        return [self.of.step(k)]

    def _end(self, start: Index, size: int, around: tuple[Index, Index]) -> Index:
        """Return the end of ``size`` iterations from ``start``, clamped to that of the range."""
        extent = (around[1] - around[0]).number
        if size == 1 or (extent is not None and extent % size == 0):
            return start + size
        return self.writer.minimum(start + size, around[1])

    # parts of the sum

    def _parts(self, n: int, level: Level, at: Ranges) -> None:
        """Write a level that splits the sum; initialise the partial sums before the outermost."""
        around, deep = at[self.of.levels.depth], level.step
        if 0 < around.size <= deep or (around.end - around.start).number == 0:
            self._part(n, at, around.start, around.end - around.start)
            return
        if n == self.tiles.cut:
            self.sums.around = at
            self.sums.fill()
        if not self.operands.in_place:
            self._clamped_parts(n, deep, at)
            return
        middle = self.writer.last_whole(around.start, around.end, deep)

        def part(k: Index) -> None:
            self._part(n, at, k, Index.of(deep))

        self.writer.each((around.start, middle), deep, part, "k")
        if (around.end - middle).number != 0:
            self._part(n, at, middle, around.end - middle)
        if n == self.tiles.cut:
            self.finishing = True
            self._walk(n + 1, at)
            self.finishing = False

    def _clamped_parts(self, n: int, deep: int, at: Ranges) -> None:
        """Write the loop over parts, the last one clamped; it runs once even for an empty sum."""
        start, end = at[self.of.levels.depth].start, at[self.of.levels.depth].end
        upper = end
        if end.number is None and n == self.tiles.cut:
            value, one = self.writer.value(end), self.writer.index(1)
            upper = Index.of(self.writer.binary(arith.MaxSIOp, value, one))

        def part(k: Index) -> None:
            self._part(n, at, k, self._end(k, deep, (start, end)) - k)

        self.writer.each((start, upper), deep, part, "k")

    def _part(self, n: int, at: Ranges, start: Index, count: Index) -> None:
        """Write one part, ``count`` iterations, of the sum."""
        size = min(self.of.levels.levels[n].step, count.number or self.of.levels.levels[n].step)
        if n == self.of.levels.splits[-1]:
            self.tiles.begin_part(at, start, count)
        self._inside(n, {**at, self.of.levels.depth: Range(start, start + count, size)})
