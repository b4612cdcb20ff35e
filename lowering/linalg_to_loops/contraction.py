"""Contractions in steps: one walk down the levels of a schedule, from the outermost inwards.

A level of a loop opens that loop in steps. A level that splits the sum leaves partial sums in
scratch, which holds all results of one step of the levels around it. A packed operand is copied
into a panel before the inside of the outermost level that fixes the part to be packed. The
innermost levels are the points of a register tile (`contraction_tile`), which adds one part of the
sum.

Where the operand of the columns is packed, tiles at the edges are computed whole, and only the
part inside is stored: the epilogue reads the registers of the last part. An operand that is read in
place has narrower tiles at the edges instead; the epilogue reads the partial sums, in loops of its
own.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from stepwell.dialects.kernel.levels import PARALLEL, Level
from stepwell.lowering.linalg_to_loops.contraction_levels import Range, Ranges
from stepwell.lowering.linalg_to_loops.contraction_tile import TileNest, falling
from stepwell.lowering.linalg_to_loops.plan import Plan
from stepwell.lowering.linalg_to_loops.writer import NAMES, Index, Writer

MIN_BLOCKS = 8
"""Blocks that keep a few threads busy (as `block_sizes` counts them)."""
MIN_BLOCK_TILES = 8
"""Row tiles below which a block does not repay packing."""


def is_in_steps(plan: Plan) -> bool:
    """Whether the sum of these ops is taken in steps."""
    return any(op.reduced and op.op in plan.schedule.sums for op in plan.ops)


class Contraction(TileNest):
    """Writes the loops of a plan whose sum is taken in steps."""

    evened: Index | None = None
    """Rows of a block, where they are computed at launch."""
    finishing = False
    """Whether the loops of the epilogue are written."""

    # parallel levels

    @property
    def _threads(self) -> int:
        """The number of parallel levels."""
        return sum(level.kind == PARALLEL for level in self.of.levels.levels)

    def _block(self, k: int) -> int:
        return self.of.levels.step(k, self._threads) or self.extents[0][k].number or 1

    def _even(self, blocks: Sequence[int], counts: list[Index]) -> None:
        if self.of.row < len(blocks) and self.of.levels.step(self.of.row, self._threads) > 1:
            self.evened = self._even_rows(blocks[self.of.row], counts)

    def _even_rows(self, block: int, counts: list[Index]) -> Index | None:
        """Return the length of blocks of rows whose number is known at launch only.

        The number of row blocks is the smallest that keeps the threads busy together with the
        blocks of other loops, whose numbers ``counts`` has.
        """
        k, tile = self.of.row, self.of.tile[0]
        writer, extent = self.writer, self.extents[0][k]
        _, high = self.plan.schedule.lengths.get(k, (0, 0))
        if extent.number is not None or 0 < high <= block:
            return None
        others = Index.of(1)
        for n, count in enumerate(counts):
            others = self.writer.product(others, count) if n != k else others
        fewest = counts[k]
        wanted = writer.divide(
            Index.of(MIN_BLOCKS - 1) + others, _number(writer, others), arith.DivUIOp
        )
        most = writer.divide(
            extent + (MIN_BLOCK_TILES * tile - 1), MIN_BLOCK_TILES * tile, arith.DivUIOp
        )
        runs = writer.maximum(writer.maximum(fewest, writer.minimum(wanted, most)), Index.of(1))
        each = writer.divide(extent + runs + -1, _number(writer, runs), arith.DivUIOp)
        each = writer.divide(each + (tile - 1), tile, arith.DivUIOp) * tile
        each = writer.maximum(each, Index.of(tile))
        counts[k] = writer.divide(extent + each + -1, _number(writer, each), arith.DivUIOp)
        return each

    def _range(self, k: int, at: Index, block: int) -> tuple[Index, Index]:
        lower, extent = at * block, self.extents[0][k]
        if k == self.of.row and self.evened is not None:
            lower = self.writer.product(at, self.evened)
            return lower, self.writer.minimum(lower + self.evened, extent)
        if not self.of.levels.step(k, self._threads):
            return Index(), extent
        return lower, self._end(lower, block, (Index(), extent))

    def _shared(
        self, k: int, ranges: dict[int, tuple[Index, Index]], at: list[tuple[Index, int]]
    ) -> None:
        """Walk down the levels inside of the parallel ones, which have opened ``ranges``."""
        del k, at
        whole = {k: (Index(), end) for k, end in enumerate(self.extents[0][: self.of.column + 1])}
        here = {k: Range(*bounds, self._block(k)) for k, bounds in {**whole, **ranges}.items()}
        here[self.of.levels.depth] = Range(Index(), self.extent, self.extent.number or 0)
        self._walk(self._threads, here)

    # levels

    def _walk(self, n: int, at: Ranges) -> None:
        """Write the levels from the ``n``-th on, inside of those that have opened ``at``."""
        if n == self.of.levels.outer and not self.finishing:
            self.begin_block(at)
        if n == self.of.levels.walked:
            (self.finish_tile if self.finishing else self.tile)(at)
        elif n not in self.of.levels.splits:
            self._loop(n, self.of.levels.levels[n], at)
        elif self.finishing:
            self._walk(n + 1, at)
        else:
            self._parts(n, self.of.levels.levels[n], at)

    def _inside(self, n: int, at: Ranges) -> None:
        """Pack what the ``n``-th level fixes, then write the levels inside of it."""
        if not self.finishing:
            self.operands.pack(n, at)
        self._walk(n + 1, at)

    def _loop(self, n: int, level: Level, at: Ranges) -> None:
        """Write a level of a loop that is not summed over."""
        k, around = level.loop, at[level.loop]
        tile = self.of.is_tile(n)
        names = {self.of.row: "i", self.of.column: "j"} if tile else {}

        def body(start: Index, size: int, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            end = around.end if tile else self._end(start, size, (around.start, around.end))
            self._inside(n, {**at, k: Range(start, end, size)})
            return ()

        sizes = self._tails(k) if tile else [level.step]
        hint = names.get(k, NAMES[k % len(NAMES)])
        self.writer.sweep((around.start, around.end), sizes, (), body, hint)

    def _tails(self, k: int) -> list[int]:
        """Return the steps of the tiles along a loop: whole ones, then those at the edge."""
        extent = self.extents[0][k].number
        if k == self.of.column and self.operands.in_place:
            return list(dict.fromkeys([self.of.tile[1], *falling(self.of.width)]))
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
        if n == self.cut:
            self.sums.around = at
            self.sums.fill()
        if not self.operands.in_place:
            self._clamped_parts(n, deep, at)
            return
        middle = self.writer.last_whole(around.start, around.end, deep)

        def part(k: Index, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            self._part(n, at, k, Index.of(deep))
            return ()

        self.writer.loop((around.start, middle), deep, (), part, "k")
        if (around.end - middle).number != 0:
            self._part(n, at, middle, around.end - middle)
        if n == self.cut:
            self.finishing = True
            self._walk(n + 1, at)
            self.finishing = False

    def _clamped_parts(self, n: int, deep: int, at: Ranges) -> None:
        """Write the loop over parts, the last one clamped; it runs once even for an empty sum."""
        start, end = at[self.of.levels.depth].start, at[self.of.levels.depth].end
        upper = end
        if end.number is None and n == self.cut:
            value, one = self.writer.value(end), self.writer.index(1)
            upper = Index.of(self.writer.binary(arith.MaxSIOp, value, one))

        def part(k: Index, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            self._part(n, at, k, self._end(k, deep, (start, end)) - k)
            return ()

        self.writer.loop((start, upper), deep, (), part, "k")

    def _part(self, n: int, at: Ranges, start: Index, count: Index) -> None:
        """Write one part, ``count`` iterations, of the sum."""
        size = min(self.of.levels.levels[n].step, count.number or self.of.levels.levels[n].step)
        if n == self.of.levels.splits[-1]:
            self.begin_part(at, start, count)
        self._inside(n, {**at, self.of.levels.depth: Range(start, start + count, size)})


def _number(writer: Writer, index: Index) -> int | SSAValue:
    return index.number or writer.value(index)
