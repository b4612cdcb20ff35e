"""Contractions in cache blocks, one operand packed.

A block of rows by columns is one parallel iteration. A block may also take several iterations of
the loops before the rows, such as the lines of a convolution's image. Within a block, a panel of
the operand that varies with the columns, as wide as the register tile, is packed so that the
innermost loop reads it sequentially (`packing`); then the micro-kernel walks down the rows
(`tiles`). An operand that is stored in such panels already, and the other operand, are read in
place. Where the sum is longer than the block is deep, partial sums wait in scratch that holds one
row of tiles of the block. Of a sum over several loops, the last is split into parts, and each part
runs all iterations of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from stepwell.analysis.products import dot_elements
from stepwell.lowering.linalg_to_loops.dots import DotPacking, words
from stepwell.lowering.linalg_to_loops.plan import Plan
from stepwell.lowering.linalg_to_loops.tiles import Panel, Tiles
from stepwell.lowering.linalg_to_loops.writer import NAMES, Index, Writer

MIN_BLOCKS = 8
"""Blocks that keep a few threads busy (as `block_sizes` counts them)."""
MIN_BLOCK_TILES = 8
"""Row tiles below which a block does not repay packing."""


class Blocked(Tiles):
    """Writes the loops of a plan whose sum is taken in parts."""

    evened: Index | None = None
    """Rows of a block, where they are computed at launch."""

    def _block(self, k: int) -> int:
        return self.sizes[k - self.first] if k >= self.first else 1

    def _even(self, blocks: Sequence[int], counts: list[Index]) -> None:
        """Split rows, whose number is known at launch only, into blocks of equal length.

        The number of row blocks is the smallest that keeps the threads busy together with the
        blocks of columns.
        """
        k, writer = self.row, self.writer
        if k != self.first or k >= len(blocks) or self.extents[0][k].number is not None:
            return
        _, high = self.plan.schedule.lengths.get(k, (0, 0))
        if 0 < high <= blocks[k]:
            return
        others = Index.of(1)
        for n, count in enumerate(counts):
            others = self._product(others, count) if n != k else others
        extent, tiles = self.extents[0][k], self.rows
        fewest = counts[k]
        wanted = writer.divide(
            Index.of(MIN_BLOCKS - 1) + others, _number(writer, others), arith.DivUIOp
        )
        most = writer.divide(
            extent + (MIN_BLOCK_TILES * tiles - 1), MIN_BLOCK_TILES * tiles, arith.DivUIOp
        )
        runs = writer.maximum(writer.maximum(fewest, writer.minimum(wanted, most)), Index.of(1))
        each = writer.divide(extent + runs + -1, _number(writer, runs), arith.DivUIOp)
        each = writer.divide(each + (tiles - 1), tiles, arith.DivUIOp) * tiles
        self.evened = writer.maximum(each, Index.of(tiles))
        counts[k] = writer.divide(
            extent + self.evened + -1, _number(writer, self.evened), arith.DivUIOp
        )

    def _range(self, k: int, at: Index, block: int) -> tuple[Index, Index]:
        if k != self.row or self.evened is None:
            return super()._range(k, at, block)
        lower = self._product(at, self.evened)
        return lower, self.writer.minimum(lower + self.evened, self.extents[0][k])

    def _shared(
        self, k: int, ranges: dict[int, tuple[Index, Index]], at: list[tuple[Index, int]]
    ) -> None:
        if k < self.first:
            super()._shared(k, ranges, at)
        elif k > self.column:
            self._write_block([start for start, _ in at], ranges)
        elif k in ranges:
            self._shared(k + 1, ranges, at)
        else:

            def body(start: Index, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
                upper = self._within(start, self._block(k), self.extents[0][k])
                self._shared(k + 1, {**ranges, k: (start, upper)}, at)
                return ()

            self.writer.loop((Index(), self.extents[0][k]), self._block(k), (), body, NAMES[k % 6])

    def _within(self, start: Index, size: int, extent: Index) -> Index:
        """Return the end of ``size`` iterations from ``start``, clamped to the loop's end."""
        if extent.number is not None and extent.number % size == 0:
            return start + size
        return self.writer.minimum(start + size, extent)

    def _write_block(self, batch: list[Index], ranges: dict[int, tuple[Index, Index]]) -> None:
        """Write one block: for each panel, for each part of the sum, all rows."""
        extent = self.extents[self.plan.ops.index(self.sum)][self.depth]
        whole = extent.number is not None and extent.number <= self.deep
        for packing in filter(None, (self.packing, self.row_packing)):
            packing.allocate(extent.number or 1 if whole else self.deep)
            inputs = list(self.micro.inputs)
            inputs[packing.operand] = packing.access
            self.micro.inputs = tuple(inputs)
        if self.plan.schedule.bias_to_unsigned:
            op = memref.AllocaOp.get(i32, 64, [self.columns])
            self.offsets = self.writer.result(op, "offsets")
        if self.row_packing is not None and whole and self.first == self.row:
            self.row_packing.write(batch, ranges[self.row][0], Index(), extent)
        if self.long or not (whole and self._is_whole(self.row) and self._is_whole(self.column)):
            self._allocate_sums(self.rows if whole else prod(self.sizes[:-1]))

        def panel(j: Index, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            if whole:
                self._part(Panel(batch, ranges, j, Index(), None), extent)
            else:
                self._fill_sums()
                self._parts(batch, ranges, j, extent)
            return ()

        self.writer.loop(ranges[self.column], self.columns, (), panel, "j")

    def _parts(
        self, batch: list[Index], ranges: dict[int, tuple[Index, Index]], j: Index, extent: Index
    ) -> None:
        """Write the loop over the parts of a sum; it runs once even for an empty sum."""
        if extent.number is None:
            value, one = self.writer.value(extent), self.writer.index(1)
            upper = Index.of(self.writer.binary(arith.MaxSIOp, value, one))
        else:
            upper = extent

        def part(k: Index, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            count = self._within(k, self.deep, extent) - k
            self._part(Panel(batch, ranges, j, k, extent), count)
            return ()

        self.writer.loop((Index(), upper), self.deep, (), part, "k")

    def _part(self, at: Panel, count: Index) -> None:
        """Write one part, ``count`` iterations, of the sum of a panel; pack the panel if needed."""
        steps = count if self.words is None else words(self.writer, count, self.words.terms)
        self.part, self.count = (Index(), steps), count
        if self.packing is not None and self.packs_first:
            self.packing.begin(at.batch, at.j, at.k, count)
        elif self.packing is not None:
            self.packing.write(at.batch, at.j, at.k, count)
        if self.words is not None and self.offsets is not None:
            self._write_offsets(self.words, self.offsets)
        if self.row_packing is not None and at.extent is not None and self.first == self.row:
            self.row_packing.write(at.batch, at.ranges[self.row][0], at.k, count)
        self._down(at, [])

    def _write_offsets(self, columns: DotPacking, offsets: SSAValue) -> None:
        """Write each column's correction for the bias of 128 in each byte of the rows."""
        elements = dot_elements(self.sum.body) if self.sum.body is not None else None
        assert elements is not None
        sums = columns.biases(self.sum.width, elements[columns.operand])
        for n, value in enumerate(sums):
            self.writer.store(value, offsets, [Index.of(n * self.sum.width)])


def _number(writer: Writer, index: Index) -> int | SSAValue:
    return index.number or writer.value(index)


def is_blocked(plan: Plan) -> bool:
    """Whether these ops are written in blocks."""
    return bool(plan.schedule.blocks) and any(op.reduced for op in plan.ops)
