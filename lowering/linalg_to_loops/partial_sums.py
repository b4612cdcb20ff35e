"""The partial sums of a contraction, in scratch while its parts are added.

The sums of a panel of columns, as wide as a tile, lie together, row after row: sums of adjacent
rows at the distance of a power of two would evict each other from the L1 cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith, memref
from xdsl.ir import SSAValue

from stepwell.analysis.structured import element
from stepwell.lowering.linalg_to_loops.contraction_levels import ContractionLevels, Ranges
from stepwell.lowering.linalg_to_loops.writer import Index, Writer


class PartialSums:
    """Writes the allocation, the initial values, the loads and the stores of partial sums."""

    def __init__(self, writer: Writer, of: ContractionLevels) -> None:
        self.writer, self.of = writer, of
        self.around: Ranges = {}
        """The ranges whose sums are in scratch; none where those of one tile are."""

    def allocate(self, sizes: Sequence[int]) -> None:
        """Allocate scratch for the sums of ranges of these sizes, in whole tiles."""
        *high, wide = sizes
        self.sizes, columns = high, self.of.tile[1]
        shape = [prod(high) * (wide // columns), columns]
        op = memref.AllocaOp.get(element(self.of.sum.outputs[0].buffer), 64, shape)
        self.scratch = self.writer.result(op, "sums")
        self.rows = shape[0]

    def fill(self) -> None:
        """Initialise all sums."""
        width = self.of.width
        start = self.writer.broadcast(self.of.sum.initial[0], self.of.lanes)

        def row(i: Index) -> None:
            for c in range(0, self.of.tile[1], width):
                self.writer.store(start, self.scratch, [i, Index.of(c)])

        self.writer.each((Index(), Index.of(self.rows)), 1, row, "i")

    def place(self, at: Ranges, row: Index | int, column: Index | int) -> list[Index]:
        """Return the place of a sum of the tile at ``at``, counted from the tile's first one."""
        k, columns = self.of.column, self.of.tile[1]
        before = at[k].start - self.around[k].start if self.around else Index()
        panel = self.writer.divide(before, columns)
        rows = row_number(at, self.around, self.sizes) if self.around else Index()
        inside = Index()
        if at[k].size < columns:
            inside = self.writer.divide(before, columns, arith.RemUIOp)
        return [panel * prod(self.sizes) + rows + row, inside + column]

    def load(self, at: Ranges) -> list[SSAValue]:
        """Load the sums of a tile, row by row."""
        places, lanes = self._places(at)
        return [self.writer.load(self.scratch, place, lanes, "sum") for place in places]

    def store(self, at: Ranges, values: Sequence[SSAValue]) -> None:
        """Store the sums of a tile, row by row."""
        places, _ = self._places(at)
        for place, value in zip(places, values, strict=True):
            self.writer.store(value, self.scratch, place)

    def _places(self, at: Ranges) -> tuple[list[list[Index]], int]:
        rows, columns = at[self.of.row].size, at[self.of.column].size
        lanes = self.of.lanes_in(at)
        steps = range(0, columns, lanes or 1)
        return [self.place(at, r, c) for r in range(rows) for c in steps], lanes


def row_number(at: Ranges, around: Ranges, sizes: Sequence[int]) -> Index:
    """Return the number of the row at ``at`` within ranges of the loops before the columns."""
    found = Index()
    for k, size in enumerate(sizes):
        found = found * size + (at[k].start - around[k].start)
    return found
