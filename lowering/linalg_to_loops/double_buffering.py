"""Double buffering: the tiles of one part of a sum pack the operand of the next part.

A pass that packs waits for memory while nothing is computed. Here each tile copies a few rows of
the next part into a second buffer, spread over its innermost loop: the loads wait while
multiply-adds go on. A row is as wide as a panel. Rows of all panels of a block are copied in the
order in which they lie in memory, so that hardware prefetches their continuation; with each, the
next row of the same panel is prefetched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import SSAValue

from stepwell.lowering.linalg_to_loops.contraction_levels import ContractionLevels, Ranges
from stepwell.lowering.linalg_to_loops.contraction_operands import Packed
from stepwell.lowering.linalg_to_loops.prefetch import elements_of_line, prefetch_line
from stepwell.lowering.linalg_to_loops.writer import Index, Writer, below

Run = Callable[[tuple[Index, Index], list[SSAValue]], list[SSAValue]]
"""Writes a range of the innermost loop of a tile; returns the sums after it."""


class DoubleBuffering:
    """Writes the packing of the operand of the columns by the tiles of the part before."""

    def __init__(self, writer: Writer, of: ContractionLevels, packed: Packed) -> None:
        self.writer, self.of, self.packed = writer, of, packed
        self.packing = packed.packing
        split = of.levels.splits[-1]
        self.deep = of.levels.levels[split].step
        ends = packed.packing.frame.ends
        self.panels = of.sizes(split, ends)[-1] // of.tile[1]
        """Panels of a whole block."""
        self.line = elements_of_line(self.packing.source)
        """Elements of a cache line."""
        self.extent = packed.packing.frame.extents[of.sum][of.levels.depth]

    def begin_block(self, at: Ranges) -> None:
        """Pack the first part of a block."""
        self.columns, self.row = at[self.of.column], at[self.of.row]
        rows = self.row.end - self.row.start
        self.tiles = self.writer.maximum(self.writer.divide_up(rows, self.of.tile[0]), Index.of(1))
        """Tiles of each panel, of all rows of the block."""
        self.each = self.writer.divide_up(Index.of(self.deep), self.tiles)
        """Rows that each tile copies, at most."""
        self.apart = self.writer.divide(Index.of(self.deep), self.each)
        """Steps of a tile for each of these rows."""
        wide = self.columns.end - self.columns.start
        self.here = self.writer.divide_up(wide, self.of.tile[1])
        self.batch = [at[k].start for k in range(self.of.row)]
        self._begin(Index())

        def row(k: Index) -> None:
            self.writer.each((Index(), self.here), 1, lambda panel: self._copy(k, panel), "j")

        self.writer.each((Index(), self.count), 1, row, "k")

    def begin_part(self, start: Index) -> None:
        """Begin a part: set the part that its tiles copy, if there is one."""
        self.since = start
        self._begin(start + self.deep)

    def _begin(self, start: Index) -> None:
        """Set the part that is copied: its beginning, its buffer, and its number of rows."""
        self.start, self.buffer = start, self._buffer(start)
        left = self.writer.minimum(self.extent - start, Index.of(self.deep))
        self.count = self.writer.maximum(left, Index())
        self.number = self.writer.product(self.count, self.here)
        """Rows of all panels."""

    def _buffer(self, start: Index) -> Index:
        """Return the first row of the buffer of the part that begins at ``start``."""
        turn = self.writer.divide(start, self.deep)
        return self.writer.divide(turn, 2, arith.RemUIOp) * (self.panels * self.deep)

    def begin_tile(self, at: Ranges) -> None:
        """Set where the tile at ``at`` reads its panel."""
        first = at[self.of.column].start
        panel = self.writer.divide(first - self.columns.start, self.of.tile[1])
        row = self._buffer(self.since) + panel * self.deep
        self.packed.begin = first, self.since - row
        before = at[self.of.row].start - self.row.start
        turn = self.writer.divide(before, self.of.tile[0])
        product = self.writer.product
        self.turn = product(product(panel, self.tiles) + turn, self.each)

    def run(self, steps: Index, state: list[SSAValue], run: Run) -> list[SSAValue]:
        """Run the innermost loop of a tile, ``steps`` iterations, and copy its rows meanwhile."""
        writer = self.writer
        left = writer.minimum(self.number - self.turn, self.each)
        some = writer.maximum(left, Index())

        def copied(n: Index, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            *sums, k, panel = values
            following = self._copy(Index.of(k), Index.of(panel))
            first = writer.product(n, self.apart)
            found = run((first, first + self.apart), sums)
            if isinstance(loop := found[0].owner, scf.ForOp):
                loop.attributes["kernel.unroll"] = UnitAttr()
            return [*found, *map(writer.value, following)]

        first = [writer.divide(self.turn, self.here, op) for op in (arith.DivUIOp, arith.RemUIOp)]
        carried = [*state, *map(writer.value, first)]
        names = [value.name_hint for value in carried]
        done = writer.loop((Index(), some), 1, carried, copied, "l", names)
        return run((writer.product(some, self.apart), steps), list(done[: len(state)]))

    def _copy(self, k: Index, panel: Index) -> tuple[Index, Index]:
        """Copy the part of a row that is in a panel, and prefetch that of the next row.

        Return the row and the panel that follow.
        """
        writer, packing, width = self.writer, self.packing, self.of.tile[1]
        column, last = self.columns.start + panel * width, packing.frame.ends[self.of.column] + -1
        next_row = writer.minimum(self.start + k + 1, self.extent + -1)
        for offset in (*range(0, width, self.line), width - 1):
            here = writer.minimum(column + offset, last)
            prefetch_line(writer, packing.source, packing.place(self.batch, here, (), next_row), {})
        packing.begin(self.batch, column, self.start, Index())
        packing.base = self.buffer + panel * self.deep
        packing.copy_row(k)
        ends = panel + 1, self.here
        return below(writer, *ends, k, k + 1), below(writer, *ends, panel + 1, Index())
